//! What an executor may do, as the managed cluster knows it.

use futures::{StreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReviewSpec};
use kube::Client;
use ocm_api::work::v1::ManifestResourceMeta;
use ocm_runtime::{Result, access::is_allowed};

use super::subject::ServiceAccount;

/// What the executor needs to be allowed for every object.
const VERBS: [&str; 4] = ["create", "update", "patch", "get"];
/// And for one that is deleted with its work.
const DELETE: &str = "delete";

/// What a work does to one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Access {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) resource: String,
    /// Empty for a resource without namespaces.
    pub(super) namespace: String,
    pub(super) name: String,
    /// Whether the object is deleted with the work.
    pub(super) deletes: bool,
}

impl Access {
    pub(super) fn new(meta: &ManifestResourceMeta, deletes: bool) -> Self {
        let ManifestResourceMeta { group, version, resource, namespace, name, .. } = meta.clone();
        Self { group, version, resource, namespace, name, deletes }
    }

    /// The verbs that are checked, in this order.
    pub(super) fn verbs(&self) -> impl Iterator<Item = &'static str> + use<> {
        VERBS.into_iter().chain(self.deletes.then_some(DELETE))
    }

    fn review(&self, account: &ServiceAccount, verb: &str) -> SubjectAccessReviewSpec {
        let attributes = ResourceAttributes {
            group: Some(self.group.clone()),
            version: Some(self.version.clone()),
            resource: Some(self.resource.clone()),
            namespace: Some(self.namespace.clone()),
            name: Some(self.name.clone()),
            verb: Some(verb.into()),
            ..ResourceAttributes::default()
        };
        SubjectAccessReviewSpec {
            user: Some(account.user()),
            groups: Some(account.groups().to_vec()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        }
    }
}

/// The first verb that the account may not use; `None` if it may use all. The requests for the verbs of one object are sent
/// at the same time, and no more than these: a pass goes through the objects of a work one by one.
pub(super) async fn first_denied(
    client: &Client,
    account: &ServiceAccount,
    access: &Access,
) -> Result<Option<&'static str>> {
    let reviews: Vec<_> = access.verbs().map(|verb| access.review(account, verb)).collect();
    let at_a_time = reviews.len();
    let mut answers = stream::iter(reviews).map(|review| is_allowed(client, review)).buffered(at_a_time);
    for verb in access.verbs() {
        if !answers.next().await.transpose()?.unwrap_or(false) {
            return Ok(Some(verb));
        }
    }
    Ok(None)
}
