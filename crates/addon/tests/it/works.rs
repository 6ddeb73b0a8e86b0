//! The works that deploy an add-on to a cluster.

use anyhow::Result;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use ocm_api::addon::v1alpha1::HealthCheckMode;
use ocm_testing::eventually;
use serde_json::{Value, json};

use crate::{
    scripted::{FILL, PLAIN, READER, config_map},
    support::{contents, world},
};

fn script(objects: &[Value]) -> String {
    json!(objects).to_string()
}

#[tokio::test]
async fn a_new_add_on_gets_its_work_and_a_status() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("works", None).await?;
    world.enable(&cluster, READER).await?;
    let work = world.work(&cluster, READER, "exists", |_| true).await?;
    assert_eq!(work.labels()["open-cluster-management.io/addon-name"], READER);
    let addon = world.addons(&cluster).get(READER).await?;
    let owner = json!([{"apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ManagedClusterAddOn",
        "name": READER, "uid": addon.uid(), "controller": true, "blockOwnerDeletion": true}]);
    assert_eq!(serde_json::to_value(work.owner_references())?, owner);
    assert_eq!(contents(&work), ["plain"]);

    world.condition(&cluster, READER, ["RegistrationApplied", "True", "SetPermissionApplied"]).await?;
    let status = world.addons(&cluster).get(READER).await?.status.unwrap_or_default();
    assert_eq!(status.health_check.mode, Some(HealthCheckMode::Lease));
    assert!(
        !status.conditions.iter().any(|condition| condition.type_ == "ManifestApplied"),
        "the agent has not reported yet"
    );

    world.report(&cluster, &work.name_any(), "True").await?;
    world.condition(&cluster, READER, ["ManifestApplied", "True", "AddonManifestApplied"]).await?;
    world.report(&cluster, &work.name_any(), "False").await?;
    let cause = world.condition(&cluster, READER, ["ManifestApplied", "False", "AddonManifestAppliedFailed"]).await?;
    assert!(cause.contains("addon-reader-deploy-0") && cause.contains("so it is"), "{cause}");
    Ok(())
}

#[tokio::test]
async fn works_follow_the_authors_manifests_down_to_none() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("follow", Some(&script(&[config_map("a", 9), config_map("b", 5)]))).await?;
    world.enable(&cluster, PLAIN).await?;
    world.work(&cluster, PLAIN, "holds a and b", |work| contents(work) == ["a", "b"]).await?;
    world.script(&cluster, &script(&[config_map("b", 7), config_map("c", 5)])).await?;
    let work = world.work(&cluster, PLAIN, "holds b and c", |work| contents(work) == ["b", "c"]).await?;
    assert_eq!(work.spec.workload.manifests[0].value(), config_map("b", 7));
    world.script(&cluster, "[]").await?;
    eventually("the work is gone", || async {
        Ok::<_, kube::Error>(world.works(&cluster).get_opt(&work.name_any()).await?.is_none())
    })
    .await?;
    world.condition(&cluster, PLAIN, ["ManifestApplied", "True", "AddonManifestApplied"]).await.map(|_| ())
}

#[tokio::test]
async fn objects_too_big_for_one_work_are_in_two_until_they_shrink() -> Result<()> {
    let world = world().await?;
    let sized = |name: &str, size: usize| {
        let mut object = config_map(name, 0);
        object[FILL] = json!(size);
        object
    };
    let both = [sized("a", 220_000), sized("b", 210_000)];
    let cluster = world.cluster("big", Some(&script(&both))).await?;
    world.enable(&cluster, PLAIN).await?;
    let names = async || -> Result<Vec<(String, Vec<String>)>, kube::Error> {
        let works = world.works(&cluster).list(&Default::default()).await?;
        Ok(works.into_iter().map(|work| (work.name_any(), contents(&work))).collect())
    };
    let expected = |works: &[(&str, &str)]| -> Vec<(String, Vec<String>)> {
        works.iter().map(|(work, name)| ((*work).to_owned(), vec![(*name).to_owned()])).collect()
    };
    let two = expected(&[("addon-plain-deploy-0", "a"), ("addon-plain-deploy-1", "b")]);
    eventually("there are two works", || async { names().await.map(|found| found == two) }).await?;
    world.report(&cluster, "addon-plain-deploy-0", "True").await?;
    world.report(&cluster, "addon-plain-deploy-1", "True").await?;
    world.condition(&cluster, PLAIN, ["ManifestApplied", "True", "AddonManifestApplied"]).await?;
    world.script(&cluster, &script(&both[1..])).await?;
    let one = expected(&[("addon-plain-deploy-1", "b")]);
    eventually("b is still where it was, alone", || async { names().await.map(|found| found == one) }).await
}

#[tokio::test]
async fn an_object_that_outgrows_its_work_is_never_missing_while_it_moves_to_another() -> Result<()> {
    let world = world().await?;
    let sized = |name: &str, size: usize| {
        let mut object = config_map(name, 0);
        object[FILL] = json!(size);
        object
    };
    let cluster = world.cluster("outgrown", Some(&script(&[sized("a", 250_000), sized("b", 9)]))).await?;
    world.enable(&cluster, PLAIN).await?;
    let first = world.work(&cluster, PLAIN, "holds both", |work| contents(work) == ["a", "b"]).await?;
    world.report(&cluster, &first.name_any(), "True").await?;
    world.condition(&cluster, PLAIN, ["ManifestApplied", "True", "AddonManifestApplied"]).await?;
    world.script(&cluster, &script(&[sized("a", 250_000), sized("b", 270_000)])).await?;
    let second = "addon-plain-deploy-1";
    eventually("a second work holds b", || async {
        let work = world.works(&cluster).get_opt(second).await?;
        Ok::<_, kube::Error>(work.filter(|work| contents(work) == ["b"]))
    })
    .await?;
    world.everything_is_reconciled().await?;
    let former = world.works(&cluster).get(&first.name_any()).await?;
    assert_eq!(former.spec, first.spec, "b leaves it when the cluster's agent has applied the other work");
    world.report(&cluster, second, "True").await?;
    world.work(&cluster, PLAIN, "holds a alone", |work| contents(work) == ["a"]).await.map(|_| ())
}

#[tokio::test]
async fn a_work_that_somebody_deleted_or_changed_is_restored() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("restored", None).await?;
    world.enable(&cluster, PLAIN).await?;
    let work = world.work(&cluster, PLAIN, "exists", |_| true).await?;
    let name = work.name_any();
    world.works(&cluster).delete(&name, &DeleteParams::default()).await?;
    let again = world.work(&cluster, PLAIN, "exists again", |again| again.uid() != work.uid()).await?;
    assert_eq!(again.spec, work.spec);
    let patch = Patch::Merge(json!({"spec": {"workload": {"manifests": [config_map("foreign", 1)]}}}));
    world.works(&cluster).patch(&name, &PatchParams::default(), &patch).await?;
    world.work(&cluster, PLAIN, "is restored", |work| contents(work) == ["plain"]).await?;
    Ok(())
}

#[tokio::test]
async fn an_add_on_without_owner_waits() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("waiting", None).await?;
    let object = serde_json::from_value(json!({"metadata": {"name": PLAIN}, "spec": {}}))?;
    let waiting = world.addons(&cluster).create(&PostParams::default(), &object).await?;
    world.everything_is_reconciled().await?;
    assert_eq!(world.addons(&cluster).get(PLAIN).await?.resource_version(), waiting.resource_version());
    assert!(world.works(&cluster).list(&Default::default()).await?.items.is_empty());
    Ok(())
}

#[tokio::test]
async fn an_add_on_that_came_before_its_cluster_is_deployed_when_the_cluster_comes() -> Result<()> {
    let world = world().await?;
    let cluster = ocm_testing::unique("early");
    world.plane.kubectl(&["create", "namespace", &cluster]).await?;
    world.enable(&cluster, PLAIN).await?;
    let object = ocm_api::cluster::v1::ManagedCluster::new(&cluster, Default::default());
    kube::Api::all(world.client.clone()).create(&PostParams::default(), &object).await?;
    world.work(&cluster, PLAIN, "exists", |_| true).await.map(|_| ())
}

#[tokio::test]
async fn an_object_with_the_orphan_annotation_is_named_in_the_work() -> Result<()> {
    let world = world().await?;
    let mut staying = config_map("stays", 1);
    staying["metadata"]["annotations"] = json!({"addon.open-cluster-management.io/deletion-orphan": ""});
    let cluster = world.cluster("orphan", Some(&script(&[staying, config_map("goes", 1)]))).await?;
    world.enable(&cluster, PLAIN).await?;
    let work = world.work(&cluster, PLAIN, "exists", |_| true).await?;
    let expected = json!({"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules":
        [{"group": "", "resource": "configmaps", "name": "stays", "namespace": "default"}]}});
    assert_eq!(serde_json::to_value(work.spec.delete_option)?, expected);
    Ok(())
}
