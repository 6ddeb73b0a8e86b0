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
    #[error(transparent)]
    Denied(#[from] Box<Denied>),
}

impl ExecutorError {
    pub(in crate::work) fn class(&self) -> Class {
        match self {
            // Only an edit of the work helps.
            Self::Type(_) | Self::NoAccount | Self::Name { .. } => Class::Invalid,
            Self::Denied(_) => Class::Refused,
        }
    }
}
