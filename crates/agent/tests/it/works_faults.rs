//! Works from their creation to their deletion while the servers fail: each kind of fault hits each write of the agent, on the
//! hub and on the managed cluster, and some reviews of the executor's rights. What is left is what is left without faults,
//! and it takes few more writes.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret},
    events::v1::Event,
    rbac::v1::Role,
    storage::v1::StorageClass,
};
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use ocm_agent::work::Settings;
use ocm_testing::{
    Seen, eventually,
    fault::{Asked, Fault, FaultyServer, Injection, WriteCount},
    fixture,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{
    works_feedback::{paths, reports},
    works_world::WorkWorld,
};

const WORK: &str = "work";
/// In each of so many runs, another share of the writes fails.
const ROUNDS: usize = 4;

/// A work with every strategy, and with every way in which Update writes: the ConfigMap is merged, of the Role a section is
/// replaced, the Deployment is replaced, and the StorageClass is deleted and created. The Secret stays when the work is
/// deleted.
fn spec(world: &WorkWorld, value: &str) -> Value {
    let account = json!({"namespace": world.cluster, "name": "deployer"});
    json!({
        "workload": {"manifests": manifests(world, value)},
        "manifestConfigs": configs(world),
        "executor": {"subject": {"type": "ServiceAccount", "serviceAccount": account}},
        "deleteOption": {"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules":
            [{"resource": "secrets", "namespace": world.cluster, "name": "kept"}]}},
    })
}

fn manifests(world: &WorkWorld, value: &str) -> Vec<Value> {
    let rbac = "rbac.authorization.k8s.io/v1";
    let with = |mut manifest: Value, key: &str, content: Value| {
        manifest[key] = content;
        manifest
    };
    let map = |name| with(world.config_map(name), "data", json!({"a": value, "b": value}));
    let labels = json!({"app": "a"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": value}]}});
    let deployment = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
    let rule = json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [value], "verbs": ["get"]}]);
    let mut class =
        with(world.manifest("storage.k8s.io/v1", "StorageClass", &world.cluster), "provisioner", json!("x/y"));
    class["parameters"] = json!({"a": value});
    let mut all = vec![
        map("updated"),
        with(world.manifest("v1", "Secret", "kept"), "stringData", json!({"a": value})),
        with(world.manifest(rbac, "Role", "updated"), "rules", rule),
        with(world.manifest("apps/v1", "Deployment", "updated"), "spec", deployment),
        class,
        map("created"),
        map("applied"),
        map("ignoring"),
        map("read"),
    ];
    // The edit takes one out and adds one.
    all.push(map(if value == "1" { "pruned" } else { "added" }));
    all
}

fn configs(world: &WorkWorld) -> Value {
    let config = |name: &str, rest: Value| {
        let mut config = rest;
        config["resourceIdentifier"] = json!({"resource": "configmaps", "namespace": world.cluster, "name": name});
        config
    };
    let strategy = |type_: &str| json!({"updateStrategy": {"type": type_}});
    let ignored = json!([{"condition": "OnSpokePresent", "jsonPointers": ["/data/b"]}]);
    let rule = json!({"type": "CEL", "condition": "Current", "celExpressions": ["'a' in object.data"],
        "messageExpression": "'a is ' + object.data.a"});
    json!([
        config(
            "updated",
            json!({"feedbackRules": paths(&[("a", ".data.a")]), "feedbackScrapeType": "Watch",
            "conditionRules": [rule]})
        ),
        config("created", strategy("CreateOnly")),
        config("applied", strategy("ServerSideApply")),
        config(
            "ignoring",
            json!({"updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"ignoreFields": ignored}}})
        ),
        config("read", strategy("ReadOnly")),
    ])
}

/// A fault that hits a share of the writes, by their paths and by how many there were before: a write that has failed is
/// not hit again at once.
#[derive(Clone)]
struct Share {
    round: usize,
    /// Methods and paths, each with the number of the last write.
    seen: Arc<Mutex<HashMap<String, usize>>>,
    hit: Arc<Mutex<Vec<String>>>,
}

impl Share {
    /// In round [`ROUNDS`] nothing is hit.
    fn new(round: usize) -> Self {
        Self { round, seen: Arc::default(), hit: Arc::default() }
    }

    fn fault(&self, injection: Injection, world: &WorkWorld) -> Fault {
        let (share, names) = (self.clone(), [world.record_name(WORK), world.cluster.clone()]);
        let is_hit = move |asked: &Asked| {
            let write = format!("{} {}", asked.method, asked.path);
            asked.is_write() && share.hits(names.iter().fold(write, |write, name| write.replace(name, "NAME")))
        };
        Fault::new(injection).when(is_hit).times(usize::MAX)
    }

    fn hits(&self, write: String) -> bool {
        let mut seen = lock(&self.seen);
        let first = write.bytes().map(usize::from).sum();
        let number = seen.entry(write.clone()).and_modify(|number| *number += 1).or_insert(first);
        let is_hit = *number % ROUNDS == self.round;
        lock(&self.hit).extend(is_hit.then_some(write));
        is_hit
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fault of some reviews of the executor's rights.
fn review(injection: Injection) -> Fault {
    Fault::new(injection).when(|asked| asked.is_about("subjectaccessreviews")).times(3)
}

/// What there was after the creation, the edit and the deletion of the work, and what was written for it.
struct Run {
    stages: Vec<Value>,
    count: usize,
    writes: BTreeSet<String>,
}

/// That without faults.
async fn undisturbed() -> Result<&'static Run> {
    static RUN: OnceCell<Run> = OnceCell::const_new();
    RUN.get_or_try_init(|| async {
        let none = Share::new(ROUNDS);
        let (world, writes) = start(|world| vec![none.fault(Injection::Hang, world)]).await?;
        let mut stages = Vec::new();
        create(&world).await?;
        stages.push(reach(&world, "1").await?);
        edit(&world).await?;
        stages.push(reach(&world, "2").await?);
        world.delete(WORK).await?;
        world.is_gone(WORK).await?;
        stages.push(what_is(&world).await?);
        world.stop().await;
        let of_run = lock(&none.seen).keys().cloned().collect();
        Ok(Run { stages, count: writes.count(), writes: of_run })
    })
    .await
}

/// Starts an agent whose writes are counted, and fail.
async fn start(faults: impl Fn(&WorkWorld) -> Vec<Fault>) -> Result<(WorkWorld, WriteCount)> {
    let often = Duration::from_millis(300);
    let mut world = WorkWorld::with(|settings| Settings { status_sync: often, ..settings }).await?;
    let planes = fixture::get();
    let account = format!("--serviceaccount={}:deployer", world.cluster);
    let args = ["create", "clusterrolebinding", &world.cluster, "--clusterrole=cluster-admin", &account];
    planes.managed1.kubectl(&args).await?;
    let read = json!({"metadata": {"name": "read"}, "data": {"theirs": "1"}});
    world.config_maps().create(&PostParams::default(), &serde_json::from_value(read)?).await?;
    let writes = WriteCount::default();
    let hub = FaultyServer::counting(planes.hub, writes.clone()).await?;
    let managed = FaultyServer::counting(planes.managed1, writes.clone()).await?;
    for server in [&hub, &managed] {
        faults(&world).into_iter().for_each(|fault| server.inject(fault));
    }
    world.start_between(hub, managed).await?;
    Ok((world, writes))
}

async fn create(world: &WorkWorld) -> Result<()> {
    world.create_with(WORK, spec(world, "1")).await
}

async fn edit(world: &WorkWorld) -> Result<()> {
    world.edit(WORK, spec(world, "2")).await
}

/// Waits until all is applied and reported.
async fn reach(world: &WorkWorld, value: &str) -> Result<Value> {
    for condition in ["Applied", "Available"] {
        world.is(WORK, condition, "True").await?;
    }
    world.condition_contains(WORK, "Current", "True", &format!("a is {value}")).await?;
    reports(world, WORK, &json!({"a": value}), "True").await?;
    what_is(world).await
}

/// The work, its record, its objects and its events, without what differs between two runs.
async fn what_is(world: &WorkWorld) -> Result<Value> {
    let (cluster, all) = (world.cluster.as_str(), ListParams::default());
    let managed = || world.managed.clone();
    let maps = Api::<ConfigMap>::namespaced(managed(), cluster).list(&all).await?.items.into_iter();
    let maps = maps.filter(|map| map.metadata.name.as_deref() != Some("kube-root-ca.crt")).collect::<Vec<_>>();
    let mut deployments = Api::<Deployment>::namespaced(managed(), cluster).list(&all).await?.items;
    deployments.iter_mut().for_each(|deployment| deployment.status = None);
    let events = Api::<Event>::namespaced(world.hub.clone(), cluster).list(&all).await?.items;
    let seen = json!({
        "work": world.works().get_opt(WORK).await?.map(|work| json!([work.metadata.finalizers, work.status])),
        "record": world.records().get_opt(&world.record_name(WORK)).await?,
        "maps": maps,
        "deployments": deployments,
        "secrets": Api::<Secret>::namespaced(managed(), cluster).list(&all).await?.items,
        "roles": Api::<Role>::namespaced(managed(), cluster).list(&all).await?.items,
        "class": Api::<StorageClass>::all(managed()).get_opt(cluster).await?,
        "events": events.into_iter().map(|event| event.note).collect::<Vec<_>>(),
    });
    let names = seen.to_string().replace(&world.record_name(WORK), "RECORD").replace(cluster, "CLUSTER");
    Ok(comparable(serde_json::from_str(&names)?))
}

/// Without versions, times and hashes; of uids, whether there is one.
fn comparable(value: Value) -> Value {
    const DIFFER: [&str; 7] = [
        "resourceVersion",
        "creationTimestamp",
        "lastTransitionTime",
        "managedFields",
        "annotations",
        "hubHash",
        "agentID",
    ];
    match value {
        Value::Array(items) => items.into_iter().map(comparable).collect(),
        Value::Object(mut fields) => {
            fields.retain(|key, _| !DIFFER.contains(&key.as_str()));
            fields.get_mut("uid").into_iter().for_each(|uid| *uid = json!(*uid != ""));
            fields.into_iter().map(|(key, value)| (key, comparable(value))).collect()
        }
        value => value,
    }
}

/// Where two values differ.
fn differences(at: &str, seen: &Value, expected: &Value) -> Vec<String> {
    match (seen, expected) {
        (Value::Object(seen), Value::Object(expected)) if seen.keys().eq(expected.keys()) => {
            let of = |(key, value): (&String, &Value)| differences(&format!("{at}.{key}"), &seen[key], value);
            expected.iter().flat_map(of).collect()
        }
        (Value::Array(seen), Value::Array(expected)) if seen.len() == expected.len() => {
            let pairs = seen.iter().zip(expected).enumerate();
            pairs.flat_map(|(n, (seen, expected))| differences(&format!("{at}[{n}]"), seen, expected)).collect()
        }
        _ if seen == expected => Vec::new(),
        _ => vec![format!("{at} is {seen} instead of {expected}")],
    }
}

async fn becomes(world: &WorkWorld, expected: &Value) -> Result<()> {
    eventually("everything is as without faults", || async {
        let differences = differences("", &what_is(world).await?, expected);
        anyhow::Ok(if differences.is_empty() { Seen::Settled(()) } else { Seen::NotYet(differences.join("\n")) })
    })
    .await
}

/// A run in which a share of the writes fails. Returns which ones.
async fn survives_a_round(injection: &Injection, round: usize) -> Result<Vec<String>> {
    let (expected, share) = (undisturbed().await?, Share::new(round));
    let faults = |world: &WorkWorld| vec![share.fault(injection.clone(), world), review(injection.clone())];
    let (world, writes) = start(faults).await?;
    create(&world).await?;
    becomes(&world, &expected.stages[0]).await.context("after the creation")?;
    edit(&world).await?;
    becomes(&world, &expected.stages[1]).await.context("after the edit")?;
    world.delete(WORK).await?;
    becomes(&world, &expected.stages[2]).await.context("after the deletion")?;
    world.stop().await;
    let (hit, count) = (lock(&share.hit).clone(), writes.count());
    let (hits, without) = (hit.len(), expected.count);
    assert!(count <= without + hits, "{count} writes with {hits} faults, and {without} without");
    Ok(hit)
}

async fn survives(injection: Injection) -> Result<()> {
    let rounds = (0..ROUNDS).map(|round| survives_a_round(&injection, round));
    let hit: BTreeSet<_> = try_join_all(rounds).await?.into_iter().flatten().collect();
    let missed: Vec<_> = undisturbed().await?.writes.difference(&hit).collect();
    assert!(missed.is_empty(), "no fault hit {missed:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_survives_a_conflict_of_each_write() -> Result<()> {
    survives(Injection::answer(409, "Conflict")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_survives_that_each_write_is_answered_with_gone() -> Result<()> {
    survives(Injection::answer(410, "Gone")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_survives_a_busy_server_at_each_write() -> Result<()> {
    survives(Injection::Answer { code: 429, reason: "TooManyRequests", retry_after: Some(1) }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_survives_an_internal_error_at_each_write() -> Result<()> {
    survives(Injection::answer(500, "InternalError")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_survives_that_each_write_is_carried_out_and_answered_with_an_error() -> Result<()> {
    survives(Injection::LoseAnswer { code: 500, reason: "InternalError" }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_survives_that_the_connection_of_each_write_breaks_before_the_answer() -> Result<()> {
    survives(Injection::CutAfter(0)).await
}
