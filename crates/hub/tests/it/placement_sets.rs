//! Bindings of cluster sets, and the namespaces that sets want on their clusters.

use anyhow::Result;
use kube::api::{DeleteParams, Patch, PatchParams};
use ocm_runtime::conditions;
use ocm_testing::{Seen, eventually};
use serde_json::{Value, json};

use crate::placement_world::Fleet;

async fn wait_for_binding(fleet: &Fleet, expected: &str) -> Result<()> {
    eventually(&format!("the binding is {expected}"), || async {
        let conditions = fleet.bindings().get(&fleet.set).await?.status.unwrap_or_default().conditions;
        Ok::<_, kube::Error>(match conditions::find(&conditions, "Bound") {
            Some(found) if format!("{} {}", found.status, found.reason) == expected => Seen::Settled(()),
            other => Seen::NotYet(format!("{other:?}")),
        })
    })
    .await
}

#[tokio::test]
async fn a_binding_says_whether_its_set_exists() -> Result<()> {
    let fleet = Fleet::unbound().await?;
    fleet.bind(&fleet.set).await?;
    wait_for_binding(&fleet, "False ClusterSetNotFound").await?;
    fleet.create_set(json!({})).await?;
    wait_for_binding(&fleet, "True ClusterSetBound").await?;
    fleet.sets().delete(&fleet.set, &DeleteParams::default()).await?;
    wait_for_binding(&fleet, "False ClusterSetNotFound").await
}

async fn wait_for_namespaces(fleet: &Fleet, cluster: &str, expected: &Value) -> Result<()> {
    eventually(&format!("cluster {cluster} has the namespaces {expected}"), || async {
        let status = fleet.world.clusters().get(cluster).await?.status.unwrap_or_default();
        let found = serde_json::to_value(status.managed_namespaces)?;
        anyhow::Ok(if found == *expected { Seen::Settled(()) } else { Seen::NotYet(found.to_string()) })
    })
    .await
}

#[tokio::test]
async fn the_status_of_a_cluster_lists_the_namespaces_that_its_sets_ask_for() -> Result<()> {
    let fleet = Fleet::unbound().await?;
    fleet.create_set(json!({"managedNamespaces": [{"name": "b"}, {"name": "a"}]})).await?;
    let cluster = fleet.cluster(&[]).await?;
    let wants = |names: &[&str]| {
        json!(names.iter().map(|name| json!({"clusterSet": fleet.set, "name": name})).collect::<Vec<_>>())
    };
    wait_for_namespaces(&fleet, &cluster, &wants(&["a", "b"])).await?;
    let fewer = Patch::Merge(json!({"spec": {"managedNamespaces": [{"name": "b"}]}}));
    fleet.sets().patch(&fleet.set, &PatchParams::default(), &fewer).await?;
    wait_for_namespaces(&fleet, &cluster, &wants(&["b"])).await?;
    let elsewhere = json!({"metadata": {"labels": {"cluster.open-cluster-management.io/clusterset": null}}});
    fleet.world.patch(&cluster, elsewhere).await?;
    wait_for_namespaces(&fleet, &cluster, &json!([])).await
}
