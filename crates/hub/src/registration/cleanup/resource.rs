//! A kind of object that is deleted with its cluster, as `group/version/resource`.

use std::{fmt, str::FromStr};

use kube::api::ApiResource;
use tracing::warn;

/// What is deleted with a cluster unless configured otherwise, in this order.
pub const DEFAULT_GC_RESOURCES: [&str; 2] = [
    "addon.open-cluster-management.io/v1beta1/managedclusteraddons",
    "work.open-cluster-management.io/v1/manifestworks",
];

/// A kind of namespaced object, named by group, version and plural.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GcResource {
    /// API group, such as `work.open-cluster-management.io`; empty for the core group.
    pub group: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Plural in lower case, such as `manifestworks`.
    pub resource: String,
}

/// Not of the form `group/version/resource`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "failed to read {0:?} as group/version/resource, such as work.open-cluster-management.io/v1/manifestworks, or \
     /v1/secrets for the core group"
)]
pub struct GcResourceError(String);

impl GcResource {
    /// What is deleted with a cluster unless configured otherwise.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        DEFAULT_GC_RESOURCES.iter().filter_map(|text| text.parse().ok()).collect()
    }

    /// Reads a list, in its order. As in OCM an entry that cannot be read is logged and left out, and an empty list says that
    /// nothing is to be deleted.
    pub fn read_all<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Vec<Self> {
        let read = |text: T| match text.as_ref() {
            "" => None,
            text => text.parse().inspect_err(|error| warn!(%error, "leaving this entry out")).ok(),
        };
        texts.into_iter().filter_map(read).collect()
    }

    pub(super) fn api(&self) -> ApiResource {
        let (group, version) = (&self.group, &self.version);
        ApiResource {
            group: group.clone(),
            version: version.clone(),
            api_version: if group.is_empty() { version.clone() } else { format!("{group}/{version}") },
            // Requests for metadata name the plural only.
            kind: String::new(),
            plural: self.resource.clone(),
        }
    }
}

impl FromStr for GcResource {
    type Err = GcResourceError;

    fn from_str(text: &str) -> Result<Self, GcResourceError> {
        let parts: Vec<_> = text.trim().split('/').map(str::to_owned).collect();
        match <[String; 3]>::try_from(parts) {
            Ok([group, version, resource]) if !version.is_empty() && !resource.is_empty() => {
                Ok(Self { group, version, resource })
            }
            _ => Err(GcResourceError(text.into())),
        }
    }
}

impl fmt::Display for GcResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.group, self.version, self.resource)
    }
}
