//! Placements that select clusters by CEL expressions and by the scores of add-ons.

use anyhow::Result;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use ocm_api::cluster::v1alpha1::AddOnPlacementScore;
use ocm_testing::eventually;
use serde_json::{Value, json};

use crate::{placement_world::Fleet, support::now};

/// Creates or changes the scores in a cluster's AddOnPlacementScore `usage`.
async fn score(fleet: &Fleet, cluster: &str, status: Value) -> Result<()> {
    let client = &fleet.world.client;
    let metadata = ObjectMeta { name: Some(cluster.into()), ..ObjectMeta::default() };
    let (namespaces, namespace) = (Api::all(client.clone()), Namespace { metadata, ..Namespace::default() });
    let scores: Api<AddOnPlacementScore> = Api::namespaced(client.clone(), cluster);
    if namespaces.get_opt(cluster).await?.is_none() {
        namespaces.create(&PostParams::default(), &namespace).await?;
        scores.create(&PostParams::default(), &AddOnPlacementScore::new(cluster, "usage")).await?;
    }
    let patch = Patch::Merge(json!({"status": status}));
    scores.patch_status("usage", &PatchParams::default(), &patch).await?;
    Ok(())
}

fn cpu(value: i32) -> Value {
    json!({"scores": [{"name": "cpu", "value": value}]})
}

/// One cluster, the one with the highest score.
fn best() -> Value {
    let coordinate = json!({"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "cpu"}});
    json!({"numberOfClusters": 1,
        "prioritizerPolicy": {"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate}]}})
}

fn cel(expression: &str) -> Value {
    json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [expression]}}}]})
}

#[tokio::test]
async fn a_cel_expression_selects_clusters_by_any_field_and_an_invalid_one_is_named() -> Result<()> {
    let fleet = Fleet::new().await?;
    let (one, other) = (fleet.cluster(&[]).await?, fleet.cluster(&[]).await?);
    let newer = "semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver('1.30.0'))";
    fleet.place("newer", cel(newer)).await?;
    fleet.wait_for_reason("newer", "False NoManagedClusterMatched").await?;
    fleet.patch_status(&one, json!({"version": {"kubernetes": "v1.31.0"}})).await?;
    fleet.wait_for_clusters("newer", &[&one]).await?;
    fleet.patch_status(&other, json!({"version": {"kubernetes": "v1.32.1"}})).await?;
    fleet.wait_for_clusters("newer", &[&one, &other]).await?;
    fleet.edit("newer", json!({"spec": cel("managedCluster.metadata.(")})).await?;
    let message = fleet.wait_for_condition("newer", "PlacementMisconfigured", "True Misconfigured").await?;
    assert!(message.contains("celSelector.celExpressions[0]: compilation failed: "), "{message}");
    fleet.wait_for_clusters("newer", &[]).await
}

#[tokio::test]
async fn scores_of_add_ons_decide_which_clusters_are_selected_and_preferred() -> Result<()> {
    let fleet = Fleet::new().await?;
    let (one, other) = (fleet.cluster(&[]).await?, fleet.cluster(&[]).await?);
    fleet.place("idle", cel("managedCluster.scores('usage').exists(s, s.name == 'cpu' && s.value > 0)")).await?;
    score(&fleet, &one, cpu(-10)).await?;
    score(&fleet, &other, cpu(50)).await?;
    fleet.place("best", best()).await?;
    fleet.wait_for_clusters("best", &[&other]).await?;
    fleet.wait_for_clusters("idle", &[&other]).await?;
    score(&fleet, &one, cpu(60)).await?;
    fleet.wait_for_clusters("best", &[&one]).await?;
    fleet.wait_for_clusters("idle", &[&one, &other]).await
}

#[tokio::test]
async fn expired_scores_count_as_0_and_the_status_and_an_event_name_them() -> Result<()> {
    let fleet = Fleet::new().await?;
    let cluster = fleet.cluster(&[]).await?;
    let mut expired = cpu(-50);
    expired["validUntil"] = json!((now() - SignedDuration::from_hours(1)).to_string());
    score(&fleet, &cluster, expired).await?;
    fleet.place("best", best()).await?;
    fleet.wait_for_clusters("best", &[&cluster]).await?;
    let message = fleet.wait_for_reason("best", "True AllDecisionsScheduled").await?;
    assert!(message.ends_with(&format!("have expired and count as 0: {cluster}/usage")), "{message}");
    let warning = eventually("the update of the decision is a warning", || async {
        let events = fleet.events("best").await?;
        anyhow::Ok(events.into_iter().find(|event| event.reason.as_deref() == Some("DecisionUpdate")))
    })
    .await?;
    assert_eq!(warning.type_.as_deref(), Some("Warning"));
    Ok(())
}
