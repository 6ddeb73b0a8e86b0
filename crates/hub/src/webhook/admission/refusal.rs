//! Why a change is refused.

use kube::core::{Status, response::reason};

/// The changes to make to an object, or why it is refused.
pub(super) type Verdict = Result<json_patch::Patch, Refusal>;

/// The answer to a change that is refused. The message names the cause and the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    code: u16,
    reason: &'static str,
    pub(super) message: String,
}

impl Refusal {
    /// The object is not what it has to be.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { code: 400, reason: reason::BAD_REQUEST, message: message.into() }
    }

    /// The requester may not make this change.
    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self { code: 403, reason: reason::FORBIDDEN, message: message.into() }
    }

    /// The same with the code that OCM gives every refusal of a work.
    pub(super) fn into_bad_request(self) -> Self {
        Self::invalid(self.message)
    }

    /// As API servers answer it.
    pub(super) fn status(&self) -> Status {
        Status::failure(&self.message, self.reason).with_code(self.code)
    }
}
