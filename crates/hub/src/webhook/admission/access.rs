//! What a requester may do, as the hub's API server knows it.

use k8s_openapi::api::{authorization::v1::ResourceAttributes, core::v1::Namespace};
use kube::{Api, Client};
use ocm_runtime::write;

use super::refusal::Refusal;
use crate::requester::Requester;

/// The phase of a namespace that is being deleted.
const TERMINATING: &str = "Terminating";

/// What is said without a connection to the hub.
const NO_CLIENT: &str = "the webhook has no kubeconfig and does not run as a pod, so it cannot ask who may do what: start it with \
                         --kubeconfig";

/// A right that a change needs.
#[derive(Clone, Debug)]
pub(super) struct Right {
    /// What is asked of the API server.
    pub(super) attributes: ResourceAttributes,
    /// What the requester may not do without it and how to get it: the message after "user U may not ".
    pub(super) refusal: String,
}

/// The hub, which knows the rights of requesters.
#[derive(Clone)]
pub(super) struct Hub {
    client: Option<Client>,
}

impl Hub {
    pub(super) fn new(client: Option<Client>) -> Self {
        Self { client }
    }

    fn client(&self) -> Result<Client, Refusal> {
        self.client.clone().ok_or_else(|| Refusal::forbidden(NO_CLIENT))
    }

    /// Refuses what the requester has no right to.
    pub(super) async fn check(&self, requester: &Requester, right: &Right) -> Result<(), Refusal> {
        match requester.may(&self.client()?, right.attributes.clone()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::forbidden(format!("user {} may not {}", requester.user, right.refusal))),
            Err(error) => Err(Refusal::forbidden(format!(
                "cannot find out whether user {} may {}: {error}",
                requester.user, right.refusal
            ))),
        }
    }

    /// Refuses to accept a cluster while the namespace of its name is being deleted: the namespace could not be used.
    pub(super) async fn check_namespace(&self, name: &str) -> Result<(), Refusal> {
        let namespaces = Api::<Namespace>::all(self.client()?);
        let namespace = write::get(&namespaces, name).await;
        let namespace = namespace.map_err(|error| {
            Refusal::forbidden(format!("cannot find out whether namespace {name} is being deleted: {error}"))
        })?;
        match namespace {
            Some(namespace) if is_terminating(&namespace) => Err(Refusal::forbidden(format!(
                "namespace {name} is terminating, and the cluster needs it: accept the cluster when it is gone (kubectl get \
                 namespace {name} -o yaml shows what it waits for)"
            ))),
            _ => Ok(()),
        }
    }
}

fn is_terminating(namespace: &Namespace) -> bool {
    let phase = namespace.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some(TERMINATING) || namespace.metadata.deletion_timestamp.is_some()
}
