//! What a requester may do, as the hub's API server knows it.

use std::sync::Arc;

use k8s_openapi::api::{authorization::v1::ResourceAttributes, core::v1::Namespace};
use kube::{Api, Client};
use ocm_runtime::write;
use tokio::sync::{Semaphore, SemaphorePermit};

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

/// How many requests are sent at a time. An API server that asks more has them wait.
const AT_A_TIME: usize = 32;

/// The hub, which knows the rights of requesters.
#[derive(Clone)]
pub(super) struct Hub {
    client: Option<Client>,
    requests: Arc<Semaphore>,
}

impl Hub {
    pub(super) fn new(client: Option<Client>) -> Self {
        Self { client, requests: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    fn client(&self) -> Result<Client, Refusal> {
        self.client.clone().ok_or_else(|| Refusal::forbidden(NO_CLIENT))
    }

    /// Waits until another request may be sent.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        self.requests.acquire().await.map_err(|error| Refusal::forbidden(error.to_string()))
    }

    /// Refuses what the requester has no right to.
    pub(super) async fn check(&self, requester: &Requester, right: &Right) -> Result<(), Refusal> {
        let client = self.client()?;
        let _turn = self.turn().await?;
        match requester.may(&client, right.attributes.clone()).await {
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
        let _turn = self.turn().await?;
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

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn a_flood_of_questions_is_asked_some_at_a_time() {
        let (asked, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counters = (asked.clone(), most.clone());
        let client = tower::service_fn(move |_: Request<Body>| {
            let (asked, most) = counters.clone();
            async move {
                most.fetch_max(asked.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                asked.fetch_sub(1, Ordering::SeqCst);
                let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {},
                    "status": {"allowed": true}});
                Ok::<_, Infallible>(Response::new(Body::from(review.to_string().into_bytes())))
            }
        });
        let hub = Hub::new(Some(Client::new(client, "default")));
        let mut questions = JoinSet::new();
        for _ in 0..10 * AT_A_TIME {
            let (hub, right) =
                (hub.clone(), Right { attributes: ResourceAttributes::default(), refusal: String::new() });
            questions.spawn(async move { hub.check(&Requester::default(), &right).await.is_ok() });
        }
        assert!(questions.join_all().await.into_iter().all(|is_allowed| is_allowed));
        assert_eq!(most.load(Ordering::SeqCst), AT_A_TIME);
    }
}
