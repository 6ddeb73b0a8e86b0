//! How a manifest is recognized.

use sha2::{Digest as _, Sha256};

use crate::work::{manifest::DesiredObject, ownership::Ownership};

/// Changes when the strategy, the manifest or its ownership does.
pub(super) fn hash_of(strategy: &str, object: &DesiredObject, ownership: &Ownership) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(strategy);
    // Serializing a JSON value does not fail.
    hasher.update(serde_json::to_vec(&object.object).unwrap_or_default());
    hasher.update(format!("{ownership:?}"));
    hasher.finalize().into()
}
