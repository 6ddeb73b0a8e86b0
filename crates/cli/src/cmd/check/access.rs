//! Compares rights with those that an API server grants. Access reviews write nothing.

use k8s_openapi::api::{
    authorization::v1::{
        ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
        SubjectAccessReviewSpec,
    },
    core::v1::ServiceAccount,
};
use kube::{
    Client,
    api::{Api, PostParams},
};
use ocm_api::identities;
use tokio::task::JoinSet;

use super::{
    model::Outcome,
    rights::{self, Account, Right},
};
use crate::client::Connection;

/// How many reviews are asked for at the same time.
const AT_ONCE: usize = 16;

/// Who should have the rights.
#[derive(Clone, Copy, Debug)]
pub(super) enum Holder {
    /// The user of the kubeconfig.
    Myself,
    Account(Account),
}

/// Compares the rights of `holder` with `expected`. `grant` is the command that grants them.
pub(super) async fn compare(server: &Connection, holder: Holder, expected: Vec<Right>, grant: &str) -> Outcome {
    if let Some(outcome) = absent(server, holder, grant).await {
        return outcome;
    }
    let count = expected.len();
    match missing(&server.client, holder, expected).await {
        Ok(missing) if missing.is_empty() => Outcome::ok(format!("{} has all {count} rights", name(holder))),
        Ok(missing) => {
            let message =
                format!("{} lacks {} of {count} rights: {}", name(holder), missing.len(), rights::list(&missing));
            Outcome::failed(message).hint(grant)
        }
        Err(error) => Outcome::of_error(server, "review rights", &error),
    }
}

/// Rights can be bound to an account that does not exist. Without the right to read accounts, it is taken to exist.
async fn absent(server: &Connection, holder: Holder, grant: &str) -> Option<Outcome> {
    let Holder::Account(Account { namespace, name: account }) = holder else { return None };
    match Api::<ServiceAccount>::namespaced(server.client.clone(), namespace).get_metadata_opt(account).await {
        Ok(Some(_)) | Err(kube::Error::Api(_)) => None,
        Ok(None) => Some(Outcome::failed(format!("{} does not exist", name(holder))).hint(grant)),
        Err(error) => Some(Outcome::of_error(server, &format!("read {}", name(holder)), &error)),
    }
}

fn name(holder: Holder) -> String {
    match holder {
        Holder::Myself => "the user".to_owned(),
        Holder::Account(Account { namespace, name }) => format!("service account {namespace}/{name}"),
    }
}

async fn missing(client: &Client, holder: Holder, expected: Vec<Right>) -> kube::Result<Vec<Right>> {
    let mut missing = Vec::new();
    for some in expected.chunks(AT_ONCE) {
        let reviews: JoinSet<_> = some.iter().map(|right| review(client.clone(), holder, right.clone())).collect();
        for reviewed in reviews.join_all().await {
            missing.extend(reviewed?);
        }
    }
    missing.sort();
    Ok(missing)
}

/// Returns the right if it is not granted.
async fn review(client: Client, holder: Holder, right: Right) -> kube::Result<Option<Right>> {
    let is_granted = match holder {
        Holder::Myself => has(client, &right).await?,
        Holder::Account(account) => account_has(client, account, &right).await?,
    };
    Ok((!is_granted).then_some(right))
}

async fn has(client: Client, right: &Right) -> kube::Result<bool> {
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes(right)), ..<_>::default() };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let review = Api::<SelfSubjectAccessReview>::all(client).create(&PostParams::default(), &review).await?;
    Ok(review.status.is_some_and(|status| status.allowed))
}

async fn account_has(client: Client, account: Account, right: &Right) -> kube::Result<bool> {
    let spec = SubjectAccessReviewSpec {
        user: Some(identities::service_account_user(account.namespace, account.name)),
        groups: Some(identities::service_account_groups(account.namespace).into()),
        resource_attributes: Some(attributes(right)),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let review = Api::<SubjectAccessReview>::all(client).create(&PostParams::default(), &review).await?;
    Ok(review.status.is_some_and(|status| status.allowed))
}

fn attributes(right: &Right) -> ResourceAttributes {
    let Right { namespace, group, resource, subresource, name, verb } = right.clone();
    ResourceAttributes {
        namespace,
        group: Some(group),
        resource: Some(resource),
        subresource,
        name,
        verb: Some(verb),
        ..ResourceAttributes::default()
    }
}
