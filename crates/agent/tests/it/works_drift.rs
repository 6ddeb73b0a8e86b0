//! Applied objects that somebody changes, where the regular pass is hours away.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::Result;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, ResourceQuota},
    events::v1::Event,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use ocm_agent::work::Settings;
use ocm_runtime::conditions::find;
use ocm_testing::{
    AuditLog, Seen, eventually,
    fault::{Asked, Fault, FaultyServer, Injection},
    fixture, unique,
};
use serde_json::{Value, json};

use crate::works_world::WorkWorld;

const HOURS: Duration = Duration::from_secs(6 * 3600);

/// Without regular passes and polls.
fn rarely(settings: Settings) -> Settings {
    Settings { reapply: HOURS..2 * HOURS, status_sync: HOURS, ..settings }
}

/// A work with one ConfigMap, and one with a Deployment that leaves most fields to their defaults.
async fn world_with_works() -> Result<(WorkWorld, String)> {
    let (world, name) = (WorkWorld::with(rarely).await?, unique("work"));
    world.create(&name, json!([config_map(&world, &name), deployment(&world, &name)])).await?;
    world.is(&name, "Applied", "True").await?;
    Ok((world, name))
}

fn config_map(world: &WorkWorld, name: &str) -> Value {
    let mut manifest = world.config_map(name);
    manifest["metadata"]["labels"] = json!({"app": "ours"});
    manifest["data"] = json!({"key": "ours"});
    manifest
}

fn deployment(world: &WorkWorld, name: &str) -> Value {
    let mut manifest = world.manifest("apps/v1", "Deployment", name);
    let template =
        json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}});
    manifest["spec"] = json!({"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template});
    manifest
}

fn deployments(world: &WorkWorld) -> Api<Deployment> {
    Api::namespaced(world.managed.clone(), &world.cluster)
}

/// A write by somebody else.
fn theirs() -> PatchParams {
    PatchParams { field_manager: Some("somebody".into()), ..PatchParams::default() }
}

async fn edit_map(world: &WorkWorld, name: &str, patch: Value) -> Result<()> {
    world.config_maps().patch(name, &theirs(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn scale(world: &WorkWorld, name: &str, replicas: i32) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    deployments(world).patch(name, &theirs(), &patch).await?;
    Ok(())
}

fn is_repaired(map: &ConfigMap) -> bool {
    let data = map.data.as_ref().and_then(|data| data.get("key"));
    data.is_some_and(|value| value == "ours")
        && map.labels().get("app").is_some_and(|value| value == "ours")
        && map.owner_references().len() == 1
}

async fn map_is_repaired(world: &WorkWorld, name: &str) -> Result<ConfigMap> {
    eventually(&format!("{name} is repaired"), || async {
        let found = world.config_maps().get_opt(name).await?;
        anyhow::Ok(match found {
            Some(map) if is_repaired(&map) => Seen::Settled(map),
            found => Seen::NotYet(format!("{found:?}")),
        })
    })
    .await
}

async fn deployment_is_repaired(world: &WorkWorld, name: &str) -> Result<()> {
    eventually(&format!("{name} has its replicas"), || async {
        let found = deployments(world).get(name).await?;
        anyhow::Ok(found.spec.and_then(|spec| spec.replicas) == Some(2))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_changes_of_an_applied_object_is_repaired_at_once() -> Result<()> {
    let (world, name) = world_with_works().await?;
    edit_map(&world, &name, json!({"data": {"key": "theirs"}})).await?;
    map_is_repaired(&world, &name).await?;
    edit_map(&world, &name, json!({"metadata": {"labels": {"app": "theirs", "theirs": "x"}}})).await?;
    let map = map_is_repaired(&world, &name).await?;
    assert_eq!(map.labels().get("theirs").map(String::as_str), Some("x"), "what the manifest lacks is not ours");
    edit_map(&world, &name, json!({"metadata": {"ownerReferences": null}})).await?;
    let uid = map_is_repaired(&world, &name).await?.uid();
    world.config_maps().delete(&name, &DeleteParams::default()).await?;
    assert_ne!(map_is_repaired(&world, &name).await?.uid(), uid);
    scale(&world, &name, 5).await?;
    deployment_is_repaired(&world, &name).await?;
    world.stop().await;
    Ok(())
}

/// The requests of an agent, as `GET /api/v1/...`.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    /// Records what passes the server.
    fn of(server: &FaultyServer) -> Self {
        let requests = Self::default();
        let recorded = requests.clone();
        let record = move |asked: &Asked| {
            let kind = if asked.is_watch() { "WATCH" } else { asked.method.as_str() };
            recorded.lock().push(format!("{kind} {}", asked.path));
            false
        };
        server.inject(Fault::new(Injection::Hang).when(record));
        requests
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn matching(&self, text: &str) -> Vec<String> {
        self.lock().iter().filter(|request| request.contains(text)).cloned().collect()
    }

    fn clear(&self) {
        self.lock().clear();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_status_costs_no_request_and_no_write() -> Result<()> {
    let (mut world, name) = (WorkWorld::with(rarely).await?, unique("work"));
    let server = FaultyServer::start(fixture::get().managed1).await?;
    let requests = Requests::of(&server);
    world.start_behind(server).await?;
    let other = format!("{name}-other");
    for name in [&name, &other] {
        world.create(name, json!([deployment(&world, name)])).await?;
        world.is(name, "Applied", "True").await?;
    }
    scale(&world, &other, 5).await?;
    deployment_is_repaired(&world, &other).await?;
    requests.clear();
    let status = Patch::Merge(json!({"status": {"replicas": 2, "readyReplicas": 1, "observedGeneration": 1}}));
    deployments(&world).patch_status(&name, &PatchParams::default(), &status).await?;
    // The watch brings the status before this.
    scale(&world, &other, 5).await?;
    deployment_is_repaired(&world, &other).await?;
    assert_eq!(requests.matching(&format!("/{name}")).iter().filter(|path| !path.contains("-other")).count(), 0);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_the_agent_may_not_list_is_not_watched_and_repaired_by_the_regular_pass() -> Result<()> {
    let second = Duration::from_secs(1);
    let mut world = WorkWorld::with(|settings| Settings { reapply: second..2 * second, ..settings }).await?;
    let (server, name) = (FaultyServer::start(fixture::get().managed1).await?, unique("work"));
    let requests = Requests::of(&server);
    world.start_behind(server).await?;
    let mut quota = world.manifest("v1", "ResourceQuota", &name);
    quota["spec"] = json!({"hard": {"pods": "5"}});
    world.create(&name, json!([quota])).await?;
    world.is(&name, "Applied", "True").await?;
    let quotas: Api<ResourceQuota> = Api::namespaced(world.managed.clone(), &world.cluster);
    quotas.patch(&name, &theirs(), &Patch::Merge(json!({"spec": {"hard": {"pods": "7"}}}))).await?;
    eventually("the quota is repaired", || async {
        let hard = quotas.get(&name).await?.spec.and_then(|spec| spec.hard).unwrap_or_default();
        anyhow::Ok(hard.get("pods").is_some_and(|pods| pods.0 == "5"))
    })
    .await?;
    assert_eq!(requests.matching("WATCH /api/v1/resourcequotas"), Vec::<String>::new());
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_has_expired_or_was_cut_begins_again_and_brings_what_was_missed() -> Result<()> {
    let (mut world, name) = (WorkWorld::with(rarely).await?, unique("work"));
    let server = FaultyServer::start(fixture::get().managed1).await?;
    let requests = Requests::of(&server);
    server.inject(Fault::new(Injection::Expire).when(|asked| asked.is_watch() && asked.is_about("configmaps")));
    world.start_behind(server).await?;
    world.create(&name, json!([config_map(&world, &name)])).await?;
    world.is(&name, "Applied", "True").await?;
    eventually("the watch has begun again", || async { requests.matching("WATCH /api/v1/configmaps").len() > 1 })
        .await?;
    edit_map(&world, &name, json!({"data": {"key": "theirs"}})).await?;
    map_is_repaired(&world, &name).await?;
    world.cut();
    edit_map(&world, &name, json!({"data": {"key": "theirs"}})).await?;
    map_is_repaired(&world, &name).await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_while_the_agent_was_stopped_is_repaired_when_it_starts_and_later_ones_at_once() -> Result<()> {
    let (mut world, name) = world_with_works().await?;
    world.stop().await;
    edit_map(&world, &name, json!({"data": {"key": "theirs"}})).await?;
    world.start().await?;
    map_is_repaired(&world, &name).await?;
    edit_map(&world, &name, json!({"data": {"key": "theirs"}})).await?;
    map_is_repaired(&world, &name).await?;
    world.stop().await;
    Ok(())
}

/// How often the agent has updated the ConfigMaps of a world.
fn updates(world: &WorkWorld) -> Result<usize> {
    let writes = AuditLog::of(fixture::get().managed1)?.all()?;
    let is_update = |write: &&ocm_testing::Write| {
        write.user == "work-agent" && write.namespace == world.cluster && write.to_string() == "update configmaps"
    };
    Ok(writes.iter().filter(is_update).count())
}

/// The notes of the events about a work.
async fn events(world: &WorkWorld, work: &str) -> Result<Vec<String>> {
    let events: Api<Event> = Api::namespaced(world.hub.clone(), &world.cluster);
    let events = events.list(&ListParams::default()).await?.items.into_iter();
    let of_work =
        events.filter(|event| event.regarding.as_ref().is_some_and(|object| object.name.as_deref() == Some(work)));
    Ok(of_work.filter_map(|event| event.note).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fight_about_a_field_costs_few_writes_and_an_edit_of_the_work_does_not_wait() -> Result<()> {
    let (world, name) = world_with_works().await?;
    for _ in 0..5 {
        edit_map(&world, &name, json!({"data": {"key": "theirs"}})).await?;
        map_is_repaired(&world, &name).await?;
    }
    edit_map(&world, &name, json!({"data": {"key": "theirs"}})).await?;
    // The watch brings the last edit before this.
    scale(&world, &name, 5).await?;
    deployment_is_repaired(&world, &name).await?;
    let contested = eventually("the condition of the object says who keeps changing it", || async {
        let status = world.works().get(&name).await?.status.unwrap_or_default();
        let entry = status.resource_status.manifests.into_iter().find(|entry| entry.resource_meta.kind == "ConfigMap");
        let applied = entry.and_then(|entry| find(&entry.conditions, "Applied").cloned());
        anyhow::Ok(applied.filter(|applied| applied.message.contains("keep changing")))
    })
    .await?;
    assert_eq!((contested.status.as_str(), contested.reason.as_str()), ("True", "AppliedManifestComplete"));
    assert!(contested.message.contains(".data.key (by somebody)"), "{}", contested.message);
    let reasons = eventually("there is an event for the first repair and one for the fight", || async {
        let notes = events(&world, &name).await?;
        anyhow::Ok(if notes.iter().any(|note| note.contains("keep changing")) {
            Seen::Settled(notes)
        } else {
            Seen::NotYet(format!("{notes:?}"))
        })
    })
    .await?;
    let of_map = |note: &&String| note.contains("configmaps") && note.contains(".data.key (by somebody)");
    assert_eq!(reasons.iter().filter(of_map).count(), 2, "{reasons:?}");
    assert_eq!(updates(&world)?, 5, "the sixth repair waits, also when the work is applied for another reason");
    let mut edited = config_map(&world, &name);
    edited["data"] = json!({"key": "ours", "more": "data"});
    world.edit(&name, json!({"workload": {"manifests": [edited, deployment(&world, &name)]}})).await?;
    map_is_repaired(&world, &name).await?;
    world.stop().await;
    Ok(())
}
