//! Errors of an add-on's own code.

/// Any error of an add-on's own code. Everything that implements [`std::error::Error`] becomes one with `?`.
pub type AddonError = Box<dyn std::error::Error + Send + Sync>;

/// Why an agent's permissions on the hub were not set up. Errors of [`kube`] and [`AddonError`]s become one with `?`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PermissionError {
    /// The user that gets the permissions is not known yet. Not a failure: the cluster's agent will write it into the status.
    #[doc(alias = "SubjectNotReadyError")]
    #[error("the agent's user on the hub is not known yet")]
    SubjectNotReady,
    /// The hub's API server refused. A conflict (409) is retried at once.
    #[error(transparent)]
    Api(#[from] ocm_runtime::Error),
    /// An object of that name exists that the ManagedClusterAddOn does not own. It is left alone.
    #[error(
        "{object} exists and belongs to somebody else, since the ManagedClusterAddOn does not own it, so it is left alone; \
         delete it if it is not needed, or let the add-on use another name"
    )]
    NotOwned {
        /// Kind, namespace and name.
        object: String,
    },
    /// An object of this or a former installation is about to be deleted, and is created again when it is gone.
    #[error("{object} is being deleted, and is created again when it is gone; remove what holds it if that takes long")]
    BeingDeleted {
        /// Kind, namespace and name.
        object: String,
    },
    /// Something else went wrong.
    #[error(transparent)]
    Other(AddonError),
}

impl From<kube::Error> for PermissionError {
    fn from(error: kube::Error) -> Self {
        let noun = "the hub's API server".to_owned();
        Self::Api(ocm_runtime::Error::Request { verb: "ask", noun, source: Box::new(error) })
    }
}

/// An answer of an API server stays one.
impl From<AddonError> for PermissionError {
    fn from(error: AddonError) -> Self {
        let error = match error.downcast::<ocm_runtime::Error>() {
            Ok(error) => return Self::Api(*error),
            Err(other) => other,
        };
        error.downcast::<kube::Error>().map_or_else(Self::Other, |error| Self::from(*error))
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use ocm_runtime::{Class, Classified as _};

    use super::*;

    fn conflict() -> kube::Error {
        kube::Error::Api(Status::failure("somebody else wrote first", "Conflict").with_code(409).boxed())
    }

    #[test]
    fn a_conflict_is_one_however_it_comes() {
        let of_runtime = || match PermissionError::from(conflict()) {
            PermissionError::Api(error) => error,
            other => panic!("{other:?}"),
        };
        let errors = [
            PermissionError::from(conflict()),
            PermissionError::from(AddonError::from(conflict())),
            PermissionError::from(AddonError::from(of_runtime())),
        ];
        for error in errors {
            assert!(matches!(&error, PermissionError::Api(error) if error.class() == Class::Conflict), "{error:?}");
        }
        assert!(matches!(PermissionError::from(AddonError::from("no licence")), PermissionError::Other(_)));
    }
}
