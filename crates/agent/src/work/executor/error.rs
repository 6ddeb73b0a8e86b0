//! Why a work with an executor is not applied.

use ocm_runtime::Class;

use super::denied::Denied;

/// Why an object is not applied for an executor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::work) enum ExecutorError {
    #[error("spec.executor.subject.type is {0}: set it to ServiceAccount, nothing else can be an executor")]
    Type(String),
    #[error(
        "spec.executor.subject.serviceAccount is missing: set its namespace and name, or remove spec.executor to apply the \
         work with the rights of the agent"
    )]
    NoAccount,
    #[error(
        "spec.executor.subject.serviceAccount.{field} is {value:?}, which no service account can have: use lower case \
         letters, digits, '-' and '.'"
    )]
    Name { field: &'static str, value: String },
    #[error(
        "{0} cannot be used for a role or a binding of a work with an executor: without the fields that it leaves out, the object \
         could grant more than is checked. Remove the entry, set its condition to OnSpokeChange, or move the object to a work \
         without an executor"
    )]
    Ignored(String),
    #[error(transparent)]
    Denied(#[from] Box<Denied>),
}

impl ExecutorError {
    pub(in crate::work) fn class(&self) -> Class {
        match self {
            // Only an edit of the work helps.
            Self::Type(_) | Self::NoAccount | Self::Name { .. } | Self::Ignored(_) => Class::Invalid,
            Self::Denied(_) => Class::Refused,
        }
    }
}
