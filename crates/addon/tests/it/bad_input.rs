//! Add-ons that fail, and features that are not built: reported by name, and without effect on others.

use anyhow::Result;
use kube::{ResourceExt as _, api::PostParams};
use ocm_addon::{AddAgentError, AddonManager};
use ocm_api::work::v1::ManifestWork;
use ocm_testing::eventually;
use serde_json::json;

use crate::{
    scripted::{FILL, PLAIN, READER, Scripted, config_map},
    support::{contents, world},
};

const FAILED: [&str; 3] = ["ManifestApplied", "False", "ManifestWorkApplyFailed"];

#[tokio::test]
async fn an_error_of_the_author_is_reported_the_work_stays_and_other_clusters_are_not_affected() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("failing", None).await?;
    let fine = world.cluster("fine", None).await?;
    world.enable(&cluster, PLAIN).await?;
    let work = world.work(&cluster, PLAIN, "exists", |_| true).await?;
    world.script(&cluster, "the licence server does not answer").await?;
    let cause = world.condition(&cluster, PLAIN, FAILED).await?;
    assert!(cause.contains("the licence server does not answer") && cause.contains(&cluster), "{cause}");
    world.enable(&fine, PLAIN).await?;
    world.work(&fine, PLAIN, "exists", |_| true).await?;
    assert_eq!(world.works(&cluster).get(&work.name_any()).await?.spec, work.spec);
    world.script(&cluster, &json!([config_map("again", 1)]).to_string()).await?;
    world.work(&cluster, PLAIN, "is up to date", |work| contents(work) == ["again"]).await?;
    world.report(&cluster, &work.name_any(), "True").await?;
    world.condition(&cluster, PLAIN, ["ManifestApplied", "True", "AddonManifestApplied"]).await.map(|_| ())
}

#[tokio::test]
async fn an_invalid_manifest_is_reported_by_its_position_and_nothing_of_the_add_on_is_deployed() -> Result<()> {
    let world = world().await?;
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}});
    let script = json!([config_map("good", 1), nameless]).to_string();
    let cluster = world.cluster("invalid", Some(&script)).await?;
    world.enable(&cluster, READER).await?;
    let cause = world.condition(&cluster, READER, FAILED).await?;
    assert!(cause.contains("manifest 1 (ConfigMap default/) has no metadata.name"), "{cause}");
    assert!(world.works(&cluster).list(&Default::default()).await?.items.is_empty());
    world.condition(&cluster, READER, ["RegistrationApplied", "True", "SetPermissionApplied"]).await.map(|_| ())
}

#[tokio::test]
async fn a_refusal_of_the_api_server_is_reported_in_its_words() -> Result<()> {
    let world = world().await?;
    let script = json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": 1}}}]);
    let cluster = world.cluster("refused", Some(&script.to_string())).await?;
    world.enable(&cluster, PLAIN).await?;
    let cause = world.condition(&cluster, PLAIN, FAILED).await?;
    assert!(cause.contains("ManifestWork") && cause.contains("addon-plain-deploy-0"), "{cause}");
    Ok(())
}

#[tokio::test]
async fn an_agent_on_another_cluster_is_refused_by_the_name_of_the_annotation() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("hosted", None).await?;
    let annotations = json!({"addon.open-cluster-management.io/hosting-cluster-name": "elsewhere"});
    let object = json!({"metadata": {"name": READER, "annotations": annotations}, "spec": {}});
    world.enable_as(&cluster, READER, object).await?;
    for expected in [FAILED, ["RegistrationApplied", "False", "SetPermissionFailed"]] {
        let cause = world.condition(&cluster, READER, expected).await?;
        assert!(cause.contains("addon.open-cluster-management.io/hosting-cluster-name"), "{cause}");
    }
    assert!(world.works(&cluster).list(&Default::default()).await?.items.is_empty());
    Ok(())
}

#[tokio::test]
async fn pre_delete_hooks_are_refused_by_name() -> Result<()> {
    let world = world().await?;
    let metadata = json!({"name": "clean-up", "namespace": "default",
        "annotations": {"addon.open-cluster-management.io/addon-pre-delete": ""}});
    let script = json!([{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}}]).to_string();
    let cluster = world.cluster("hooked", Some(&script)).await?;
    world.enable(&cluster, PLAIN).await?;
    let cause = world.condition(&cluster, PLAIN, FAILED).await?;
    assert!(cause.contains("Job default/clean-up"), "{cause}");
    Ok(())
}

#[tokio::test]
async fn a_work_of_somebody_else_is_not_overwritten_and_keeps_no_other_from_being_written() -> Result<()> {
    let world = world().await?;
    let sized = |name: &str| {
        let mut object = config_map(name, 0);
        object[FILL] = json!(220_000);
        object
    };
    let cluster = world.cluster("taken", Some(&json!([sized("a"), sized("b")]).to_string())).await?;
    let mut foreign = ManifestWork::new(&cluster, "addon-plain-deploy-0", Default::default());
    foreign.spec.workload.manifests = vec![config_map("foreign", 1).into()];
    world.works(&cluster).create(&PostParams::default(), &foreign).await?;
    world.enable(&cluster, PLAIN).await?;
    eventually("the other work is written", || async {
        let other = world.works(&cluster).get_opt("addon-plain-deploy-1").await?;
        Ok::<_, kube::Error>(other.filter(|other| contents(other) == ["b"]))
    })
    .await?;
    // Later passes report it as well.
    world.everything_is_reconciled().await?;
    let cause = world.condition(&cluster, PLAIN, FAILED).await?;
    assert!(cause.contains(&format!("{cluster}/addon-plain-deploy-0")), "{cause}");
    let works = world.works(&cluster).list(&Default::default()).await?.items;
    assert_eq!(works.iter().map(contents).collect::<Vec<_>>(), [["foreign"], ["b"]]);
    Ok(())
}

#[tokio::test]
async fn an_add_on_without_a_proper_name_or_with_that_of_another_is_not_taken() -> Result<()> {
    let manager = || async { anyhow::Ok(AddonManager::new(world().await?.client)) };
    let refusal = manager().await?.add_agent(Scripted::new("Not a name")).unwrap_err();
    assert_eq!(refusal, AddAgentError::Name("Not a name".into()));
    let two = manager().await?.add_agent(Scripted::new("a"))?.add_agent(Scripted::new("a"));
    assert_eq!(two.unwrap_err(), AddAgentError::Duplicate("a".into()));
    Ok(())
}
