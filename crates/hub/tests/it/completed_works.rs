//! Works that are deleted some time after they are complete.

use anyhow::Result;
use jiff::SignedDuration;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use ocm_api::work::v1::ManifestWork;
use ocm_testing::{eventually, unique};
use serde_json::{Value, json};

use crate::{
    replica_set_world::{ReplicaSetWorld, SET},
    support::now,
};

async fn create(api: &Api<ManifestWork>, name: &str, ttl: &Value, labels: Value) -> Result<()> {
    let spec = json!({"workload": {"manifests": []}, "deleteOption": {"ttlSecondsAfterFinished": ttl}});
    let work = json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
    api.create(&PostParams::default(), &serde_json::from_value(work)?).await?;
    Ok(())
}

/// Reports that a work has been complete for so many seconds.
async fn complete(api: &Api<ManifestWork>, name: &str, status: &str, seconds: i64) -> Result<()> {
    let since = (now() - SignedDuration::from_secs(seconds)).to_string();
    let condition =
        json!({"type": "Complete", "status": status, "reason": "r", "message": "", "lastTransitionTime": since});
    let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    api.patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn wait_until_gone(api: &Api<ManifestWork>, name: &str) -> Result<()> {
    let what = format!("{name} is gone");
    eventually(&what, || async { Ok::<_, kube::Error>(api.get_opt(name).await?.is_none()) }).await
}

#[tokio::test]
async fn a_complete_work_is_deleted_after_its_time_and_others_stay() -> Result<()> {
    let world = ReplicaSetWorld::new().await?;
    let cluster = world.fleet.cluster("completed").await?;
    let api = world.works_on(&cluster);
    let none = || json!({});
    for (name, ttl, labels, status, seconds) in [
        ("later", json!(3600), none(), "True", 60),
        ("forever", Value::Null, none(), "True", 60),
        ("incomplete", json!(0), none(), "False", 60),
        ("of-a-set", json!(0), json!({SET: "nowhere.set"}), "True", 60),
        ("at-once", json!(0), none(), "True", 0),
        ("soon", json!(2), none(), "True", 0),
        ("overdue", json!(30), none(), "True", 60),
    ] {
        create(&api, name, &ttl, labels).await?;
        complete(&api, name, status, seconds).await?;
    }
    for gone in ["at-once", "soon", "overdue"] {
        wait_until_gone(&api, gone).await?;
    }
    let last = unique("last");
    create(&api, &last, &json!(0), none()).await?;
    complete(&api, &last, "True", 0).await?;
    wait_until_gone(&api, &last).await?;
    for kept in ["later", "forever", "incomplete", "of-a-set"] {
        assert!(api.get_opt(kept).await?.is_some(), "{kept}");
    }
    // It becomes due when its time is made shorter.
    let shorter = Patch::Merge(json!({"spec": {"deleteOption": {"ttlSecondsAfterFinished": 30}}}));
    api.patch("later", &PatchParams::default(), &shorter).await?;
    wait_until_gone(&api, "later").await
}
