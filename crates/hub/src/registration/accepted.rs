//! Whether the hub accepts a cluster.

use kube::{Api, Client, ResourceExt as _};
use ocm_api::cluster::v1::ManagedCluster;
use ocm_runtime::{Cache, Change, informer::View, write};

use super::names;
use crate::{context::HubContext, error::Result};

/// Whether the hub accepts the cluster, and it is not being deleted.
fn accepts(cluster: &ManagedCluster) -> bool {
    cluster.spec.hub_accepts_client && !write::is_deleting(cluster)
}

/// Whether the hub accepts the cluster since this change.
fn is_newly_accepted(change: Change<'_, ManagedCluster>) -> bool {
    match change {
        Change::Added(new) => accepts(new),
        Change::Updated { old, new } => accepts(new) && !accepts(old),
        Change::Deleted(_) => false,
    }
}

/// The names of the pending requests of the cluster that the hub accepts since this change.
pub(crate) fn requests_to_reconsider(pending: &View<String>, change: Change<'_, ManagedCluster>) -> Vec<String> {
    if !is_newly_accepted(change) {
        return Vec::new();
    }
    let cluster = change.object().name_any();
    pending.read(|all| all.iter().filter(|(_, of)| **of == cluster).map(|(key, _)| key.name.clone()).collect())
}

/// The cluster, if its name is not reserved and the hub accepts it. For what is approved without an administrator: a
/// cluster that the cache has as accepted is read from the API server as well, since a cache can be behind a denial.
///
/// # Errors
/// If the API server does not answer.
pub(crate) async fn accepted_now(
    hub: &HubContext,
    clusters: &Cache<ManagedCluster>,
    cluster: &str,
) -> Result<Option<ManagedCluster>> {
    let is_reserved = names::refusal(cluster, &hub.config.namespace).is_some();
    if is_reserved || !clusters.named(cluster).is_some_and(|cluster| accepts(&cluster)) {
        return Ok(None);
    }
    read_accepted(&hub.client, cluster).await
}

async fn read_accepted(client: &Client, cluster: &str) -> Result<Option<ManagedCluster>> {
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    Ok(write::get(&clusters, cluster).await?.filter(accepts))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json, to_value};

    use super::*;
    use crate::testing::{accepted, client_answered_with, cluster, deleting};

    async fn is_accepted(code: u16, answer: Value) -> bool {
        let client = client_answered_with(vec![(code, answer)]);
        read_accepted(&client, "c1").await.unwrap().is_some()
    }

    #[tokio::test]
    async fn what_the_api_server_has_now_counts() {
        assert!(is_accepted(200, to_value(accepted("c1")).unwrap()).await);
        assert!(!is_accepted(200, to_value(cluster("c1")).unwrap()).await, "it is denied");
        assert!(!is_accepted(200, to_value(deleting(accepted("c1"), &["f"])).unwrap()).await, "it is being deleted");
        let gone = json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "gone"});
        assert!(!is_accepted(404, gone).await, "it does not exist");
    }

    #[test]
    fn a_cluster_is_newly_accepted_once_and_not_while_it_is_being_deleted() {
        let (pending, accepted) = (Arc::new(cluster("c1")), Arc::new(accepted("c1")));
        assert!(is_newly_accepted(Change::Added(&accepted)));
        assert!(is_newly_accepted(Change::Updated { old: &pending, new: &accepted }));
        let leaving = Arc::new(deleting(ManagedCluster::clone(&accepted), &["f"]));
        for change in [
            Change::Added(&pending),
            Change::Added(&leaving),
            Change::Updated { old: &accepted, new: &accepted },
            Change::Updated { old: &accepted, new: &pending },
            Change::Deleted(&accepted),
        ] {
            assert!(!is_newly_accepted(change), "{change:?}");
        }
    }
}
