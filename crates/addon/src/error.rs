//! Errors of an add-on's own code.

/// Any error of an add-on's own code. Everything that implements [`std::error::Error`] becomes one with `?`.
pub type AddonError = Box<dyn std::error::Error + Send + Sync>;

/// Why an agent's rights on the hub were not set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PermissionError {
    /// Nobody knows yet whom the rights are for. Not a failure: the cluster's agent will say.
    #[error("the agent's user on the hub is not known yet")]
    SubjectNotReady,
    /// The hub's API server refused.
    #[error(transparent)]
    Api(#[from] ocm_runtime::Error),
    /// Something else went wrong.
    #[error(transparent)]
    Other(AddonError),
}
