//! `clusteradm get clusters`

use anyhow::Result;
use kube::{Api, api::PostParams};
use ocm_api::{
    cluster::{
        v1::{ManagedCluster, ManagedClusterSpec},
        v1beta2::{ManagedClusterSet, ManagedClusterSetSpec},
    },
    labels,
};
use ocm_testing::{ControlPlane, unique};

use crate::hub::{hub, run};

/// A cluster in a set of its own.
async fn cluster_in_a_set(hub: &ControlPlane) -> Result<(String, String)> {
    let (name, set) = (unique("shown"), unique("set"));
    let mut cluster = ManagedCluster::new(&name, ManagedClusterSpec::default());
    cluster.metadata.labels = Some([(labels::CLUSTER_SET.to_owned(), set.clone())].into());
    Api::all(hub.client().await?).create(&PostParams::default(), &cluster).await?;
    let object = ManagedClusterSet::new(&set, ManagedClusterSetSpec::default());
    Api::all(hub.client().await?).create(&PostParams::default(), &object).await?;
    Ok((name, set))
}

#[tokio::test]
async fn the_table_shows_the_clusters_of_a_set() -> Result<()> {
    let hub = hub().await?;
    let (name, set) = cluster_in_a_set(hub).await?;
    cluster_in_a_set(hub).await?;
    let ended = run(hub, &["get", "clusters", "--clusterset", &set, "-o", "table"])?;
    assert!(ended.success, "{ended:?}");
    let lines: Vec<Vec<_>> = ended.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let headings = vec!["NAME", "ACCEPTED", "AVAILABLE", "CLUSTERSET", "CPU", "MEMORY", "KUBERNETES", "VERSION"];
    assert_eq!(lines, [headings, vec![&name, "false", &set]]);
    Ok(())
}

#[tokio::test]
async fn the_tree_is_the_default_and_shows_every_cluster() -> Result<()> {
    let hub = hub().await?;
    let (name, _) = cluster_in_a_set(hub).await?;
    let ended = run(hub, &["get", "clusters"])?;
    assert!(ended.success && ended.stdout.starts_with("<ManagedCluster>\n"), "{ended:?}");
    assert!(ended.stdout.contains(&format!("<{name}>")), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn yaml_output_can_be_applied_again() -> Result<()> {
    let hub = hub().await?;
    let (name, set) = cluster_in_a_set(hub).await?;
    let ended = run(hub, &["get", "clusters", "--clusterset", &set, "-o", "yaml"])?;
    assert!(ended.success && !ended.stdout.contains("managedFields"), "{ended:?}");
    let applied = hub.kubectl_with_input(&["replace", "-f", "-", "-o", "name"], &ended.stdout).await?;
    assert_eq!(applied.trim(), format!("managedcluster.cluster.open-cluster-management.io/{name}"));
    Ok(())
}

#[tokio::test]
async fn a_set_that_does_not_exist_is_an_error() -> Result<()> {
    let (hub, set) = (hub().await?, unique("absent"));
    let ended = run(hub, &["get", "clusters", "--clusterset", &set])?;
    ended.assert_failed_with(&[&format!("cluster set {set} does not exist")]);
    assert_eq!(ended.stdout, "");
    Ok(())
}
