//! `clusteradm get placements`

use anyhow::Result;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use ocm_api::{
    cluster::v1beta1::{Placement, PlacementDecision},
    labels,
};
use ocm_testing::{ControlPlane, unique};
use serde_json::json;

use crate::hub::{hub, run};

/// A placement with two decisions of one cluster each.
async fn placement(hub: &ControlPlane) -> Result<String> {
    let (name, client) = (unique("placement"), hub.client().await?);
    let placements = Api::<Placement>::namespaced(client.clone(), "default");
    let spec = serde_json::from_value(json!({ "clusterSets": ["blue"] }))?;
    placements.create(&PostParams::default(), &Placement::new("default", &name, spec)).await?;
    let satisfied = json!({
        "type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled", "message": "",
        "lastTransitionTime": "2026-11-21T10:00:00Z",
    });
    let status = json!({ "numberOfSelectedClusters": 2, "decisionGroups": [], "conditions": [satisfied] });
    placements.patch_status(&name, &PatchParams::default(), &Patch::Merge(json!({ "status": status }))).await?;
    let decisions = Api::<PlacementDecision>::namespaced(client, "default");
    for number in 1..=2 {
        let decision = format!("{name}-decision-{number}");
        let mut object = PlacementDecision::new("default", &decision);
        object.metadata.labels = Some([(labels::PLACEMENT.to_owned(), name.clone())].into());
        decisions.create(&PostParams::default(), &object).await?;
        let chosen = json!([{ "clusterName": format!("cluster{number}"), "reason": "" }]);
        let status = Patch::Merge(json!({ "status": { "decisions": chosen } }));
        decisions.patch_status(&decision, &PatchParams::default(), &status).await?;
    }
    Ok(name)
}

#[tokio::test]
async fn the_tree_shows_the_clusters_of_all_decisions() -> Result<()> {
    let hub = hub().await?;
    let (name, other) = (placement(hub).await?, placement(hub).await?);
    let ended = run(hub, &["get", "placements", &name])?;
    assert!(ended.success && ended.stdout.starts_with("<Placement>\n"), "{ended:?}");
    let lines = ["<ClusterSet> blue", "<NumberOfSelectedClusters> 2", "<PlacementDecision> cluster1, cluster2"];
    for line in lines {
        assert!(ended.stdout.contains(line), "{line}: {ended:?}");
    }
    assert!(!ended.stdout.contains(&other), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn the_table_and_the_yaml_show_the_placements_of_a_namespace() -> Result<()> {
    let hub = hub().await?;
    let name = placement(hub).await?;
    let ended = run(hub, &["get", "placements", &name, "-n", "default", "-o", "table"])?;
    let rows: Vec<Vec<_>> = ended.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let headings = vec!["NAME", "STATUS", "REASON", "SELECTEDCLUSTERS"];
    assert_eq!(rows, [headings, vec![&name, "True", "AllDecisionsScheduled", "2"]], "{ended:?}");
    let yaml = run(hub, &["get", "placements", "--namespace", "default", "-o", "yaml"])?;
    assert!(yaml.stdout.contains("kind: Placement\n") && yaml.stdout.contains(&name), "{yaml:?}");
    let elsewhere = run(hub, &["get", "placements", "-n", "kube-system"])?;
    assert!(
        elsewhere.success && elsewhere.stderr.contains("no placements found in namespace kube-system"),
        "{elsewhere:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_placement_that_does_not_exist_is_an_error() -> Result<()> {
    let (hub, name) = (hub().await?, unique("absent"));
    let ended = run(hub, &["get", "placements", &name, "-n", "default"])?;
    ended.assert_failed_with(&[&format!("placement {name} does not exist in namespace default"), "get placements"]);
    Ok(())
}
