//! The same writes by a bare client: what the control plane allows.
//!
//! For a placement they are: the placement itself, its decision, the list of clusters in it, the status of the placement,
//! and three events.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use ocm_api::{
    cluster::v1beta1::{Placement, PlacementDecision},
    components, labels,
};
use serde_json::{Value, json};

use super::WANTED;
use crate::AT_A_TIME;

/// Nothing is bound to it, and the hub runs later.
const NAMESPACE: &str = "floor";

/// Makes the writes of so many placements, and takes them back; how long the first took.
pub(super) async fn run(client: &Client, count: usize) -> Result<Duration> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
    match namespaces.create(&PostParams::default(), &namespace).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        outcome => _ = outcome?,
    }
    let started = Instant::now();
    let writes = stream::iter(0..count).map(|index| write(client, index));
    writes.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
    let took = started.elapsed();
    clean(client).await?;
    Ok(took)
}

async fn write(client: &Client, index: usize) -> Result<()> {
    let placements: Api<Placement> = Api::namespaced(client.clone(), NAMESPACE);
    let decisions: Api<PlacementDecision> = Api::namespaced(client.clone(), NAMESPACE);
    let events: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
    let (post, patch) = (PostParams::default(), PatchParams::default());
    let name = super::name(index);
    let mut placement = super::placement(&name)?;
    placement.metadata.namespace = None;
    let uid = placements.create(&post, &placement).await?.metadata.uid;
    let decision = components::placement_decision_name(&name, 1);
    decisions.create(&post, &serde_json::from_value(made(&name, &decision, uid.as_deref()))?).await?;
    decisions.patch_status(&decision, &patch, &Patch::Merge(listed())).await?;
    placements.patch_status(&name, &patch, &Patch::Merge(said(&decision))).await?;
    for number in 0..3 {
        events.create(&post, &serde_json::from_value(event(&name, &decision, number))?).await?;
    }
    Ok(())
}

async fn clean(client: &Client) -> Result<()> {
    let everything = (DeleteParams::default(), ListParams::default());
    let placements: Api<Placement> = Api::namespaced(client.clone(), NAMESPACE);
    placements.delete_collection(&everything.0, &everything.1).await?;
    let decisions: Api<PlacementDecision> = Api::namespaced(client.clone(), NAMESPACE);
    decisions.delete_collection(&everything.0, &everything.1).await?;
    let events: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
    events.delete_collection(&everything.0, &everything.1).await?;
    Ok(())
}

fn made(placement: &str, name: &str, uid: Option<&str>) -> Value {
    let labels = json!({
        labels::PLACEMENT: placement, labels::DECISION_GROUP_NAME: "", labels::DECISION_GROUP_INDEX: "0",
    });
    let owner = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "name": placement, "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    });
    json!({"metadata": {"name": name, "labels": labels, "ownerReferences": [owner]}})
}

fn listed() -> Value {
    let chosen = |index: usize| json!({"clusterName": format!("cluster-{index:04}"), "reason": ""});
    json!({"status": {"decisions": (0..WANTED).map(chosen).collect::<Vec<_>>()}})
}

fn said(decision: &str) -> Value {
    let condition = |type_: &str, status: &str, reason: &str| {
        json!({"type": type_, "status": status, "reason": reason, "message": "What there is to say",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let group = json!({
        "decisionGroupIndex": 0, "decisionGroupName": "", "decisions": [decision], "clusterCount": WANTED,
    });
    json!({"status": {
        "numberOfSelectedClusters": WANTED,
        "decisionGroups": [group],
        "conditions": [
            condition("PlacementMisconfigured", "False", "Succeedconfigured"),
            condition("PlacementSatisfied", "True", "AllDecisionsScheduled"),
        ],
    }})
}

fn event(placement: &str, decision: &str, number: usize) -> Value {
    let reference = |kind: &str, name: &str| {
        json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": kind, "name": name,
            "namespace": NAMESPACE})
    };
    json!({
        "metadata": {"name": format!("{placement}.{number}"), "namespace": NAMESPACE},
        "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal", "reason": "ScoreUpdate", "action": "ScoreUpdated",
        // As long as scores of a thousand clusters are.
        "note": "x".repeat(if number == 2 { 1000 } else { 60 }),
        "reportingController": "placement-controller", "reportingInstance": "placement-controller-bench",
        "regarding": reference("Placement", placement), "related": reference("PlacementDecision", decision),
    })
}
