//! Conditions that rules compute from objects, and works that are complete.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use ocm_agent::work::Settings;
use ocm_runtime::conditions::{find, is_true};
use ocm_testing::{Seen, eventually, unique};
use serde_json::{Value, json};

use crate::works_world::WorkWorld;

async fn world() -> Result<WorkWorld> {
    WorkWorld::with(|settings| Settings { status_sync: Duration::from_millis(300), ..settings }).await
}

fn job(world: &WorkWorld, name: &str) -> Value {
    let mut job = world.manifest("batch/v1", "Job", name);
    let container = json!({"name": "main", "image": "none"});
    // Such a job is left alone by the controller of jobs.
    job["spec"] = json!({"managedBy": "example.com/test", "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}});
    job
}

fn config(world: &WorkWorld, group: &str, resource: &str, name: &str, rules: &Value) -> Value {
    let id = json!({"group": group, "resource": resource, "namespace": world.cluster, "name": name});
    // With Update, the fields of a job that the server has added would be removed, which it refuses.
    json!({"resourceIdentifier": id, "conditionRules": rules, "updateStrategy": {"type": "ServerSideApply"}})
}

fn jobs(world: &WorkWorld) -> Api<Job> {
    Api::namespaced(world.managed.clone(), &world.cluster)
}

/// Plays the controller of jobs.
async fn finish(world: &WorkWorld, name: &str) -> Result<()> {
    let time = "2026-01-01T00:00:00Z";
    let condition = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": "CompletionsReached", "message": "",
        "lastProbeTime": time, "lastTransitionTime": time})
    };
    let conditions = [condition("SuccessCriteriaMet"), condition("Complete")];
    let status =
        json!({"status": {"startTime": time, "completionTime": time, "succeeded": 1, "conditions": conditions}});
    jobs(world).patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

/// Waits until a condition of an object of a work has that status; returns its reason and message.
async fn of_object(
    world: &WorkWorld,
    work: &str,
    ordinal: usize,
    type_: &str,
    status: &str,
) -> Result<(String, String)> {
    eventually(&format!("{type_} of object {ordinal} of {work} is {status}"), || async {
        let found = world.works().get(work).await?;
        let manifests = found.status.unwrap_or_default().resource_status.manifests;
        let conditions = manifests.get(ordinal).map(|entry| entry.conditions.clone()).unwrap_or_default();
        let condition = find(&conditions, type_).filter(|condition| condition.status == status);
        let condition = condition.filter(|condition| condition.observed_generation == found.metadata.generation);
        let outcome = condition.map(|condition| (condition.reason.clone(), condition.message.clone()));
        anyhow::Ok(outcome.map_or_else(|| Seen::NotYet(format!("{conditions:?}")), Seen::Settled))
    })
    .await
}

async fn has_no(world: &WorkWorld, work: &str, type_: &str) -> Result<()> {
    eventually(&format!("{work} has no {type_}"), || async {
        let status = world.works().get(work).await?.status.unwrap_or_default();
        let of_objects = status.resource_status.manifests.iter().flat_map(|entry| &entry.conditions);
        let found = status.conditions.iter().chain(of_objects).find(|condition| condition.type_ == type_);
        anyhow::Ok(found.map_or(Seen::Settled(()), |found| Seen::NotYet(format!("{found:?}"))))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_finishes_completes_its_work_which_is_frozen_until_it_is_not_complete() -> Result<()> {
    let (world, name) = (world().await?, unique("job"));
    let rule = json!([{"condition": "Complete", "type": "WellKnownConditions"}]);
    let spec = |job: Value, rules: Value| json!({"workload": {"manifests": [job]}, "manifestConfigs": rules});
    let rules = json!([config(&world, "batch", "jobs", "*", &rule)]);
    world.create_with(&name, spec(job(&world, &name), rules.clone())).await?;
    assert_eq!(world.is(&name, "Complete", "False").await?, "The job is not finished");
    finish(&world, &name).await?;
    assert_eq!(world.is(&name, "Complete", "True").await?, "The job is finished");
    let (reason, _) = of_object(&world, &name, 0, "Complete", "True").await?;
    assert_eq!(reason, "ConditionRuleEvaluated");

    let mut labelled = job(&world, &name);
    labelled["metadata"]["labels"] = json!({"new": "label"});
    world.edit(&name, spec(labelled.clone(), rules)).await?;
    // The status follows the new generation, and the object does not.
    world.is(&name, "Complete", "True").await?;
    let work = world.works().get(&name).await?;
    let conditions = work.status.unwrap_or_default().conditions;
    let applied = find(&conditions, "Applied").context("it was applied")?;
    assert_eq!((applied.observed_generation, work.metadata.generation), (Some(1), Some(2)));
    let labels = jobs(&world).get(&name).await?.metadata.labels.unwrap_or_default();
    assert!(!labels.contains_key("new"), "{labels:?}");

    world.edit(&name, json!({"manifestConfigs": [config(&world, "batch", "jobs", "*", &json!([]))]})).await?;
    has_no(&world, &name, "Complete").await?;
    world.is(&name, "Applied", "True").await?;
    let labels = jobs(&world).get(&name).await?.metadata.labels.unwrap_or_default();
    assert_eq!(labels.get("new").map(String::as_str), Some("label"));
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_completes_with_the_only_job_that_has_a_rule() -> Result<()> {
    let (world, name) = (world().await?, unique("jobs"));
    let (first, second) = (format!("{name}-1"), format!("{name}-2"));
    let rules =
        config(&world, "batch", "jobs", &first, &json!([{"condition": "Complete", "type": "WellKnownConditions"}]));
    let manifests = [job(&world, &first), job(&world, &second)];
    world.create_with(&name, json!({"workload": {"manifests": manifests}, "manifestConfigs": [rules]})).await?;
    world.is(&name, "Complete", "False").await?;
    finish(&world, &first).await?;
    assert_eq!(world.is(&name, "Complete", "True").await?, "The job is finished");
    let status = world.works().get(&name).await?.status.unwrap_or_default();
    let has_complete = |entry: &ocm_api::work::v1::ManifestCondition| find(&entry.conditions, "Complete").is_some();
    let with: Vec<_> = status.resource_status.manifests.iter().map(has_complete).collect();
    assert_eq!(with, [true, false]);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_complete_stays_as_it_is_while_others_are_applied() -> Result<()> {
    let (world, name) = (world().await?, unique("partly"));
    let (first, second) = (format!("{name}-1"), format!("{name}-2"));
    let rules = json!([{"condition": "Complete", "type": "WellKnownConditions"}]);
    let configs = json!([config(&world, "batch", "jobs", "*", &rules)]);
    let manifests = json!([job(&world, &first), job(&world, &second)]);
    world.create_with(&name, json!({"workload": {"manifests": manifests}, "manifestConfigs": configs})).await?;
    of_object(&world, &name, 0, "Complete", "False").await?;
    finish(&world, &first).await?;
    of_object(&world, &name, 0, "Complete", "True").await?;
    let mut labelled = manifests;
    for index in 0..2 {
        labelled[index]["metadata"]["labels"] = json!({"new": "label"});
    }
    world.edit(&name, json!({"workload": {"manifests": labelled}})).await?;
    world.is(&name, "Applied", "True").await?;
    let label = |job: Job| job.metadata.labels.unwrap_or_default().get("new").cloned();
    assert_eq!(label(jobs(&world).get(&first).await?), None);
    assert_eq!(label(jobs(&world).get(&second).await?).as_deref(), Some("label"));
    world.is(&name, "Complete", "False").await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_follow_cel_expressions_and_those_that_fail_say_why() -> Result<()> {
    let (world, name) = (world().await?, unique("cel"));
    let (good, bad) = (format!("{name}-good"), format!("{name}-bad"));
    let expression = "object.?metadata.annotations[?'phase'].orValue('') == 'done'";
    let progressing = json!({"condition": "Progressing", "type": "CEL", "celExpressions": [format!("!({expression})")],
        "messageExpression": "object.metadata.name + (result ? ' works' : ' rests')"});
    let ready = json!({"condition": "example.com/Ready", "type": "CEL", "celExpressions": ["true", expression]});
    let invalid = json!({"condition": "example.com/Ready", "type": "CEL", "celExpressions": ["object.data.size("]});
    let configs = [
        config(&world, "", "configmaps", &good, &json!([progressing, ready])),
        config(&world, "", "configmaps", &bad, &json!([invalid])),
    ];
    let manifests = [world.config_map(&good), world.config_map(&bad)];
    world.create_with(&name, json!({"workload": {"manifests": manifests}, "manifestConfigs": configs})).await?;
    world.is(&name, "Applied", "True").await?;
    assert_eq!(world.is(&name, "Progressing", "True").await?, format!("{good} works"));
    let (reason, message) = of_object(&world, &name, 1, "example.com/Ready", "False").await?;
    assert_eq!(reason, "ConditionRuleExpressionError");
    let expected = "celExpressions[0]: expected a value, found the end of the expression (line 1, column 18)";
    assert_eq!(message, expected);

    let done = json!({"metadata": {"annotations": {"phase": "done"}}});
    world.config_maps().patch(&good, &PatchParams::default(), &Patch::Merge(done)).await?;
    assert_eq!(world.is(&name, "Progressing", "False").await?, format!("{good} rests"));
    of_object(&world, &name, 0, "example.com/Ready", "True").await?;
    assert_eq!(world.is(&name, "example.com/Ready", "False").await?, "Aggregated from 2 objects");

    // Without the invalid rule, the other one decides; without rules, there are no conditions.
    world.edit(&name, json!({"manifestConfigs": [configs[0]]})).await?;
    assert_eq!(world.is(&name, "example.com/Ready", "True").await?, "The object is example.com/Ready");
    world.edit(&name, json!({"manifestConfigs": []})).await?;
    has_no(&world, &name, "example.com/Ready").await?;
    has_no(&world, &name, "Progressing").await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_whose_condition_no_status_can_have_fails_its_object_alone() -> Result<()> {
    let (world, name) = (world().await?, unique("names"));
    let (reserved, malformed, good) = (format!("{name}-1"), format!("{name}-2"), format!("{name}-3"));
    let rule = |condition: &str| json!([{"condition": condition, "type": "CEL", "celExpressions": ["true"]}]);
    let configs = [
        config(&world, "", "configmaps", &reserved, &rule("Applied")),
        config(&world, "", "configmaps", &malformed, &rule("not a type")),
        config(&world, "", "configmaps", &good, &rule("Fine")),
    ];
    let manifests = [world.config_map(&reserved), world.config_map(&malformed), world.config_map(&good)];
    world.create_with(&name, json!({"workload": {"manifests": manifests}, "manifestConfigs": configs})).await?;
    world.is(&name, "Applied", "False").await?;
    let (_, message) = of_object(&world, &name, 0, "Applied", "False").await?;
    assert!(message.contains("the condition Applied is set by the agent itself"), "{message}");
    let (_, message) = of_object(&world, &name, 1, "Applied", "False").await?;
    assert!(message.contains("\"not a type\" is no condition type"), "{message}");
    of_object(&world, &name, 2, "Applied", "True").await?;
    world.is(&name, "Fine", "True").await?;
    let existing = [world.config_maps().get_opt(&reserved).await?, world.config_maps().get_opt(&good).await?];
    assert_eq!(existing.map(|map| map.is_some()), [false, true]);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_whose_objects_do_not_change_is_not_written() -> Result<()> {
    let (world, name) = (world().await?, unique("idle"));
    let rules = json!([{"condition": "Complete", "type": "CEL", "celExpressions": ["object.metadata.labels.all(k, k == '')"],
        "messageExpression": "object.metadata.labels.map(k, k).join()"}]);
    let mut map = world.config_map(&name);
    map["metadata"]["labels"] = json!({"b": "", "a": "", "c": ""});
    let configs = [config(&world, "", "configmaps", &name, &rules)];
    world.create_with(&name, json!({"workload": {"manifests": [map]}, "manifestConfigs": configs})).await?;
    assert_eq!(world.is(&name, "Complete", "False").await?, "abc");
    let written = world.works().get(&name).await?.metadata.resource_version;
    // Another work that is polled more than once in the meantime.
    let (other, done) = (unique("other"), json!({"metadata": {"annotations": {"phase": "done"}}}));
    let rule = json!([{"condition": "Done", "type": "CEL", "celExpressions": ["has(object.metadata.annotations)"]}]);
    let configs = [config(&world, "", "configmaps", &other, &rule)];
    let spec = json!({"workload": {"manifests": [world.config_map(&other)]}, "manifestConfigs": configs});
    world.create_with(&other, spec).await?;
    world.is(&other, "Done", "False").await?;
    world.config_maps().patch(&other, &PatchParams::default(), &Patch::Merge(done)).await?;
    world.is(&other, "Done", "True").await?;
    let work = world.works().get(&name).await?;
    assert!(!is_true(&work.status.unwrap_or_default().conditions, "Complete"));
    assert_eq!(work.metadata.resource_version, written);
    world.stop().await;
    Ok(())
}
