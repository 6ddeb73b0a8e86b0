//! ManifestWorkReplicaSets: their works, their status, and their end.

use std::collections::BTreeMap;

use anyhow::Result;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use ocm_testing::{AuditLog, Seen, eventually, unique};
use serde_json::{Value, json};

use crate::{
    gated::gated_world,
    replica_set_world::{DONE, PLACEMENT, ReplicaSetWorld, SET, all, spec},
    support::{ACCOUNT, NAMESPACE, deploy},
};

fn progressive(max_concurrency: usize) -> Value {
    json!({"type": "Progressive", "progressive": {"maxConcurrency": max_concurrency}})
}

#[tokio::test]
async fn every_chosen_cluster_has_a_work_as_ocm_makes_it_and_the_status_counts_them() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let clusters = world.clusters(2).await?;
    world.choose("p", &clusters).await?;
    world.create("my.settings", "1", &[("p", all())]).await?;
    let works = world.wait_for_works("my.settings", &[(&clusters[0], "p", "1"), (&clusters[1], "p", "1")]).await?;
    for work in &works {
        assert_eq!(work.metadata.generate_name.as_deref(), Some("my.settings"));
        let label = format!("{}.my.settings", world.fleet.namespace);
        let labels = [("team".to_owned(), "red".to_owned()), (SET.into(), label), (PLACEMENT.into(), "p".into())];
        assert_eq!(*work.labels(), labels.into());
        assert!(work.annotations().is_empty() && work.owner_references().is_empty());
        world.report(work, DONE).await?;
    }
    world.wait_for_condition("my.settings", "PlacementRolledOut", "True Complete").await?;
    let set = world.sets().get("my.settings").await?;
    let status = serde_json::to_value(set.status)?;
    assert_eq!(
        status["summary"],
        json!({"total": 2, "applied": 2, "available": 2,
        "progressing": 0, "degraded": 0, "desiredTotal": 0, "updated": 0})
    );
    assert_eq!(status["placementSummary"][0]["availableDecisionGroups"], "1 (2 / 2 clusters applied)");
    for type_ in ["PlacementVerified", "ManifestworkApplied"] {
        assert_eq!(world.wait_for_condition("my.settings", type_, "True AsExpected").await?, "");
    }
    Ok(())
}

#[tokio::test]
async fn counters_that_were_never_anything_but_zero_are_not_written() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let clusters = world.clusters(1).await?;
    world.choose("p", &clusters).await?;
    world.create("s", "1", &[("p", all())]).await?;
    let works = world.wait_for_works("s", &[(&clusters[0], "p", "1")]).await?;
    world.report(&works[0], DONE).await?;
    world.wait_for_condition("s", "PlacementRolledOut", "True Complete").await?;
    let args = ["get", "manifestworkreplicaset", "s", "-n", &world.fleet.namespace, "-o", "jsonpath={.status.summary}"];
    let plane = gated_world().await?.plane;
    let summary: Value = serde_json::from_str(&plane.kubectl(&args).await?)?;
    assert_eq!(summary, json!({"total": 1, "applied": 1, "available": 1}));
    Ok(())
}

#[tokio::test]
async fn a_changed_template_and_changed_labels_reach_works_in_place() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let clusters = world.clusters(1).await?;
    world.choose("p", &clusters).await?;
    world.create("s", "1", &[("p", all())]).await?;
    let first = world.wait_for_works("s", &[(&clusters[0], "p", "1")]).await?;
    world.edit("s", json!({"spec": spec("2", &[("p", all())])})).await?;
    let second = world.wait_for_works("s", &[(&clusters[0], "p", "2")]).await?;
    assert_eq!(first[0].uid(), second[0].uid());
    world.edit("s", json!({"metadata": {"labels": {"team": null, "tier": "1"}}})).await?;
    eventually("the labels have changed", || async {
        let labels = world.works("s").await?[0].labels().clone();
        let is_changed = labels.get("tier").is_some_and(|tier| tier == "1") && !labels.contains_key("team");
        anyhow::Ok(if is_changed { Seen::Settled(()) } else { Seen::NotYet(format!("{labels:?}")) })
    })
    .await?;
    assert_eq!(world.works("s").await?[0].uid(), first[0].uid());
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_two_placements_choose_has_two_works_and_each_is_updated_and_deleted_for_itself() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let clusters = world.clusters(1).await?;
    let cluster = clusters[0].as_str();
    world.choose("p", &clusters).await?;
    world.choose("q", &clusters).await?;
    world.create("s", "1", &[("p", all()), ("q", all())]).await?;
    world.wait_for_works("s", &[(cluster, "p", "1"), (cluster, "q", "1")]).await?;
    world.edit("s", json!({"spec": spec("2", &[("p", all()), ("q", all())])})).await?;
    world.wait_for_works("s", &[(cluster, "p", "2"), (cluster, "q", "2")]).await?;
    world.edit("s", json!({"spec": spec("2", &[("q", all())])})).await?;
    world.wait_for_works("s", &[(cluster, "q", "2")]).await?;
    Ok(())
}

#[tokio::test]
async fn the_work_of_a_cluster_that_left_is_deleted_even_if_the_template_changed_at_the_same_time() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let clusters = world.clusters(2).await?;
    world.choose("p", &clusters).await?;
    // No agent reports, so the second cluster would never get the changed template.
    world.create("s", "1", &[("p", all())]).await?;
    world.wait_for_works("s", &[(&clusters[0], "p", "1"), (&clusters[1], "p", "1")]).await?;
    world.edit("s", json!({"spec": spec("2", &[("p", progressive(1))])})).await?;
    world.wait_for_works("s", &[(&clusters[0], "p", "2"), (&clusters[1], "p", "1")]).await?;
    world.choose("p", &clusters[..1]).await?;
    world.wait_for_works("s", &[(&clusters[0], "p", "2")]).await?;
    Ok(())
}

#[tokio::test]
async fn a_progressive_rollout_goes_on_when_agents_report_that_they_are_done() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let clusters = world.clusters(3).await?;
    let [one, two, three] = [&*clusters[0], &*clusters[1], &*clusters[2]];
    world.choose("p", &clusters).await?;
    world.create("s", "1", &[("p", progressive(1))]).await?;
    let works = world.wait_for_works("s", &[(one, "p", "1")]).await?;
    world.settle().await?;
    world.wait_for_works("s", &[(one, "p", "1")]).await?;
    world.report(&works[0], DONE).await?;
    let works = world.wait_for_works("s", &[(one, "p", "1"), (two, "p", "1")]).await?;
    for work in &works {
        world.report(work, DONE).await?;
    }
    world.wait_for_works("s", &[(one, "p", "1"), (two, "p", "1"), (three, "p", "1")]).await?;
    world.wait_for_condition("s", "PlacementRolledOut", "False Progressing").await?;
    Ok(())
}

#[tokio::test]
async fn a_placement_that_does_not_exist_is_named_and_followed_once_it_exists() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let clusters = world.clusters(1).await?;
    world.create("s", "1", &[("later", all())]).await?;
    let message = world.wait_for_condition("s", "PlacementVerified", "False PlacementDecisionNotFound").await?;
    assert!(message.contains("/later does not exist"), "{message}");
    world.choose("later", &[]).await?;
    world.wait_for_condition("s", "PlacementVerified", "False PlacementDecisionEmpty").await?;
    world.wait_for_condition("s", "ManifestworkApplied", "False PlacementDecisionEmpty").await?;
    world.choose("later", &clusters).await?;
    world.wait_for_works("s", &[(&clusters[0], "later", "1")]).await?;
    world.wait_for_condition("s", "PlacementVerified", "True AsExpected").await?;
    Ok(())
}

#[tokio::test]
async fn a_name_that_is_too_long_for_a_label_is_reported_and_the_set_can_be_deleted() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let (clusters, name) = (world.clusters(1).await?, "x".repeat(63));
    world.choose("p", &clusters).await?;
    world.create(&name, "1", &[("p", all())]).await?;
    world.wait_for_condition(&name, "ManifestworkApplied", "False InvalidManifestWorkName").await?;
    world.delete(&name).await?;
    world.wait_until_gone(&name).await
}

#[tokio::test]
async fn a_set_that_is_deleted_in_the_background_is_gone_before_its_works_are() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let clusters = world.clusters(1).await?;
    world.choose("p", &clusters).await?;
    world.create("s", "1", &[("p", all())]).await?;
    let works = world.wait_for_works("s", &[(&clusters[0], "p", "1")]).await?;
    world.hold(&works[0], true).await?;
    world.delete("s").await?;
    world.wait_until_gone("s").await?;
    assert!(world.works("s").await?[0].metadata.deletion_timestamp.is_some());
    world.hold(&works[0], false).await?;
    world.wait_for_works("s", &[]).await?;
    Ok(())
}

#[tokio::test]
async fn a_set_that_is_deleted_in_the_foreground_stays_until_its_works_are_gone() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let clusters = world.clusters(2).await?;
    world.choose("p", &clusters).await?;
    let mut foreground = spec("1", &[("p", all())]);
    foreground["cascadeDeletionPolicy"] = "Foreground".into();
    world.create_from("s", json!({}), foreground).await?;
    let works = world.wait_for_works("s", &[(&clusters[0], "p", "1"), (&clusters[1], "p", "1")]).await?;
    let held = works.iter().find(|work| work.namespace().as_ref() == Some(&clusters[0])).unwrap();
    world.hold(held, true).await?;
    world.delete("s").await?;
    world.wait_for_works("s", &[(&clusters[0], "p", "1")]).await?;
    world.settle().await?;
    assert!(world.sets().get_opt("s").await?.is_some(), "a work is left");
    world.hold(held, false).await?;
    world.wait_until_gone("s").await
}

#[tokio::test]
async fn of_two_works_of_a_set_on_one_cluster_the_oldest_stays() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let clusters = world.clusters(1).await?;
    world.choose("p", &clusters).await?;
    world.create("s", "1", &[("p", all())]).await?;
    let first = world.wait_for_works("s", &[(&clusters[0], "p", "1")]).await?;
    let mut second = first[0].clone();
    second.metadata = kube::api::ObjectMeta {
        // Of works that were created in the same second the name decides.
        name: Some("zzz".into()),
        labels: first[0].metadata.labels.clone(),
        ..<_>::default()
    };
    world.works_on(&clusters[0]).create(&PostParams::default(), &second).await?;
    eventually("one work is left", || async { anyhow::Ok(world.works("s").await?.len() == 1) }).await?;
    assert_eq!(world.works("s").await?[0].uid(), first[0].uid());
    Ok(())
}

#[tokio::test]
async fn a_work_that_somebody_edits_or_deletes_is_restored_and_works_of_others_are_left_alone() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let clusters = world.clusters(1).await?;
    let api = world.works_on(&clusters[0]);
    world.choose("p", &clusters).await?;
    world.create("s", "1", &[("p", all())]).await?;
    let works = world.wait_for_works("s", &[(&clusters[0], "p", "1")]).await?;
    let mut other = works[0].clone();
    other.metadata = kube::api::ObjectMeta { name: Some("of-others".into()), ..<_>::default() };
    other.labels_mut().insert(SET.into(), format!("{}.another", world.fleet.namespace));
    api.create(&PostParams::default(), &other).await?;
    let edited = json!({"spec": {"workload": {"manifests": []}}});
    api.patch(&works[0].name_any(), &PatchParams::default(), &Patch::Merge(edited)).await?;
    world.wait_for_works("s", &[(&clusters[0], "p", "1")]).await?;
    api.delete(&works[0].name_any(), &DeleteParams::default()).await?;
    eventually("another work replaces it", || async {
        let found = world.works("s").await?;
        anyhow::Ok(found.len() == 1 && found[0].uid() != works[0].uid())
    })
    .await?;
    world.delete("s").await?;
    world.wait_until_gone("s").await?;
    world.wait_for_works("s", &[]).await?;
    assert!(api.get_opt("of-others").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_set_costs_a_finalizer_its_works_and_a_few_statuses_and_then_nothing() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let audit = AuditLog::of(gated_world().await?.plane)?;
    let clusters = world.clusters(2).await?;
    world.choose("p", &clusters).await?;
    let start = audit.position()?;
    world.create("s", "1", &[("p", all())]).await?;
    let works = world.wait_for_works("s", &[(&clusters[0], "p", "1"), (&clusters[1], "p", "1")]).await?;
    for work in &works {
        world.report(work, DONE).await?;
    }
    world.wait_for_condition("s", "PlacementRolledOut", "True Complete").await?;
    world.settle().await?;
    let writes = |since| writes(&audit, since, &world.fleet.namespace, &clusters);
    let mut found = writes(start)?;
    let statuses = found.remove("patch manifestworkreplicasets/status 200").unwrap_or_default();
    assert!((1..=3).contains(&statuses), "{statuses}");
    let expected = [("create manifestworks 201".to_owned(), 2), ("patch manifestworkreplicasets 200".to_owned(), 1)];
    assert_eq!(found, expected.into());
    let settled = audit.position()?;
    world.edit("s", json!({"metadata": {"annotations": {"note": "x"}}})).await?;
    for work in &works {
        world.report(work, &[("Applied", "True"), ("SomethingElse", "True")]).await?;
    }
    world.settle().await?;
    assert_eq!(writes(settled)?, BTreeMap::new());
    Ok(())
}

/// What the hub has written to set `s` and its works.
fn writes(audit: &AuditLog, since: u64, namespace: &str, clusters: &[String]) -> Result<BTreeMap<String, usize>> {
    let hub = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let mut found = BTreeMap::new();
    for write in
        audit.since(since)?.iter().filter(|write| write.user == hub && write.resource.starts_with("manifestwork"))
    {
        if (write.namespace == namespace && write.name == "s") || clusters.contains(&write.namespace) {
            *found.entry(format!("{write} {}", write.code)).or_default() += 1;
        }
    }
    Ok(found)
}

/// The hub gets the right to all executors only together with the check of authors.
#[tokio::test]
async fn a_set_with_an_executor_gets_works_once_the_authors_of_sets_are_checked() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let (plane, clusters) = (gated_world().await?.plane, world.clusters(1).await?);
    world.choose("p", &clusters).await?;
    let account = json!({"namespace": "team", "name": "deployer"});
    let mut spec = spec("1", &[("p", all())]);
    spec["manifestWorkTemplate"]["executor"] =
        json!({"subject": {"type": "ServiceAccount", "serviceAccount": account}});
    world.create_from("s", json!({}), spec).await?;
    eventually("the condition names the file", || async {
        let said = world.wait_for_condition("s", "ManifestworkApplied", "False NotAsExpected").await?;
        let is_said = said.contains("deploy/replica-set-executors.yaml") && said.contains("execute-as");
        anyhow::Ok(if is_said { Seen::Settled(()) } else { Seen::NotYet(said) })
    })
    .await?;
    plane.apply_yaml(&deploy("replica-set-executors.yaml")?).await?;
    eventually("the work is created", || async {
        // What was refused is retried after a minute, or if something changes.
        world.edit("s", json!({"metadata": {"labels": {"at": unique("at")}}})).await?;
        anyhow::Ok(world.works("s").await?.pop())
    })
    .await?;
    let works = world.works("s").await?;
    assert!(works.iter().all(|work| work.spec.executor.is_some()), "{works:?}");
    Ok(())
}
