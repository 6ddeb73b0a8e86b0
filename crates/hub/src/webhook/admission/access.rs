//! What a requester may do, as the hub's API server knows it.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    authentication::v1::UserInfo,
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    core::v1::Namespace,
};
use kube::{Api, Client, api::PostParams};
use ocm_runtime::{ResultExt as _, write};

use super::refusal::Refusal;

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

/// Who makes a change.
#[derive(Clone, Debug)]
pub(super) struct Requester {
    user: String,
    uid: Option<String>,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Vec<String>>>,
}

impl Requester {
    pub(super) fn of(user: &UserInfo) -> Self {
        let UserInfo { username, uid, groups, extra } = user.clone();
        Self { user: username.unwrap_or_default(), uid, groups, extra }
    }

    pub(super) fn review(&self, attributes: ResourceAttributes) -> SubjectAccessReview {
        SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(self.user.clone()),
                uid: self.uid.clone(),
                groups: self.groups.clone(),
                extra: self.extra.clone(),
                resource_attributes: Some(attributes),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        }
    }
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
        let reviews = Api::<SubjectAccessReview>::all(self.client()?);
        let review = requester.review(right.attributes.clone());
        let outcome = reviews.create(&PostParams::default(), &review).await;
        let outcome = outcome.while_trying_to("create", || "SubjectAccessReview".into());
        let review = outcome.map_err(|error| {
            Refusal::forbidden(format!(
                "cannot find out whether user {} may {}: {error}",
                requester.user, right.refusal
            ))
        })?;
        match review.status {
            Some(status) if status.allowed => Ok(()),
            _ => Err(Refusal::forbidden(format!("user {} may not {}", requester.user, right.refusal))),
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
