//! Fields that another field manager owns.

use kube::core::response::StatusCause;
use ocm_runtime::Error;

use crate::work::{resources::ApplyError, strategy::ServerSideApply};

/// The reason by which the API server names such a field.
const REASON: &str = "FieldManagerConflict";
/// How many fields a message lists.
const LISTED: usize = 3;

/// Server-side apply was refused since others own fields of the manifest.
#[derive(Debug, thiserror::Error)]
#[error(
    "other field managers own fields of the manifest: {fields}. To take them over, set {path}.force; to leave them as they \
     are, add them to {path}.ignoreFields. This is tried again every few minutes"
)]
pub(in crate::work) struct FieldConflict {
    fields: String,
    /// The field of the work that has the settings.
    path: String,
}

/// The error of a request, with the fields if it is a conflict about them.
pub(super) fn explained(error: Error, settings: &ServerSideApply) -> ApplyError {
    let details = error.status().filter(|status| status.code == 409).and_then(|status| status.details.as_ref());
    let causes = details.map(|details| details.causes.as_slice()).unwrap_or_default();
    let conflicts: Vec<_> = causes.iter().filter(|cause| cause.reason == REASON).collect();
    match conflicts.is_empty() {
        true => error.into(),
        false => {
            let path = format!("{}.serverSideApply", settings.path);
            FieldConflict { fields: list(&conflicts), path }.into()
        }
    }
}

fn list(conflicts: &[&StatusCause]) -> String {
    let one = |cause: &&StatusCause| format!("{} ({})", cause.field, cause.message);
    let mut text = conflicts.iter().take(LISTED).map(one).collect::<Vec<_>>().join(", ");
    if let Some(more) = conflicts.len().checked_sub(LISTED).filter(|more| *more > 0) {
        text += &format!(", and {more} more");
    }
    text
}
