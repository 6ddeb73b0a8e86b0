//! Whether a hub can be used: it answers, the bootstrap identity has the rights to join, and the cluster is not refused.

use std::{future::Future, time::Duration};

use futures::future::try_join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{Api, Client, Resource as _};
use ocm_api::cluster::v1::ManagedCluster;
use ocm_runtime::{Error, client::Endpoint, error::ResultExt as _, write};

use super::Unusable;
use crate::{agent::USER_AGENT, registration::join_problem::JoinProblem};

/// How long a hub may take to answer, in total.
const PATIENCE: Duration = Duration::from_secs(10);
const CERTIFICATES: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";
const CLUSTERS: &str = "managedclusters";

/// Checks that the agent can join the hub with a bootstrap identity.
pub(super) async fn can_join(hub: &Endpoint, cluster: &str) -> Result<(), Unusable> {
    let client = hub.client(USER_AGENT)?;
    // A plugin may take longer than a server.
    hub.authenticate().await?;
    in_time(may_join(hub, &client, cluster)).await
}

/// Checks that the hub accepts the cluster, with the agent's own identity.
pub(super) async fn is_accepted(hub: &Endpoint, cluster: &str) -> Result<(), Unusable> {
    let client = hub.client(USER_AGENT)?;
    in_time(async {
        match acceptance(hub, &client, cluster).await? {
            Some(true) => Ok(()),
            Some(false) | None => Err(Unusable::NotAccepted(cluster.into())),
        }
    })
    .await
}

async fn in_time(check: impl Future<Output = Result<(), Unusable>>) -> Result<(), Unusable> {
    tokio::time::timeout(PATIENCE, check).await.map_err(|_| Unusable::NoAnswer(PATIENCE))?
}

async fn may_join(hub: &Endpoint, client: &Client, cluster: &str) -> Result<(), Unusable> {
    let missing = missing_rights(client).await.map_err(|error| JoinProblem::of(hub, &error))?;
    if !missing.is_empty() {
        return Err(JoinProblem::Forbidden(missing.join(", ")).into());
    }
    match acceptance(hub, client, cluster).await? {
        Some(true) | None => Ok(()),
        Some(false) => Err(Unusable::NotAccepted(cluster.into())),
    }
}

/// Whether the hub accepts the cluster; `None` if it does not know the cluster.
async fn acceptance(hub: &Endpoint, client: &Client, cluster: &str) -> Result<Option<bool>, JoinProblem> {
    match Api::<ManagedCluster>::all(client.clone()).get(cluster).await {
        Ok(found) => Ok(Some(found.spec.hub_accepts_client)),
        Err(error) if is_missing_object(&error, cluster) => Ok(None),
        Err(error) => {
            let failed = Err(error).while_trying_to("get", || format!("ManagedCluster {cluster}"));
            failed.map_err(|error| JoinProblem::of(hub, &error))
        }
    }
}

/// The API server names the object that it does not have, but not one of a kind that it does not have.
fn is_missing_object(error: &kube::Error, name: &str) -> bool {
    let kube::Error::Api(status) = error else { return false };
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.name == name)
}

/// The rights to join that the bootstrap identity lacks.
async fn missing_rights(client: &Client) -> Result<Vec<String>, Error> {
    let clusters = ["create", "get"].map(|verb| right(&ManagedCluster::group(&()), CLUSTERS, verb));
    let requests = ["create", "get", "list", "watch"].map(|verb| right(CERTIFICATES, REQUESTS, verb));
    let reviews = clusters.into_iter().chain(requests).map(|right| lacks(client, right));
    Ok(try_join_all(reviews).await?.into_iter().flatten().collect())
}

fn right(group: &str, resource: &str, verb: &str) -> ResourceAttributes {
    let text = |text: &str| Some(text.to_owned());
    ResourceAttributes {
        group: text(group),
        resource: text(resource),
        verb: text(verb),
        ..ResourceAttributes::default()
    }
}

/// The right as a text if it is missing.
async fn lacks(client: &Client, right: ResourceAttributes) -> Result<Option<String>, Error> {
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(right.clone()), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let answer = write::create(&Api::all(client.clone()), &review).await?;
    let is_allowed = answer.status.is_some_and(|status| status.allowed);
    let [verb, resource, group] = [right.verb, right.resource, right.group].map(Option::unwrap_or_default);
    Ok((!is_allowed).then(|| format!("{verb} {resource}.{group}")))
}

#[cfg(test)]
mod tests {
    use ocm_runtime::error::chain;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Mock;

    fn review(allowed: bool) -> (u16, Value) {
        (201, json!({"spec": {}, "status": {"allowed": allowed}}))
    }

    fn refused(code: u16, details: &Value) -> (u16, Value) {
        (code, json!({"kind": "Status", "status": "Failure", "code": code, "message": "no", "details": details}))
    }

    fn missing(name: &str) -> (u16, Value) {
        refused(404, &json!({"name": name, "kind": "managedclusters"}))
    }

    fn accepting(accepts: bool) -> (u16, Value) {
        (200, json!({"metadata": {"name": "cluster1"}, "spec": {"hubAcceptsClient": accepts}}))
    }

    async fn tried(mock: &Mock) -> Result<(), String> {
        may_join(&mock.endpoint(), &mock.client(), "cluster1").await.map_err(|cause| chain(&cause))
    }

    /// What comes of a hub that allows everything, and then answers this about the cluster.
    async fn with_cluster(answer: (u16, Value)) -> Result<(), String> {
        let answers = vec![review(true); 6].into_iter().chain([answer]).collect();
        tried(&Mock::answering(answers)).await
    }

    #[tokio::test]
    async fn a_hub_that_does_not_know_the_cluster_or_accepts_it_can_be_used() {
        assert_eq!(with_cluster(missing("cluster1")).await, Ok(()));
        assert_eq!(with_cluster(accepting(true)).await, Ok(()));
    }

    #[tokio::test]
    async fn a_hub_that_refuses_the_cluster_and_a_server_that_is_no_hub_cannot_be_used() {
        let denied = with_cluster(accepting(false)).await.unwrap_err();
        assert!(denied.contains("clusteradm accept --clusters cluster1"), "{denied}");
        let no_hub = with_cluster(refused(404, &json!({}))).await.unwrap_err();
        assert!(no_hub.contains("does not serve ManagedClusters"), "{no_hub}");
        let busy = with_cluster(refused(500, &json!({}))).await.unwrap_err();
        assert!(busy.contains("failed to get ManagedCluster cluster1: no"), "{busy}");
    }

    #[tokio::test]
    async fn every_missing_right_is_named() {
        let allowed = [false, true, false, true, true, false];
        let mock = Mock::answering(allowed.into_iter().map(review).collect());
        let cause = tried(&mock).await.unwrap_err();
        let expected = "may not create managedclusters.cluster.open-cluster-management.io, create \
                        certificatesigningrequests.certificates.k8s.io, watch certificatesigningrequests.certificates.k8s.io:";
        assert!(cause.contains(expected), "{cause}");
        let asked: Vec<_> =
            mock.bodies().iter().map(|body| body["spec"]["resourceAttributes"]["verb"].clone()).collect();
        assert_eq!(asked, ["create", "get", "create", "get", "list", "watch"]);
    }

    #[tokio::test]
    async fn credentials_that_the_hub_does_not_know_are_to_be_renewed() {
        let mock = Mock::answering(vec![refused(401, &json!({})); 6]);
        let cause = tried(&mock).await.unwrap_err();
        assert!(cause.contains("(401)") && cause.contains("clusteradm get token"), "{cause}");
    }
}
