//! Works with manifests that cannot be applied: the condition of each names the cause, and the others are applied.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use ocm_api::{
    conditions::manifest,
    reasons,
    work::v1::{ManifestCondition, ManifestWork},
};
use ocm_runtime::conditions::find;
use ocm_testing::unique;
use serde_json::{Value, json};

use crate::world::{config_map, world};

/// Reason and message of the condition `Applied` of one manifest.
fn applied(work: &ManifestWork, index: usize) -> (String, String) {
    let manifests = work.status.as_ref().map(|status| status.resource_status.manifests.as_slice());
    let entry: Option<&ManifestCondition> = manifests.unwrap_or_default().get(index);
    let found = entry.and_then(|entry| find(&entry.conditions, manifest::APPLIED)).cloned();
    found.map(|found| (found.reason, found.message)).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_condition_of_each_bad_manifest_names_the_cause_and_the_good_ones_are_applied() -> anyhow::Result<()> {
    let world = world().await?;
    let mut agent = world.join().await?;
    let (cluster, work, good) = (&agent.cluster, unique("broken"), unique("good"));
    let mut nowhere = config_map("a", json!({}));
    nowhere["metadata"]["namespace"] = json!("missing");
    let mut no_namespace = config_map("b", json!({}));
    no_namespace["metadata"].as_object_mut().map(|metadata| metadata.remove("namespace"));
    let mut no_name = config_map("c", json!({}));
    no_name["metadata"]["name"] = json!("");
    let manifests = json!([
        {"apiVersion": "nowhere.example.com/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "default"}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "default"}, "spec": {"ports": []}},
        nowhere,
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "forbidden"}},
        no_namespace,
        no_name,
        config_map(&good, json!({"still": "applied"})),
        config_map(&good, json!({"again": "no"})),
    ]);
    world.create_work(cluster, &work, manifests).await?;
    let work = world.work_is(cluster, &work, "Applied", "False").await?;
    let expected = [
        "install its CRD",
        "Correct the manifest",
        "Create the namespace",
        "aggregate-to-work",
        "set metadata.namespace",
        "metadata.name",
        "",
        "also manifest 6",
    ];
    for (index, hint) in expected.into_iter().enumerate() {
        let (reason, message) = applied(&work, index);
        let wanted = if hint.is_empty() { reasons::manifest::APPLIED } else { reasons::manifest::APPLY_FAILED };
        assert_eq!(reason, wanted, "manifest {index}: {message}");
        assert!(message.contains(hint), "the message of manifest {index} lacks {hint:?}: {message}");
    }
    let config_maps = Api::<ConfigMap>::namespaced(world.managed.clone(), "default");
    assert_eq!(config_maps.get(&good).await?.data.unwrap_or_default()["still"], "applied");
    agent.stop().await
}

/// Creates a work with this spec and one ConfigMap, and returns the message of its condition `Applied`.
async fn refusal(spec: Value) -> anyhow::Result<String> {
    let world = world().await?;
    let mut agent = world.join().await?;
    let (cluster, name) = (&agent.cluster, unique("refused"));
    let mut spec = spec;
    if spec.get("workload").is_none() {
        spec["workload"] = json!({"manifests": [config_map(&name, json!({}))]});
    }
    world.create_work_with(cluster, &name, spec).await?;
    let work = world.work_is(cluster, &name, "Applied", "False").await?;
    let conditions = work.status.unwrap_or_default().conditions;
    let message = find(&conditions, "Applied").map(|found| found.message.clone()).unwrap_or_default();
    let config_maps = Api::<ConfigMap>::namespaced(world.managed.clone(), "default");
    assert!(config_maps.get_opt(&name).await?.is_none(), "a refused work must not be applied");
    world.works(cluster).delete(&name, &DeleteParams::default()).await?;
    world.work_is_gone(cluster, &name).await?;
    agent.stop().await?;
    Ok(message)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_without_rights_is_never_ignored() -> anyhow::Result<()> {
    let account = json!({"namespace": "default", "name": "nobody"});
    let executor = json!({"subject": {"type": "ServiceAccount", "serviceAccount": account}});
    let message = refusal(json!({"executor": executor})).await?;
    assert!(message.contains("1 of 1 objects could not be applied"), "{message}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_condition_of_an_empty_work_names_what_to_do() -> anyhow::Result<()> {
    let message = refusal(json!({"workload": {}})).await?;
    assert!(message.contains("Add the objects to apply"), "{message}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_work_applied_stays_when_an_edit_of_it_is_refused() -> anyhow::Result<()> {
    let world = world().await?;
    let mut agent = world.join().await?;
    let (cluster, name) = (&agent.cluster, unique("edited"));
    world.create_work(cluster, &name, json!([config_map(&name, json!({}))])).await?;
    world.work_is_available(cluster, &name).await?;
    let empty = json!({"spec": {"workload": {"manifests": []}}});
    world.works(cluster).patch(&name, &PatchParams::default(), &Patch::Merge(empty)).await?;
    world.work_is(cluster, &name, "Applied", "False").await?;
    let config_maps = Api::<ConfigMap>::namespaced(world.managed.clone(), "default");
    assert!(config_maps.get(&name).await?.metadata.deletion_timestamp.is_none());

    let decided = json!({"spec": {"deleteOption": {"propagationPolicy": "Orphan"}}});
    world.works(cluster).patch(&name, &PatchParams::default(), &Patch::Merge(decided)).await?;
    world.works(cluster).delete(&name, &DeleteParams::default()).await?;
    world.work_is_gone(cluster, &name).await?;
    assert!(config_maps.get_opt(&name).await?.is_some());
    agent.stop().await
}
