//! Why the agent cannot join a hub with its bootstrap kubeconfig, and what to do about it: the same words for an agent with one
//! hub and for one that selects its hub.

use ocm_runtime::{
    Class, Classified as _, Error,
    client::{Endpoint, Problem},
    error::chain,
};

/// Why a hub cannot be joined. Its `Display` form names the next step.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JoinProblem {
    #[error(
        "the hub does not know the credentials in the bootstrap kubeconfig (401): {0}; put new ones into it, such as from \
         `clusteradm get token` on that hub"
    )]
    Unauthorized(Problem),
    #[error(
        "the user of the bootstrap kubeconfig may not {0}: grant the user that on the hub; the ClusterRole \
         open-cluster-management:bootstrap of deploy/hub.yaml has these rights"
    )]
    Forbidden(String),
    #[error(
        "a right is missing on the hub: {0}; grant it there; the ClusterRole open-cluster-management:bootstrap of \
         deploy/hub.yaml has the rights of the bootstrap kubeconfig"
    )]
    MissingRight(String),
    #[error(
        "this server is no hub, it does not serve ManagedClusters: name a hub, or install the CRDs there (ocm crds --hub)"
    )]
    NoHub,
    #[error(
        "the hub's validation, or a policy or webhook there, refuses it: {0}; use a cluster name that it allows, or have an \
         administrator of the hub change it"
    )]
    Refused(String),
    /// There is no answer.
    #[error("the hub cannot be reached: {problem}; {hint}")]
    Unreachable { problem: Problem, hint: String },
    /// The exec plugin of the bootstrap kubeconfig failed.
    #[error("there are no credentials for the hub: {problem}; {hint}")]
    NoCredentials { problem: Problem, hint: String },
    /// An answer that is none of the above, such as that of an overloaded server.
    #[error("{0}")]
    Failed(String),
}

impl JoinProblem {
    /// The problem behind a request that failed.
    pub(crate) fn of(hub: &Endpoint, error: &Error) -> Self {
        let (problem, hint) = (hub.problem(error), |problem: &Problem| hub.hint(problem));
        match problem {
            _ if error.class() == Class::Refused => Self::Refused(chain(error)),
            Problem::Unauthorized { .. } => Self::Unauthorized(problem),
            Problem::Answer { code: 403, message } => Self::MissingRight(message),
            Problem::Answer { code: 404, .. } => Self::NoHub,
            Problem::Answer { .. } | Problem::Other(_) => Self::Failed(chain(error)),
            Problem::Credentials(_) => Self::NoCredentials { hint: hint(&problem), problem },
            problem => Self::Unreachable { hint: hint(&problem), problem },
        }
    }

    /// Whether somebody must do something before it goes away. Other problems are logged at every try.
    pub(crate) fn is_lasting(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn endpoint(server: &str) -> Endpoint {
        let refused =
            tower::service_fn(|_| async { Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("")) });
        Endpoint::over(server.parse().unwrap(), "default", refused)
    }

    fn said(source: kube::Error) -> String {
        let error = Error::Request { verb: "create", noun: "ManagedCluster c".into(), source: Box::new(source) };
        JoinProblem::of(&endpoint("https://hub:6443"), &error).to_string()
    }

    fn answer(code: u16, message: &str) -> kube::Error {
        kube::Error::Api(Status::failure(message, "").with_code(code).boxed())
    }

    #[test]
    fn each_answer_is_explained_with_what_to_do() {
        let policy =
            "managedclusters \"c\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
        let right = "managedclusters is forbidden: User \"u\" cannot create resource \"managedclusters\"";
        for (code, message, words) in [
            (401, "Unauthorized", ["(401)", "clusteradm get token"]),
            (403, right, ["User \"u\" cannot create", "deploy/hub.yaml"]),
            (403, policy, ["'p' with binding 'b' denied", "use a cluster name that it allows"]),
            (404, "not found", ["no hub", "ocm crds --hub"]),
            (503, "busy", ["failed to create ManagedCluster c", "busy"]),
        ] {
            let said = said(answer(code, message));
            assert!(words.iter().all(|word| said.contains(word)), "{code}: {said}");
        }
    }

    #[test]
    fn a_hub_that_does_not_answer_is_explained_as_by_every_process() {
        let refused = kube::Error::Service(Box::new(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)));
        let said = said(refused);
        assert!(said.contains("cannot be reached: the connection was refused"), "{said}");
        assert!(said.contains("curl --insecure https://hub:6443/version"), "{said}");
    }
}
