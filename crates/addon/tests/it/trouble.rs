//! Add-ons whose code fails, panics or changes its mind, and works that people lay hands on.

use anyhow::Result;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use ocm_api::work::v1::ManifestWork;
use ocm_testing::eventually;
use serde_json::json;

use crate::{
    scripted::{FILL, FRAGILE, PANIC, PLAIN, Scripted, TUNED, config_map, script_without_event},
    support::{contents, world},
};

const FAILED: [&str; 3] = ["ManifestApplied", "False", "ManifestWorkApplyFailed"];

#[tokio::test]
async fn an_error_with_another_message_each_time_is_not_retried_without_a_pause() -> Result<()> {
    let world = world().await?;
    let (cluster, other) = (world.cluster("varying", Some("no answer")).await?, world.cluster("busy", None).await?);
    world.enable(&cluster, PLAIN).await?;
    let cause = world.condition(&cluster, PLAIN, FAILED).await?;
    assert!(cause.contains("no answer, request "), "{cause}");
    // As many writes of somebody else take about as long as so many of the manager.
    for _ in 0..150 {
        world.script(&other, "[]").await?;
    }
    let writes = world.writes(&cluster)?;
    let reports = writes.iter().filter(|write| *write == "patch managedclusteraddons/status").count();
    assert!(reports > 0, "the log shows what the manager writes: {writes:?}");
    // The pause doubles from 5 ms: thirty are not through before a quarter of an hour.
    assert!(writes.len() < 30, "{}", writes.len());
    Ok(())
}

#[tokio::test]
async fn code_that_panics_is_reported_and_called_again_and_ends_no_informer() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("panicking", None).await?;
    world.enable(&cluster, FRAGILE).await?;
    world.work(&cluster, FRAGILE, "exists", |_| true).await?;
    world.script(&cluster, PANIC).await?;
    let cause = world.condition(&cluster, FRAGILE, FAILED).await?;
    assert!(cause.contains("panicked"), "{cause}");
    world.script(&cluster, &json!([config_map("again", 1)]).to_string()).await?;
    world.work(&cluster, FRAGILE, "is up to date", |work| contents(work) == ["again"]).await?;
    let later = world.cluster("later", None).await?;
    world.enable(&later, FRAGILE).await?;
    world.work(&later, FRAGILE, "exists", |_| true).await.map(|_| ())
}

#[tokio::test]
async fn a_change_without_an_event_is_deployed_when_it_is_triggered() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("triggered", None).await?;
    world.enable(&cluster, PLAIN).await?;
    world.work(&cluster, PLAIN, "exists", |work| contents(work) == ["plain"]).await?;
    script_without_event(&cluster, json!([config_map("other", 1)]));
    world.trigger.reconcile(&cluster, PLAIN);
    world.work(&cluster, PLAIN, "is up to date", |work| contents(work) == ["other"]).await.map(|_| ())
}

#[tokio::test]
async fn a_work_whose_label_somebody_removed_gets_it_back() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("unlabelled", None).await?;
    world.enable(&cluster, PLAIN).await?;
    let work = world.work(&cluster, PLAIN, "exists", |_| true).await?;
    let label = "open-cluster-management.io/addon-name";
    let foreign = json!({"workload": {"manifests": [config_map("foreign", 1)]}});
    let patch = Patch::Merge(json!({"metadata": {"labels": {(label): null}}, "spec": foreign}));
    world.works(&cluster).patch(&work.name_any(), &PatchParams::default(), &patch).await?;
    let restored = world.work(&cluster, PLAIN, "is labelled again", |work| work.labels().contains_key(label)).await?;
    assert_eq!((restored.uid(), contents(&restored)), (work.uid(), contents(&work)));
    world.report(&cluster, &work.name_any(), "True").await?;
    world.condition(&cluster, PLAIN, ["ManifestApplied", "True", "AddonManifestApplied"]).await.map(|_| ())
}

#[tokio::test]
async fn a_work_that_is_being_deleted_is_named_and_does_not_block_the_others() -> Result<()> {
    let world = world().await?;
    let sized = |name: &str| {
        let mut object = config_map(name, 0);
        object[FILL] = json!(220_000);
        object
    };
    let cluster = world.cluster("leaving-work", Some(&json!([sized("a"), sized("b")]).to_string())).await?;
    world.enable(&cluster, PLAIN).await?;
    let held = world.work(&cluster, PLAIN, "exists", |work| contents(work) == ["a"]).await?;
    let name = held.name_any();
    // The cluster's agent takes its time.
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    world.works(&cluster).patch(&name, &PatchParams::default(), &hold).await?;
    world.works(&cluster).delete(&name, &DeleteParams::default()).await?;
    let cause = world.condition(&cluster, PLAIN, FAILED).await?;
    assert!(cause.contains(&format!("{cluster}/{name} is being deleted")), "{cause}");
    world.script(&cluster, &json!([sized("a"), sized("b"), config_map("c", 1)]).to_string()).await?;
    eventually("c is in the other work", || async {
        let other = world.works(&cluster).get("addon-plain-deploy-1").await?;
        Ok::<_, kube::Error>(contents(&other) == ["b", "c"])
    })
    .await?;
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.works(&cluster).patch(&name, &PatchParams::default(), &release).await?;
    eventually("a is deployed again", || async {
        let works = world.works(&cluster).list(&Default::default()).await?;
        Ok::<_, kube::Error>(works.items.iter().any(|work| contents(work) == ["a"] && work.uid() != held.uid()))
    })
    .await
}

#[tokio::test]
async fn what_the_api_server_defaults_and_drops_in_a_work_is_not_written_again() -> Result<()> {
    let world = world().await?;
    let mut object = config_map("a", 1);
    let metadata = json!({"creationTimestamp": null, "labels": {}, "annotations": {}, "unknown": {"a": 1}});
    object["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    object["data"]["nothing"] = json!(null);
    let cluster = world.cluster("tuned", Some(&json!([object]).to_string())).await?;
    world.enable(&cluster, TUNED).await?;
    let work = world.work(&cluster, TUNED, "exists", |_| true).await?;
    let strategy = serde_json::to_value(&work.spec.manifest_configs[0].update_strategy)?;
    assert_eq!(strategy["serverSideApply"], json!({"force": true, "fieldManager": "work-agent"}));
    world.report(&cluster, &work.name_any(), "True").await?;
    world.condition(&cluster, TUNED, ["ManifestApplied", "True", "AddonManifestApplied"]).await?;
    world.everything_is_reconciled().await?;
    let patches = || -> Result<usize> {
        Ok(world.writes(&cluster)?.iter().filter(|write| *write == "patch manifestworks").count())
    };
    assert_eq!(patches()?, 0);
    // The log shows a patch when there is one.
    world.script(&cluster, &json!([config_map("a", 2)]).to_string()).await?;
    eventually("the manager's patch is in the log", || async {
        let patches = patches()?;
        anyhow::Ok((patches > 0).then_some(()))
    })
    .await
}

#[tokio::test]
async fn a_null_and_a_number_that_the_api_server_keeps_otherwise_are_written_once() -> Result<()> {
    let world = world().await?;
    let metadata = json!({"name": "a", "namespace": "default"});
    let object = |revision: u64| {
        let template = json!({"affinity": null, "list": [{"a": null}], "ratio": 1.0, "big": u64::MAX});
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": {"revision": revision,
            "template": template}})
    };
    let cluster = world.cluster("nulls", Some(&json!([object(1)]).to_string())).await?;
    world.enable(&cluster, PLAIN).await?;
    let work = world.work(&cluster, PLAIN, "exists", |_| true).await?;
    world.script(&cluster, &json!([object(2)]).to_string()).await?;
    let is_new = |work: &ManifestWork| work.spec.workload.manifests[0].value()["spec"]["revision"] == 2;
    world.work(&cluster, PLAIN, "has the second revision", is_new).await?;
    world.report(&cluster, &work.name_any(), "True").await?;
    world.condition(&cluster, PLAIN, ["ManifestApplied", "True", "AddonManifestApplied"]).await?;
    world.everything_is_reconciled().await?;
    let patches = world.writes(&cluster)?.into_iter().filter(|write| write == "patch manifestworks").count();
    assert_eq!(patches, 1, "{:?}", world.works(&cluster).get(&work.name_any()).await?.spec.workload);
    Ok(())
}

#[tokio::test]
async fn an_add_on_whose_code_hangs_or_panics_keeps_no_other_one_waiting() -> Result<()> {
    let world = world().await?;
    let context = world.start_manager_of([Scripted::stuck("stuck"), Scripted::new("fine")]).await?;
    // More than there are workers.
    for number in 0..33 {
        let cluster = world.cluster(&format!("stuck-{number}"), None).await?;
        world.enable(&cluster, "stuck").await?;
    }
    let cluster = world.cluster("not-stuck", None).await?;
    world.enable(&cluster, "fine").await?;
    world.work(&cluster, "fine", "exists", |_| true).await?;
    let panicking = world.cluster("panic", None).await?;
    world.enable(&panicking, "stuck").await?;
    let failed = ["RegistrationApplied", "False", "SetPermissionFailed"];
    let cause = world.condition(&panicking, "stuck", failed).await?;
    assert!(cause.contains("panicked"), "{cause}");
    // Calls that hang are not waited for.
    context.abort();
    context.stop().await;
    Ok(())
}
