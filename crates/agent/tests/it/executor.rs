//! Works whose executor, a service account of the managed cluster, limits what they may do.

use std::time::Duration;

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use ocm_agent::work::Settings;
use ocm_api::{conditions::manifest, reasons};
use ocm_runtime::conditions::find;
use ocm_testing::{Seen, eventually, fixture, unique};
use serde_json::{Value, json};

use crate::{
    works_feedback::{paths, polling, reports},
    works_world::WorkWorld,
};

/// The name of the executor in each world's namespace.
const EXECUTOR: &str = "deployer";
const ALL_VERBS: &str = "create,update,patch,get,delete";

/// The executor of works, which lives in the namespace of the world.
fn executor(world: &WorkWorld) -> Value {
    let account = json!({"namespace": world.cluster, "name": EXECUTOR});
    json!({"subject": {"type": "ServiceAccount", "serviceAccount": account}})
}

/// Creates a work with the executor.
async fn create(world: &WorkWorld, name: &str, manifests: Value) -> Result<()> {
    world.create_with(name, json!({"workload": {"manifests": manifests}, "executor": executor(world)})).await
}

async fn kubectl(world: &WorkWorld, args: &[&str]) -> Result<String> {
    fixture::get().managed1.kubectl(&[args, &["--namespace", &world.cluster]].concat()).await
}

/// Creates a role in the namespace of the world.
async fn role(world: &WorkWorld, name: &str, verbs: &str, resources: &str) -> Result<()> {
    let (verbs, resources) = (format!("--verb={verbs}"), format!("--resource={resources}"));
    kubectl(world, &["create", "role", name, &verbs, &resources]).await.map(|_| ())
}

/// Binds a role to a subject, such as `--serviceaccount=ns:name`.
async fn bind(world: &WorkWorld, name: &str, subject: &str) -> Result<()> {
    kubectl(world, &["create", "rolebinding", name, &format!("--role={name}"), subject]).await.map(|_| ())
}

/// Grants the executor these verbs.
async fn grant(world: &WorkWorld, verbs: &str, resources: &str) -> Result<String> {
    let name = unique("granted");
    role(world, &name, verbs, resources).await?;
    bind(world, &name, &format!("--serviceaccount={}:{EXECUTOR}", world.cluster)).await?;
    Ok(name)
}

/// Has the agent apply a work again: nothing reports a change of rights to it.
async fn touch(world: &WorkWorld, work: &str) -> Result<()> {
    let label = json!({"metadata": {"labels": {"touched": unique("at")}}});
    world.works().patch(work, &PatchParams::default(), &Patch::Merge(label)).await?;
    Ok(())
}

/// Touches a work until the condition `Applied` of its manifest has that status, and contains that text.
async fn manifest_is(world: &WorkWorld, work: &str, index: usize, status: &str, text: &str) -> Result<String> {
    eventually(&format!("Applied of manifest {index} of {work} is {status} and contains {text:?}"), || async {
        let entries = world.works().get(work).await?.status.unwrap_or_default().resource_status.manifests;
        let condition = entries.get(index).and_then(|entry| find(&entry.conditions, manifest::APPLIED)).cloned();
        match condition.filter(|found| found.status == status && found.message.contains(text)) {
            Some(found) => {
                let is_true = status == "True";
                let reason = if is_true { reasons::manifest::APPLIED } else { reasons::manifest::APPLY_FAILED };
                assert_eq!(found.reason, reason);
                anyhow::Ok(Seen::Settled(found.message))
            }
            None => {
                touch(world, work).await?;
                Ok(Seen::NotYet(format!("{entries:?}")))
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_without_rights_applies_nothing_and_is_told_how_to_get_them() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    create(&world, &name, json!([world.config_map(&name)])).await?;
    let message = manifest_is(&world, &name, 0, "False", "").await?;
    let (cluster, kubectl) = (&world.cluster, "kubectl create role work-executor-deployer");
    for part in [
        format!("service account {cluster}/{EXECUTOR}, may not create configmaps {name} in namespace {cluster}"),
        format!("{kubectl} --namespace={cluster} --verb={ALL_VERBS} --resource=configmaps"),
        "in one minute".to_owned(),
    ] {
        assert!(message.contains(&part), "{part}: {message}");
    }
    assert!(world.config_maps().get_opt(&name).await?.is_none());
    world.condition_contains(&name, "Applied", "False", "1 of 1").await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_objects_that_an_executor_may_write_are_applied_and_the_others_are_not() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    grant(&world, ALL_VERBS, "configmaps").await?;
    // The agent itself may write secrets.
    create(&world, &name, json!([world.manifest("v1", "Secret", &name), world.config_map(&name)])).await?;
    manifest_is(&world, &name, 0, "False", "may not create secrets").await?;
    manifest_is(&world, &name, 1, "True", "").await?;
    assert!(world.config_maps().get_opt(&name).await?.is_some());
    let secrets = kubectl(&world, &["get", "secrets", "-o", "name"]).await?;
    assert!(secrets.is_empty(), "{secrets}");
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_that_may_not_delete_applies_only_objects_that_stay() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    grant(&world, "create,update,patch,get", "configmaps").await?;
    create(&world, &name, json!([world.config_map(&name)])).await?;
    manifest_is(&world, &name, 0, "False", "may not delete configmaps").await?;
    world.edit(&name, json!({"deleteOption": {"propagationPolicy": "Orphan"}})).await?;
    manifest_is(&world, &name, 0, "True", "").await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_grants_only_what_it_may_do_itself() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    grant(&world, ALL_VERBS, "roles,rolebindings").await?;
    let mut role = world.manifest("rbac.authorization.k8s.io/v1", "Role", &name);
    role["rules"] = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    // Has every right in the namespace.
    let mut binding = world.manifest("rbac.authorization.k8s.io/v1", "RoleBinding", &name);
    binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"});
    binding["subjects"] = json!([{"kind": "ServiceAccount", "name": EXECUTOR, "namespace": world.cluster}]);
    create(&world, &name, json!([role, binding])).await?;
    for index in [0, 1] {
        let message = manifest_is(&world, &name, index, "False", "permission escalation").await?;
        assert!(message.contains("attempting to grant RBAC permissions"), "{message}");
    }
    let created = kubectl(&world, &["get", "roles,rolebindings", &name, "--ignore-not-found", "-o", "name"]).await?;
    assert!(created.is_empty(), "{created}");
    grant(&world, "get", "secrets").await?;
    manifest_is(&world, &name, 0, "True", "").await?;
    // Once it exists, the dry run conflicts.
    touch(&world, &name).await?;
    manifest_is(&world, &name, 0, "True", "").await?;
    manifest_is(&world, &name, 1, "False", "permission escalation").await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_are_granted_and_revoked_later_count_and_what_was_applied_is_deleted_without_them() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    create(&world, &name, json!([world.config_map(&name)])).await?;
    manifest_is(&world, &name, 0, "False", "may not create").await?;
    let granted = grant(&world, ALL_VERBS, "configmaps").await?;
    manifest_is(&world, &name, 0, "True", "").await?;
    kubectl(&world, &["delete", "rolebinding", &granted]).await?;
    manifest_is(&world, &name, 0, "False", "may not create").await?;
    assert!(world.config_maps().get_opt(&name).await?.is_some(), "it stays as it is");
    let recorded = world.records().get(&world.record_name(&name)).await?.status.unwrap_or_default();
    assert_eq!(recorded.applied_resources.len(), 1);
    world.ends_with(&name).await
}

/// An agent may read more than the authors of its works.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_reported_of_an_object_that_the_executor_may_not_apply() -> Result<()> {
    let (world, name) = (polling(Duration::from_millis(100)).await?, unique("work"));
    kubectl(&world, &["create", "secret", "generic", &name, "--from-literal=token=secret"]).await?;
    let config = json!({
        "resourceIdentifier": {"resource": "secrets", "namespace": world.cluster, "name": name},
        "updateStrategy": {"type": "ReadOnly"}, "feedbackRules": paths(&[("token", ".data.token")]),
    });
    let manifests = json!([world.manifest("v1", "Secret", &name)]);
    let spec = json!({"workload": {"manifests": manifests}, "executor": executor(&world), "manifestConfigs": [config]});
    world.create_with(&name, spec).await?;
    let (nothing, token) = (json!({}), json!({"token": "c2VjcmV0"}));
    manifest_is(&world, &name, 0, "False", "may not create secrets").await?;
    reports(&world, &name, &nothing, "True").await?;
    let granted = grant(&world, ALL_VERBS, "secrets").await?;
    manifest_is(&world, &name, 0, "True", "").await?;
    reports(&world, &name, &token, "True").await?;
    kubectl(&world, &["delete", "rolebinding", &granted]).await?;
    manifest_is(&world, &name, 0, "False", "may not create secrets").await?;
    reports(&world, &name, &nothing, "True").await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_has_the_rights_of_the_groups_of_service_accounts() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    let granted = unique("granted");
    role(&world, &granted, ALL_VERBS, "configmaps").await?;
    bind(&world, &granted, &format!("--group=system:serviceaccounts:{}", world.cluster)).await?;
    create(&world, &name, json!([world.config_map(&name)])).await?;
    manifest_is(&world, &name, 0, "True", "").await?;
    world.stop().await;
    Ok(())
}

/// With the feature gate ExecutorValidatingCaches.
async fn caching() -> Result<WorkWorld> {
    WorkWorld::with(|settings| Settings { caches_executors: true, ..settings }).await
}

/// Nothing touches the work: without the gate, the agent notices a loss of rights minutes later.
#[tokio::test(flavor = "multi_thread")]
async fn with_caches_a_change_of_rights_has_works_applied_again() -> Result<()> {
    let (world, name) = (caching().await?, unique("work"));
    create(&world, &name, json!([world.config_map(&name)])).await?;
    world.is(&name, "Applied", "False").await?;
    let role = grant(&world, ALL_VERBS, "configmaps").await?;
    world.is(&name, "Applied", "True").await?;
    let rules = |verbs: &[&str]| json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]});
    let edit = async |verbs: &[&str]| {
        let rules = rules(verbs).to_string();
        kubectl(&world, &["patch", "role", &role, "--type=merge", "-p", &rules]).await
    };
    edit(&["get"]).await?;
    world.is(&name, "Applied", "False").await?;
    edit(&["*"]).await?;
    world.is(&name, "Applied", "True").await?;
    kubectl(&world, &["delete", "rolebinding", &role]).await?;
    world.is(&name, "Applied", "False").await?;
    let group = format!("--group=system:serviceaccounts:{}", world.cluster);
    bind(&world, &role, &group).await?;
    world.is(&name, "Applied", "True").await?;
    kubectl(&world, &["delete", "rolebinding", &role]).await?;
    world.is(&name, "Applied", "False").await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn with_caches_an_escalation_is_still_refused() -> Result<()> {
    let (world, name) = (caching().await?, unique("work"));
    grant(&world, ALL_VERBS, "roles").await?;
    let mut role = world.manifest("rbac.authorization.k8s.io/v1", "Role", &name);
    role["rules"] = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    create(&world, &name, json!([role])).await?;
    manifest_is(&world, &name, 0, "False", "permission escalation").await?;
    let granted = grant(&world, "get", "secrets").await?;
    manifest_is(&world, &name, 0, "True", "").await?;
    kubectl(&world, &["delete", "rolebinding", &granted]).await?;
    manifest_is(&world, &name, 0, "False", "permission escalation").await?;
    world.stop().await;
    Ok(())
}

/// A role that is there already, with rules that the executor may not grant: a label would add them to another role, and a
/// manifest without its `resourceNames` would extend it.
#[tokio::test(flavor = "multi_thread")]
async fn an_executor_extends_no_role_by_server_side_apply_of_a_part_of_it() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    grant(&world, ALL_VERBS, "roles").await?;
    role(&world, &name, "get", "secrets").await?;
    let mut part = world.manifest("rbac.authorization.k8s.io/v1", "Role", &name);
    part["metadata"]["labels"] = json!({"part": "of"});
    let strategy = |settings: Value| {
        let id = json!({"group": "rbac.authorization.k8s.io", "resource": "roles", "namespace": world.cluster, "name": name});
        let strategy = json!({"type": "ServerSideApply", "serverSideApply": settings});
        json!([{"resourceIdentifier": id, "updateStrategy": strategy}])
    };
    let spec = json!({"workload": {"manifests": [part]}, "executor": executor(&world),
        "manifestConfigs": strategy(json!({"force": true}))});
    world.create_with(&name, spec).await?;
    manifest_is(&world, &name, 0, "False", "permission escalation").await?;
    let ignored = json!([{"condition": "OnSpokePresent", "jsonPointers": ["/metadata/labels"]}]);
    world.edit(&name, json!({"manifestConfigs": strategy(json!({"ignoreFields": ignored}))})).await?;
    manifest_is(&world, &name, 0, "False", "ignoreFields[0] cannot be used").await?;
    let labels = kubectl(&world, &["get", "role", &name, "-o", "jsonpath={.metadata.labels}"]).await?;
    assert!(labels.is_empty(), "{labels}");
    grant(&world, "get", "secrets").await?;
    world.edit(&name, json!({"manifestConfigs": strategy(json!({"force": true}))})).await?;
    manifest_is(&world, &name, 0, "True", "").await?;
    world.stop().await;
    Ok(())
}
