//! What works report of their objects.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret, rbac::v1::Role};
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use ocm_agent::work::{FeedbackSettings, Settings};
use ocm_runtime::conditions::find;
use ocm_testing::{Seen, eventually, unique};
use serde_json::{Value, json};

use crate::works_world::WorkWorld;

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(24 * 3600);
const SOON: Duration = Duration::from_millis(300);

pub(crate) async fn polling(interval: Duration) -> Result<WorkWorld> {
    // What is deleted stays deleted for the moment.
    WorkWorld::with(|settings| Settings { status_sync: interval, drift_watch_limit: 0, ..settings }).await
}

fn config(world: &WorkWorld, group: &str, resource: &str, scrape_type: &str, rules: &Value) -> Value {
    json!({"resourceIdentifier": {"group": group, "resource": resource, "namespace": world.cluster, "name": "*"},
        "feedbackRules": rules, "feedbackScrapeType": scrape_type})
}

pub(crate) fn paths(paths: &[(&str, &str)]) -> Value {
    let paths: Vec<_> = paths.iter().map(|(name, path)| json!({"name": name, "path": path})).collect();
    json!([{"type": "JSONPaths", "jsonPaths": paths}])
}

fn merge(change: &Value) -> Patch<&Value> {
    Patch::Merge(change)
}

/// The values and the condition of the first object of a work.
async fn feedback(world: &WorkWorld, work: &str) -> Result<(Value, Value)> {
    let status = world.works().get(work).await?.status.unwrap_or_default();
    let Some(entry) = status.resource_status.manifests.first() else { return Ok((Value::Null, Value::Null)) };
    let value = |value: &Value| {
        let field =
            ["integer", "string", "boolean", "jsonRaw"].into_iter().find_map(|key| value["fieldValue"].get(key));
        (value["name"].as_str().unwrap_or_default().to_owned(), field.cloned().unwrap_or_default())
    };
    let feedback = serde_json::to_value(&entry.status_feedback)?;
    let values =
        feedback["values"].as_array().map(|values| values.iter().map(value).collect::<serde_json::Map<_, _>>());
    let condition = serde_json::to_value(find(&entry.conditions, "StatusFeedbackSynced"))?;
    Ok((json!(values.unwrap_or_default()), condition))
}

/// Waits until a work reports these values, with a condition of that status; returns the condition.
pub(crate) async fn reports(world: &WorkWorld, work: &str, values: &Value, status: &str) -> Result<Value> {
    eventually(&format!("{work} reports {values}"), || async {
        let (found, condition) = feedback(world, work).await?;
        let is_reported = found == *values && condition["status"] == status;
        anyhow::Ok(if is_reported { Seen::Settled(condition) } else { Seen::NotYet(format!("{found} {condition}")) })
    })
    .await
}

fn deployment(world: &WorkWorld, name: &str) -> Value {
    let mut manifest = world.manifest("apps/v1", "Deployment", name);
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    manifest["spec"] = json!({"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template});
    manifest
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_an_object_is_reported_while_it_changes_and_stays_when_the_object_is_gone() -> Result<()> {
    let (world, name) = (polling(SOON).await?, unique("work"));
    let rules = json!([{"type": "WellKnownStatus"}, paths(&[("wanted", ".spec.replicas")])[0]]);
    let spec = json!({"workload": {"manifests": [deployment(&world, &name)]},
        "manifestConfigs": [config(&world, "apps", "deployments", "Poll", &rules)]});
    world.create_with(&name, spec).await?;
    // The deployment controller runs, and no pod does.
    let first = reports(&world, &name, &json!({"wanted": 1, "Replicas": 1}), "True").await?;
    assert_eq!(first["reason"], "StatusFeedbackSynced");
    let deployments: Api<Deployment> = Api::namespaced(world.managed.clone(), &world.cluster);
    deployments.patch(&name, &PatchParams::default(), &merge(&json!({"spec": {"replicas": 2}}))).await?;
    let all = json!({"wanted": 2, "Replicas": 2});
    reports(&world, &name, &all, "True").await?;
    deployments.delete(&name, &Default::default()).await?;
    world.is(&name, "Available", "False").await?;
    reports(&world, &name, &all, "True").await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_rules_are_named_and_what_works_is_reported() -> Result<()> {
    let raw = FeedbackSettings { json_raw: true, ..FeedbackSettings::default() };
    let world = WorkWorld::with(|settings| Settings { status_sync: SOON, feedback: raw, ..settings }).await?;
    let name = unique("work");
    let mut manifest = world.config_map(&name);
    manifest["data"] = json!({"a": "1", "long": "x".repeat(2000)});
    let mistakes = paths(&[("a", ".data.a"), ("data", ".data"), ("wrong", ".data[")]);
    let rules = json!([mistakes[0], paths(&[("a", ".data.long")])[0]]);
    let spec = json!({"workload": {"manifests": [manifest]}, "manifestConfigs": [config(&world, "", "configmaps", "Poll", &rules)]});
    world.create_with(&name, spec).await?;
    world.is(&name, "Applied", "True").await?;
    let condition = reports(&world, &name, &json!({"a": "1"}), "False").await?;
    assert_eq!(condition["reason"], "StatusFeedbackSyncFailed");
    let message = condition["message"].as_str().unwrap_or_default();
    for part in [
        "spec.manifestConfigs[0].feedbackRules[0].jsonPaths[1] (data): the value as JSON has",
        "feedbackRules[0].jsonPaths[2] (wrong): the path is invalid: the closing bracket is missing, at character 6",
        "feedbackRules[1].jsonPaths[0] (a): another value has the same name",
    ] {
        assert!(message.contains(part), "{message}");
    }
    world
        .edit(
            &name,
            json!({"manifestConfigs": [config(&world, "", "configmaps", "Poll", &paths(&[("a", ".data.a")]))]}),
        )
        .await?;
    reports(&world, &name, &json!({"a": "1"}), "True").await?;
    world.edit(&name, json!({"manifestConfigs": null})).await?;
    let none = reports(&world, &name, &json!({}), "True").await?;
    assert_eq!(none["reason"], "NoStatusFeedbackSynced");
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_object_is_reported_without_polling() -> Result<()> {
    let (world, name) = (polling(NEVER).await?, unique("work"));
    let mut manifest = world.config_map(&name);
    manifest["data"] = json!({"a": "1"});
    let rules = paths(&[("a", ".data.a"), ("label", ".metadata.labels.l")]);
    let spec = json!({"workload": {"manifests": [manifest]}, "manifestConfigs": [config(&world, "", "configmaps", "Watch", &rules)]});
    world.create_with(&name, spec).await?;
    reports(&world, &name, &json!({"a": "1"}), "True").await?;
    let label = json!({"metadata": {"labels": {"l": "x"}}});
    world.config_maps().patch(&name, &PatchParams::default(), &merge(&label)).await?;
    reports(&world, &name, &json!({"a": "1", "label": "x"}), "True").await?;
    world.config_maps().delete(&name, &Default::default()).await?;
    world.is(&name, "Available", "False").await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_may_not_be_watched_is_polled() -> Result<()> {
    let (world, name) = (polling(SOON).await?, unique("work"));
    let rules = paths(&[("label", ".metadata.labels.l")]);
    let spec = json!({"workload": {"manifests": [world.manifest("v1", "Secret", &name)]},
        "manifestConfigs": [config(&world, "", "secrets", "Watch", &rules)]});
    world.create_with(&name, spec).await?;
    reports(&world, &name, &json!({}), "True").await?;
    let secrets: Api<Secret> = Api::namespaced(world.managed.clone(), &world.cluster);
    let label = json!({"metadata": {"labels": {"l": "x"}}});
    secrets.patch(&name, &PatchParams::default(), &merge(&label)).await?;
    reports(&world, &name, &json!({"label": "x"}), "True").await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_is_one_too_many_begins_when_another_one_ends() -> Result<()> {
    let world = WorkWorld::with(|settings| Settings { status_sync: NEVER, max_feedback_watch: 1, ..settings }).await?;
    let (first, second) = (unique("first"), unique("second"));
    let rules = paths(&[("label", ".metadata.labels.l")]);
    let label = |value: &str| json!({"metadata": {"labels": {"l": value}}});
    let spec = json!({"workload": {"manifests": [world.config_map(&first)]},
        "manifestConfigs": [config(&world, "", "configmaps", "Watch", &rules)]});
    world.create_with(&first, spec).await?;
    reports(&world, &first, &json!({}), "True").await?;
    let group = "rbac.authorization.k8s.io";
    let role = world.manifest(&format!("{group}/v1"), "Role", &second);
    let spec = json!({"workload": {"manifests": [role]}, "manifestConfigs": [config(&world, group, "roles", "Watch", &rules)]});
    world.create_with(&second, spec).await?;
    reports(&world, &second, &json!({}), "True").await?;
    let roles: Api<Role> = Api::namespaced(world.managed.clone(), &world.cluster);
    roles.patch(&second, &PatchParams::default(), &merge(&label("x"))).await?;
    // The one watch that is allowed is that of the first work.
    world.config_maps().patch(&first, &PatchParams::default(), &merge(&label("y"))).await?;
    reports(&world, &first, &json!({"label": "y"}), "True").await?;
    assert_eq!(feedback(&world, &second).await?.0, json!({}));
    world.delete(&first).await?;
    world.is_gone(&first).await?;
    reports(&world, &second, &json!({"label": "x"}), "True").await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_a_custom_resource_is_reported_by_its_paths_and_is_well_known_by_its_group_alone() -> Result<()> {
    let (world, name) = (polling(SOON).await?, unique("work"));
    let (group, mut manifest) = ("feedback.example.com", world.manifest("feedback.example.com/v1", "Job", &name));
    manifest["spec"] = json!({"parts": 3});
    let values = [
        ("parts", ".spec.parts"),
        ("phase", ".status.phase"),
        ("ready", ".status.conditions[?(@.type==\"Ready\")].status"),
        ("exact", ".status.exact"),
    ];
    let spec = json!({"workload": {"manifests": [manifest]},
        "manifestConfigs": [config(&world, group, "jobs", "Poll", &paths(&values))]});
    world.create_with(&name, spec).await?;
    reports(&world, &name, &json!({"parts": 3}), "True").await?;
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", "Job"), "jobs");
    let jobs: Api<DynamicObject> = Api::namespaced_with(world.managed.clone(), &world.cluster, &resource);
    let ready = json!([{"type": "Late", "status": "False"}, {"type": "Ready", "status": "True"}]);
    let status = json!({"status": {"phase": "Running", "exact": true, "succeeded": 1, "conditions": ready}});
    jobs.patch_status(&name, &PatchParams::default(), &merge(&status)).await?;
    let all = json!({"parts": 3, "phase": "Running", "ready": "True", "exact": true});
    reports(&world, &name, &all, "True").await?;
    let well_known = json!([{"type": "WellKnownStatus"}]);
    world.edit(&name, json!({"manifestConfigs": [config(&world, group, "jobs", "Poll", &well_known)]})).await?;
    let condition = reports(&world, &name, &json!({}), "False").await?;
    let message = condition["message"].as_str().unwrap_or_default();
    assert!(message.contains("Job of feedback.example.com/v1 has no well-known status"), "{message}");
    world.stop().await;
    Ok(())
}
