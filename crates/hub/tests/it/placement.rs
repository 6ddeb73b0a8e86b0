//! Placements: the clusters that they select, and their conditions if they select none.

use anyhow::Result;
use jiff::SignedDuration;
use kube::{ResourceExt as _, api::DeleteParams};
use ocm_testing::eventually;
use serde_json::{Value, json};

use crate::{
    placement_world::{Fleet, gone},
    support::now,
};

fn labelled(key: &str, value: &str) -> Value {
    json!([{"requiredClusterSelector": {"labelSelector": {"matchLabels": {key: value}}}}])
}

#[tokio::test]
async fn a_placement_gets_the_clusters_that_fit_in_a_decision_that_it_owns() -> Result<()> {
    let fleet = Fleet::new().await?;
    let prod = fleet.cluster(&[("env", "prod")]).await?;
    fleet.cluster(&[("env", "dev")]).await?;
    let placement = fleet.place("prod", json!({"predicates": labelled("env", "prod"), "numberOfClusters": 2})).await?;
    fleet.wait_for_clusters("prod", &[&prod]).await?;
    let decision = serde_json::to_value(fleet.decisions().get("prod-decision-1").await?)?;
    let labels = json!({
        "cluster.open-cluster-management.io/placement": "prod",
        "cluster.open-cluster-management.io/decision-group-name": "",
        "cluster.open-cluster-management.io/decision-group-index": "0",
    });
    assert_eq!(decision["metadata"]["labels"], labels);
    let owner = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "name": "prod",
        "uid": placement.uid(), "controller": true, "blockOwnerDeletion": true});
    assert_eq!(decision["metadata"]["ownerReferences"], json!([owner]));
    assert_eq!(decision["status"], json!({"decisions": [{"clusterName": prod, "reason": ""}]}));
    let message = fleet.wait_for_reason("prod", "False NotAllDecisionsScheduled").await?;
    assert!(message.contains("1 more are requested"), "{message}");
    let status = serde_json::to_value(fleet.placements().get("prod").await?.status)?;
    let group =
        json!({"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": ["prod-decision-1"], "clusterCount": 1});
    assert_eq!(status["decisionGroups"], json!([group]));
    let types: Vec<_> = status["conditions"].as_array().into_iter().flatten().map(|it| it["type"].clone()).collect();
    assert_eq!(types, ["PlacementMisconfigured", "PlacementSatisfied"]);
    Ok(())
}

#[tokio::test]
async fn events_report_what_happens_to_a_decision() -> Result<()> {
    let fleet = Fleet::new().await?;
    let one = fleet.cluster(&[]).await?;
    fleet.place("p", json!({})).await?;
    fleet.wait_for_clusters("p", &[&one]).await?;
    let recorded = eventually("three events are there", || async {
        let events = fleet.events("p").await?;
        anyhow::Ok((events.len() == 3).then_some(events))
    })
    .await?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let events: Vec<_> = recorded.iter().map(|event| (text(&event.reason), text(&event.action))).collect();
    let expected =
        [("DecisionCreate", "DecisionCreated"), ("DecisionUpdate", "DecisionUpdated"), ("ScoreUpdate", "ScoreUpdated")];
    assert_eq!(events, expected.map(|(reason, action)| (reason.to_owned(), action.to_owned())));
    assert_eq!(recorded[2].note, Some(format!("{one}:100 ")));
    let related = recorded[0].related.clone().unwrap_or_default();
    assert_eq!((text(&related.kind), text(&related.name)), ("PlacementDecision".into(), "p-decision-1".into()));
    assert_eq!(recorded[0].reporting_controller.as_deref(), Some("placement-controller"));
    assert_eq!(recorded[0].type_.as_deref(), Some("Normal"));
    Ok(())
}

#[tokio::test]
async fn a_placement_says_which_of_binding_set_and_clusters_is_missing() -> Result<()> {
    let fleet = Fleet::unbound().await?;
    fleet.place("p", json!({"clusterSets": [fleet.set]})).await?;
    fleet.wait_for_reason("p", "False NoManagedClusterSetBindings").await?;
    fleet.bind(&fleet.set).await?;
    fleet.bind("global").await?;
    let message = fleet.wait_for_reason("p", "False NoIntersection").await?;
    assert!(message.contains(&fleet.set), "{message}");
    fleet.create_set(json!({})).await?;
    let message = fleet.wait_for_reason("p", "False AllManagedClusterSetsEmpty").await?;
    assert!(message.contains(&fleet.set), "{message}");
    let one = fleet.cluster(&[]).await?;
    fleet.wait_for_clusters("p", &[&one]).await?;
    fleet.bindings().delete(&fleet.set, &DeleteParams::default()).await?;
    fleet.wait_for_clusters("p", &[]).await?;
    fleet.wait_for_reason("p", "False NoIntersection").await?;
    // The number stays in the status once it was not 0, and so does the empty list.
    let status = serde_json::to_value(fleet.placements().get("p").await?.status)?;
    assert_eq!(status["numberOfSelectedClusters"], 0);
    let decision = fleet.decisions().get("p-decision-1").await?;
    assert_eq!(serde_json::to_value(decision.status)?, json!({"decisions": []}));
    Ok(())
}

#[tokio::test]
async fn a_placement_that_never_chose_has_no_number_and_its_decision_no_status() -> Result<()> {
    let fleet = Fleet::new().await?;
    fleet.place("p", json!({})).await?;
    fleet.wait_for_reason("p", "False AllManagedClusterSetsEmpty").await?;
    let placement = fleet.world.get("placement", &fleet.namespace, "p").await.unwrap_or_default();
    assert!(placement["status"].get("numberOfSelectedClusters").is_none(), "{placement}");
    let decision = fleet.world.get("placementdecision", &fleet.namespace, "p-decision-1").await.unwrap_or_default();
    assert!(decision["metadata"]["name"] == "p-decision-1" && decision.get("status").is_none(), "{decision}");
    Ok(())
}

#[tokio::test]
async fn chosen_clusters_are_kept_and_one_that_goes_is_replaced() -> Result<()> {
    let fleet = Fleet::new().await?;
    let (one, two) = (fleet.cluster(&[]).await?, fleet.cluster(&[]).await?);
    fleet.place("p", json!({"numberOfClusters": 2})).await?;
    fleet.wait_for_clusters("p", &[&one, &two]).await?;
    fleet.wait_for_reason("p", "True AllDecisionsScheduled").await?;
    let three = fleet.cluster(&[]).await?;
    fleet.settle().await?;
    fleet.wait_for_clusters("p", &[&one, &two]).await?;
    fleet.world.clusters().delete(&one, &DeleteParams::default()).await?;
    fleet.wait_for_clusters("p", &[&two, &three]).await
}

#[tokio::test]
async fn a_claim_decides_as_a_label_does() -> Result<()> {
    let fleet = Fleet::new().await?;
    let (here, there) = (fleet.cluster(&[]).await?, fleet.cluster(&[]).await?);
    fleet.patch_status(&here, json!({"clusterClaims": [{"name": "region", "value": "eu"}]})).await?;
    let expression = json!({"key": "region", "operator": "In", "values": ["eu"]});
    let selector = json!({"requiredClusterSelector": {"claimSelector": {"matchExpressions": [expression]}}});
    fleet.place("eu", json!({"predicates": [selector]})).await?;
    fleet.wait_for_clusters("eu", &[&here]).await?;
    fleet.patch_status(&there, json!({"clusterClaims": [{"name": "region", "value": "eu"}]})).await?;
    fleet.wait_for_clusters("eu", &[&here, &there]).await
}

#[tokio::test]
async fn a_taint_keeps_a_cluster_out_until_it_is_tolerated_and_a_limit_ends_by_itself() -> Result<()> {
    let fleet = Fleet::new().await?;
    let one = fleet.cluster(&[]).await?;
    fleet.place("strict", json!({})).await?;
    fleet.place("tolerant", json!({"tolerations": [{"key": "full", "operator": "Exists"}]})).await?;
    let limited = json!({"tolerations": [{"key": "full", "operator": "Exists", "tolerationSeconds": 3600}]});
    fleet.place("limited", limited).await?;
    for name in ["strict", "tolerant", "limited"] {
        fleet.wait_for_clusters(name, &[&one]).await?;
    }
    let since = |seconds| {
        json!({"spec": {"taints": [
            {"key": "full", "effect": "NoSelect", "timeAdded": now() - SignedDuration::from_secs(seconds)},
        ]}})
    };
    fleet.world.patch(&one, since(0)).await?;
    fleet.wait_for_clusters("strict", &[]).await?;
    fleet.wait_for_reason("strict", "False NoManagedClusterMatched").await?;
    fleet.settle().await?;
    fleet.wait_for_clusters("limited", &[&one]).await?;
    // It ends by itself soon after this change, not with it.
    fleet.world.patch(&one, since(3600 - 2)).await?;
    fleet.wait_for_clusters("limited", &[]).await?;
    fleet.wait_for_clusters("tolerant", &[&one]).await
}

#[tokio::test]
async fn a_mistake_in_the_spec_is_told_with_its_field_until_it_is_corrected() -> Result<()> {
    let fleet = Fleet::new().await?;
    let one = fleet.cluster(&[]).await?;
    let wrong = json!({"matchExpressions": [{"key": "env", "operator": "Like", "values": ["prod"]}]});
    fleet.place("p", json!({"predicates": [{"requiredClusterSelector": {"labelSelector": wrong}}]})).await?;
    let message = fleet.wait_for_condition("p", "PlacementMisconfigured", "True Misconfigured").await?;
    assert!(message.contains("spec.predicates[0].requiredClusterSelector.labelSelector"), "{message}");
    fleet.wait_for_reason("p", "False NoManagedClusterMatched").await?;
    fleet.edit("p", json!({"spec": {"predicates": null}})).await?;
    fleet.wait_for_condition("p", "PlacementMisconfigured", "False Succeedconfigured").await?;
    fleet.wait_for_clusters("p", &[&one]).await?;
    let unknown =
        json!({"configurations": [{"scoreCoordinate": {"type": "BuiltIn", "builtIn": "NoSuch"}, "weight": 2}]});
    fleet.edit("p", json!({"spec": {"prioritizerPolicy": unknown}})).await?;
    let message = fleet.wait_for_condition("p", "PlacementMisconfigured", "True Misconfigured").await?;
    assert!(message.contains("NoSuch"), "{message}");
    fleet.wait_for_clusters("p", &[]).await
}

#[tokio::test]
async fn groups_have_decisions_of_their_own() -> Result<()> {
    let fleet = Fleet::new().await?;
    let canary = fleet.cluster(&[("role", "canary")]).await?;
    let (one, two) = (fleet.cluster(&[]).await?, fleet.cluster(&[]).await?);
    let group =
        json!({"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"role": "canary"}}}});
    let strategy = json!({"groupStrategy": {"decisionGroups": [group], "clustersPerDecisionGroup": 1}});
    fleet.place("p", json!({"decisionStrategy": strategy})).await?;
    fleet.wait_for_clusters("p", &[&canary, &one, &two]).await?;
    let groups = fleet.placements().get("p").await?.status.unwrap_or_default().decision_groups;
    let groups: Vec<_> =
        groups.iter().map(|it| (&*it.decision_group_name, it.clusters_count, &*it.decisions[0])).collect();
    assert_eq!(groups, [("canary", 1, "p-decision-1"), ("", 1, "p-decision-2"), ("", 1, "p-decision-3")]);
    let first = fleet.decisions().get("p-decision-1").await?;
    assert_eq!(first.labels()["cluster.open-cluster-management.io/decision-group-name"], "canary");
    assert_eq!(first.status.unwrap_or_default().decisions[0].cluster_name, canary);
    fleet.edit("p", json!({"spec": {"decisionStrategy": null}})).await?;
    gone(&fleet.decisions(), "p-decision-3").await?;
    gone(&fleet.decisions(), "p-decision-2").await?;
    fleet.wait_for_clusters("p", &[&canary, &one, &two]).await
}
