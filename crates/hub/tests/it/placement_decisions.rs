//! The decisions of placements, and what others do to them meanwhile.

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use ocm_hub::{Hub, HubConfig};
use ocm_testing::{
    ControlPlane, Seen, client_for, eventually,
    fault::{Asked, Fault, FaultyServer, Injection},
};
use serde_json::{Value, json};

use crate::{
    placement_world::{Fleet, gone},
    support::{ACCOUNT, NAMESPACE, World, install},
};

#[tokio::test]
async fn decisions_that_somebody_deletes_or_edits_are_put_right_and_go_with_their_placement() -> Result<()> {
    let fleet = Fleet::new().await?;
    let one = fleet.cluster(&[]).await?;
    fleet.place("p", json!({})).await?;
    fleet.wait_for_clusters("p", &[&one]).await?;
    let first = fleet.decisions().get("p-decision-1").await?.uid();
    fleet.decisions().delete("p-decision-1", &DeleteParams::default()).await?;
    eventually("the decision is there again", || async {
        let found = fleet.decisions().get_opt("p-decision-1").await?;
        Ok::<_, kube::Error>(found.is_some_and(|found| found.uid() != first && found.status.is_some()))
    })
    .await?;
    let nothing = Patch::Merge(json!({"status": {"decisions": []}}));
    fleet.decisions().patch_status("p-decision-1", &PatchParams::default(), &nothing).await?;
    fleet.wait_for_clusters("p", &[&one]).await?;
    fleet.placements().delete("p", &DeleteParams::default()).await?;
    gone(&fleet.decisions(), "p-decision-1").await
}

#[tokio::test]
async fn placements_that_are_decided_at_the_same_time_spread_over_the_clusters() -> Result<()> {
    const COUNT: usize = 8;
    let fleet = Fleet::unbound().await?;
    fleet.create_set(json!({})).await?;
    let mut clusters = Vec::new();
    for _ in 0..COUNT {
        clusters.push(fleet.cluster(&[]).await?);
    }
    let names: Vec<_> = (0..COUNT).map(|index| format!("p{index}")).collect();
    for name in &names {
        fleet.place(name, json!({"numberOfClusters": 1})).await?;
        fleet.wait_for_reason(name, "False NoManagedClusterSetBindings").await?;
    }
    // Now all of them have something to choose from, at once.
    fleet.bind(&fleet.set).await?;
    let mut chosen = Vec::new();
    for name in &names {
        fleet.wait_for_reason(name, "True AllDecisionsScheduled").await?;
        chosen.extend(fleet.decided(name).await?);
    }
    chosen.sort_unstable();
    clusters.sort_unstable();
    assert_eq!(chosen, clusters);
    Ok(())
}

#[tokio::test]
async fn a_placement_with_the_annotation_is_left_alone() -> Result<()> {
    let fleet = Fleet::new().await?;
    let one = fleet.cluster(&[]).await?;
    let off = |value: Value| json!({"metadata": {"annotations": {"cluster.open-cluster-management.io/experimental-scheduling-disable": value}}});
    fleet.place("p", json!({})).await?;
    fleet.wait_for_clusters("p", &[&one]).await?;
    fleet.edit("p", off(json!("true"))).await?;
    let two = fleet.cluster(&[]).await?;
    fleet.settle().await?;
    fleet.wait_for_clusters("p", &[&one]).await?;
    fleet.edit("p", off(Value::Null)).await?;
    fleet.wait_for_clusters("p", &[&one, &two]).await
}

#[tokio::test]
async fn a_surplus_decision_that_a_finalizer_holds_is_used_again_and_then_replaced() -> Result<()> {
    let fleet = Fleet::new().await?;
    let (one, two) = (fleet.cluster(&[]).await?, fleet.cluster(&[]).await?);
    fleet.place("p", json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 1}}})).await?;
    fleet.wait_for_clusters("p", &[&one, &two]).await?;
    let finalizers = |finalizers: Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    let hold =
        async |with: Value| fleet.decisions().patch("p-decision-2", &PatchParams::default(), &finalizers(with)).await;
    let held = hold(json!(["example.com/hold"])).await?.uid();
    fleet.edit("p", json!({"spec": {"numberOfClusters": 1}})).await?;
    eventually("the decision is to go", || async {
        let decision = fleet.decisions().get("p-decision-2").await?;
        Ok::<_, kube::Error>(decision.metadata.deletion_timestamp.is_some())
    })
    .await?;
    fleet.settle().await?;
    fleet.edit("p", json!({"spec": {"numberOfClusters": null}})).await?;
    fleet.wait_for_clusters("p", &[&one, &two]).await?;
    assert_eq!(fleet.decisions().get("p-decision-2").await?.uid(), held);
    hold(Value::Null).await?;
    eventually("there is another decision", || async {
        let found = fleet.decisions().get_opt("p-decision-2").await?;
        Ok::<_, kube::Error>(found.is_some_and(|found| found.uid() != held))
    })
    .await?;
    fleet.wait_for_clusters("p", &[&one, &two]).await
}

#[tokio::test]
async fn a_namespace_goes_with_its_placements_and_nothing_comes_back() -> Result<()> {
    let fleet = Fleet::new().await?;
    let one = fleet.cluster(&[]).await?;
    for name in ["p", "q"] {
        fleet.place(name, json!({})).await?;
        fleet.wait_for_clusters(name, &[&one]).await?;
    }
    let namespaces: Api<Namespace> = Api::all(fleet.world.client.clone());
    namespaces.delete(&fleet.namespace, &DeleteParams::default()).await?;
    gone(&namespaces, &fleet.namespace).await?;
    fleet.settle().await?;
    assert!(fleet.decisions().list(&ListParams::default()).await?.items.is_empty());
    Ok(())
}

/// The hub on a control plane of its own, behind a server that lets things go wrong.
#[tokio::test]
async fn what_was_written_before_a_conflict_is_told_in_events_all_the_same() -> Result<()> {
    let plane: &'static ControlPlane = Box::leak(Box::new(ControlPlane::builder().name("conflicts").start().await?));
    let context = ocm_runtime::Context::new();
    install(plane, &context).await?;
    let server = FaultyServer::start(plane).await?;
    let kubeconfig = plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT).await?;
    Hub::start(&context, client_for(&server.reached_through(kubeconfig)).await?, HubConfig::default())?;
    let fleet = Fleet::on(World { plane, client: plane.client().await? }).await?;
    let one = fleet.cluster(&[]).await?;
    for resource in ["placementdecisions", "placements"] {
        let is_status = move |asked: &Asked| asked.is_write() && asked.is_about(resource) && asked.is_about("status");
        server.inject(Fault::new(Injection::answer(409, "Conflict")).when(is_status));
    }
    fleet.place("p", json!({})).await?;
    fleet.wait_for_clusters("p", &[&one]).await?;
    assert_eq!(server.outstanding(), 0, "both conflicts have happened");
    eventually("all events are recorded", || async {
        let mut reasons: Vec<_> = fleet.events("p").await?.into_iter().filter_map(|event| event.reason).collect();
        reasons.sort_unstable();
        let is_complete = reasons == ["DecisionCreate", "DecisionUpdate", "ScoreUpdate"];
        anyhow::Ok(if is_complete { Seen::Settled(()) } else { Seen::NotYet(format!("{reasons:?}")) })
    })
    .await?;
    context.stop().await;
    Ok(())
}
