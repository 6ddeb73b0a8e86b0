//! `ocm webhook` as the admission webhook of a real API server.

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};
use kube::{Api, ResourceExt as _, api::PostParams};
use ocm_api::{
    cluster::v1::ManagedCluster,
    crds::Side,
    labels, namespaces,
    webhooks::{CLUSTER_VALIDATORS, REPLICA_SET_VALIDATORS, WORK_VALIDATORS},
};
use ocm_testing::{ControlPlane, Seen, eventually, unique, write_kubeconfig};
use serde_json::{Value, json};

use crate::{
    webhook::{Pair, Webhook},
    world::{Agent, World, install_on},
};

const WEBHOOK_MANIFESTS: &str = include_str!("../../../../deploy/pods/webhook.yaml");
const ACCOUNT: &str = "registration-webhook-sa";
const CLUSTERS: &str = "cluster.open-cluster-management.io";
const WORKS: &str = "work.open-cluster-management.io";

/// A hub's API server that asks a webhook about every change.
struct Stage {
    plane: ControlPlane,
    webhook: Webhook,
}

/// Users of the API server, by their rights.
const EDITOR: &str = "editor";
const ACCEPTER: &str = "accepter";
const JOINER: &str = "joiner";
const BINDER: &str = "binder";
const WORKER: &str = "worker";
const EXECUTOR: &str = "executor";

/// A webhook under the account and the rights of `deploy/`, and a hub's API server that calls it.
async fn webhook_of(plane: &ControlPlane) -> Result<Webhook> {
    let pair = Pair::new()?;
    plane.apply_yaml(WEBHOOK_MANIFESTS).await?;
    let kubeconfig = plane.kubeconfig_for_service_account(namespaces::HUB, ACCOUNT).await?;
    let file = plane.dir().join("webhook.kubeconfig");
    write_kubeconfig(&kubeconfig, &file)?;
    let webhook = Webhook::start(&pair, Some(file)).await?;
    let authority = webhook.dir.path().join("authority.crt");
    std::fs::write(&authority, &pair.certificate)?;
    plane
        .apply_yaml(&webhooks(&["--replica-sets", "--url", &webhook.url(), "--ca-file", &authority.to_string_lossy()])?)
        .await?;
    Ok(webhook)
}

/// What `ocm webhooks` prints.
fn webhooks(args: &[&str]) -> Result<String> {
    let printed = Command::new(crate::program::ocm()).arg("webhooks").args(args).output()?;
    ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    Ok(String::from_utf8(printed.stdout)?)
}

#[test]
fn the_configurations_in_deploy_are_those_that_ocm_webhooks_prints() -> Result<()> {
    let (file, printed) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/webhooks.yaml"), webhooks(&[])?);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &printed)?;
    }
    assert_eq!(
        std::fs::read_to_string(file)?,
        printed,
        "regenerate it: BLESS=1 cargo test -p ocm-server --test it -- admission"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_joins_a_hub_with_webhooks_in_the_default_set() -> Result<()> {
    let (world, _context) = World::alone().await?;
    let _webhook = webhook_of(world.hub_plane).await?;
    asks(world.hub_plane).await?;
    let mut agent = world.join().await?;
    let cluster = world.clusters().get(&agent.cluster).await?;
    assert_eq!(cluster.labels()[labels::CLUSTER_SET], namespaces::DEFAULT_CLUSTER_SET);
    world.cluster_is_reachable(&agent.cluster).await?;
    agent_cannot_choose_its_sets_or_owners(&world, &agent).await?;
    agent.stop().await
}

/// With the rights that the hub gives it, and without policies.
async fn agent_cannot_choose_its_sets_or_owners(world: &World, agent: &Agent) -> Result<()> {
    let policies = "validatingadmissionpolicies,validatingadmissionpolicybindings";
    world.hub_plane.kubectl(&["delete", policies, "--all"]).await?;
    let clusters = Api::<ManagedCluster>::all(agent.hub_client().await?);
    let owner = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "1"}]);
    let edits = [
        (json!({"labels": {labels::CLUSTER_SET: "theirs"}}), "take it out of default"),
        (json!({"ownerReferences": owner}), "ownerReferences"),
    ];
    for (edit, words) in edits {
        eventually(&format!("the webhook refuses: {words}"), || async {
            let mut cluster = serde_json::to_value(clusters.get(&agent.cluster).await?)?;
            ocm_apimachinery::merge::apply(&mut cluster, &json!({"metadata": edit}));
            let edited =
                clusters.replace(&agent.cluster, &PostParams::default(), &serde_json::from_value(cluster)?).await;
            let said = edited.map_or_else(|error| error.to_string(), |_| "it is allowed".into());
            let is_refused = said.contains("admission webhook") && said.contains(words);
            anyhow::Ok(if is_refused { Seen::Settled(()) } else { Seen::NotYet(said) })
        })
        .await?;
    }
    Ok(())
}

/// An API server needs about a second to call new webhooks.
async fn asks(plane: &ControlPlane) -> Result<()> {
    let mut odd = binding("misnamed");
    odd["metadata"]["name"] = json!("other");
    let dry_run = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    eventually("the API server asks the webhooks", || async {
        let refused = plane.kubectl_with_input(&dry_run, &odd.to_string()).await;
        let completed = plane.kubectl_with_input(&dry_run, &cluster("dry-run", &json!({})).to_string()).await?;
        let is_refused = refused.is_err_and(|error| format!("{error:#}").contains("rename other to misnamed"));
        anyhow::Ok(is_refused && completed.contains(labels::CLUSTER_SET))
    })
    .await
}

impl Stage {
    async fn new() -> Result<Self> {
        let plane = ControlPlane::start().await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespaces::HUB}});
        install_on(&plane, Side::Hub, &format!("{namespace}\n---\n{}", rights())).await?;
        let webhook = webhook_of(&plane).await?;
        asks(&plane).await?;
        Ok(Self { plane, webhook })
    }

    async fn create(&self, user: &str, object: &Value) -> Result<String> {
        self.plane.kubectl_with_input(&["create", "--as", user, "-f", "-"], &object.to_string()).await
    }

    async fn edit(&self, user: &str, cluster: &str, patch: &Value) -> Result<String> {
        let patch = patch.to_string();
        self.plane.kubectl(&["patch", "managedcluster", cluster, "--as", user, "--type=merge", "-p", &patch]).await
    }

    async fn cluster(&self, name: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.plane.kubectl(&["get", "managedcluster", name, "-o", "json"]).await?)?)
    }
}

/// Users with what each may do, as a manifest.
fn rights() -> String {
    let rule = |group: &str, resource: &str, verbs: &[&str], names: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs, "resourceNames": names});
    let edit = rule(CLUSTERS, "managedclusters", &["get", "create", "patch"], &[]);
    let bindings = rule(CLUSTERS, "managedclustersetbindings", &["create"], &[]);
    let mut works = rule(WORKS, "manifestworks", &["get", "create", "patch"], &[]);
    works["resources"] = json!(["manifestworks", "manifestworkreplicasets"]);
    let join = |sets: &[&str]| rule(CLUSTERS, "managedclustersets/join", &["create"], sets);
    let accept = rule("register.open-cluster-management.io", "managedclusters/accept", &["update"], &[]);
    let users = [
        (EDITOR, vec![edit.clone(), join(&["default"]), bindings.clone()]),
        (ACCEPTER, vec![edit.clone(), join(&["default"]), accept]),
        (JOINER, vec![edit, join(&["default", "mine"])]),
        (WORKER, vec![works.clone()]),
        (
            EXECUTOR,
            vec![works, rule(WORKS, "manifestworks", &["execute-as"], &["system:serviceaccount:team:deployer"])],
        ),
        (BINDER, vec![bindings, rule(CLUSTERS, "managedclustersets/bind", &["create"], &["mine"])]),
    ];
    let group = "rbac.authorization.k8s.io";
    let objects = users.into_iter().flat_map(|(user, rules)| {
        let (version, metadata) = (format!("{group}/v1"), json!({"name": user}));
        [
            json!({"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": rules}),
            json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": metadata,
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": user},
                "subjects": [{"apiGroup": group, "kind": "User", "name": user}]}),
        ]
    });
    objects.map(|object| object.to_string()).collect::<Vec<_>>().join("\n---\n")
}

fn cluster(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{CLUSTERS}/v1"), "kind": "ManagedCluster", "metadata": {"name": name}, "spec": spec})
}

fn binding(set: &str) -> Value {
    json!({"apiVersion": format!("{CLUSTERS}/v1beta2"), "kind": "ManagedClusterSetBinding",
        "metadata": {"name": set, "namespace": "default"}, "spec": {"clusterSet": set}})
}

/// Fails unless the API server refused the request with these words.
#[track_caller]
fn assert_refused(outcome: Result<String>, words: &[&str]) {
    let error = outcome.map_or_else(|error| format!("{error:#}"), |done| format!("it is not refused: {done}"));
    for word in words {
        assert!(error.contains(word), "{word} is missing in: {error}");
    }
}

/// One control plane for all: starting one takes longer than the rest.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_asks_about_clusters_and_bindings_and_refuses_changes_while_the_webhook_is_down() -> Result<()> {
    let mut stage = Stage::new().await?;
    clusters_are_completed_and_accepted_by_those_who_may(&stage).await?;
    times_of_taints_are_the_hubs(&stage).await?;
    sets_are_joined_and_bound_by_those_who_may(&stage).await?;
    an_invalid_cluster_name_is_refused(&stage).await?;
    works_are_checked_and_executors_used_by_those_who_may(&stage).await?;
    authors_of_replica_sets_may_use_their_executors(&stage).await?;
    nothing_is_changed_without_an_answer(&mut stage).await
}

async fn clusters_are_completed_and_accepted_by_those_who_may(stage: &Stage) -> Result<()> {
    let name = unique("cluster");
    let accepted = json!({"spec": {"hubAcceptsClient": true}});
    assert_refused(
        stage.create(EDITOR, &cluster(&name, &accepted["spec"])).await,
        &[CLUSTER_VALIDATORS, "user editor may not accept cluster", "clusteradm accept"],
    );
    stage.create(EDITOR, &cluster(&name, &json!({}))).await?;
    let created = stage.cluster(&name).await?;
    assert_eq!(created["metadata"]["labels"]["cluster.open-cluster-management.io/clusterset"], "default");
    assert_refused(stage.edit(EDITOR, &name, &accepted).await, &["may not accept"]);
    stage.edit(ACCEPTER, &name, &accepted).await?;
    stage.edit(EDITOR, &name, &json!({"spec": {"leaseDurationSeconds": 30}})).await?;
    stage.edit(EDITOR, &name, &json!({"spec": {"hubAcceptsClient": false}})).await?;
    Ok(())
}

async fn times_of_taints_are_the_hubs(stage: &Stage) -> Result<()> {
    let name = unique("tainted");
    stage.create(EDITOR, &cluster(&name, &json!({"taints": [{"key": "a", "effect": "NoSelect"}]}))).await?;
    let first = stage.cluster(&name).await?["spec"]["taints"].take();
    assert!(first[0]["timeAdded"].is_string(), "{first}");
    let more = json!({"spec": {"taints": [{"key": "a", "effect": "NoSelect"}, {"key": "b", "effect": "NoSelect"}]}});
    stage.edit(EDITOR, &name, &more).await?;
    let second = stage.cluster(&name).await?["spec"]["taints"].take();
    assert_eq!(second[0], first[0], "an unchanged taint keeps its time");
    assert!(second[1]["timeAdded"].is_string(), "{second}");
    let stretched =
        json!({"spec": {"taints": [{"key": "a", "effect": "NoSelect", "timeAdded": "2099-01-01T00:00:00Z"}]}});
    assert_refused(stage.edit(EDITOR, &name, &stretched).await, &["timeAdded", ": a"]);
    let soft = json!({"key": "a", "effect": "PreferNoSelect"});
    let twice = json!({"spec": {"taints": [{"key": "a", "effect": "NoSelect"}, soft]}});
    stage.edit(EDITOR, &name, &twice).await?;
    // Sends both back with their times.
    stage.edit(EDITOR, &name, &json!({"metadata": {"annotations": {"a": "b"}}})).await?;
    let third = stage.cluster(&name).await?["spec"]["taints"].take();
    assert_eq!((&third[0], &third[1]["effect"]), (&first[0], &json!("PreferNoSelect")));
    Ok(())
}

async fn sets_are_joined_and_bound_by_those_who_may(stage: &Stage) -> Result<()> {
    let name = unique("joining");
    let into = |set: &str| json!({"metadata": {"labels": {"cluster.open-cluster-management.io/clusterset": set}}});
    stage.create(EDITOR, &cluster(&name, &json!({}))).await?;
    assert_refused(stage.edit(EDITOR, &name, &into("mine")).await, &["put it into mine", "managedclustersets/join"]);
    stage.edit(JOINER, &name, &into("mine")).await?;
    assert_refused(stage.edit(EDITOR, &name, &into("default")).await, &["take it out of mine"]);
    assert_refused(stage.create(EDITOR, &binding("mine")).await, &["user editor may not bind cluster set mine"]);
    stage.create(BINDER, &binding("mine")).await?;
    let mut misnamed = binding("mine");
    misnamed["metadata"]["name"] = json!("yours");
    assert_refused(stage.create(BINDER, &misnamed).await, &["rename yours to mine"]);
    Ok(())
}

async fn an_invalid_cluster_name_is_refused(stage: &Stage) -> Result<()> {
    let odd = json!({"leaseDurationSeconds": -1, "managedClusterClientConfigs": [{"url": "http://a"}]});
    assert_refused(
        stage.create(EDITOR, &cluster("kube-system", &odd)).await,
        &["metadata.name", "spec.managedClusterClientConfigs[0].url", "spec.leaseDurationSeconds"],
    );
    Ok(())
}

async fn works_are_checked_and_executors_used_by_those_who_may(stage: &Stage) -> Result<()> {
    // The webhook checks this, and not the policies.
    stage.plane.kubectl(&["delete", "validatingadmissionpolicybindings", "--all"]).await?;
    let (name, executor) = (
        unique("work"),
        json!({"subject": {"type": "ServiceAccount",
        "serviceAccount": {"namespace": "team", "name": "deployer"}}}),
    );
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}});
    let refused = [
        (json!([]), "spec.workload.manifests is empty"),
        (json!([config_map, config_map]), "spec.workload.manifests[1] is the same object as [0] (ConfigMap b/a of v1)"),
        (large(), "512042 bytes, and the limit is 512000"),
    ];
    for (manifests, words) in refused {
        assert_refused(
            stage.create(WORKER, &work(&name, &manifests, &json!(null))).await,
            &[WORK_VALIDATORS, "denied the request", words],
        );
    }
    assert_refused(
        stage.create(WORKER, &work(&name, &json!([config_map]), &executor)).await,
        &["user worker may not apply a work in namespace default as executor team/deployer", "execute-as"],
    );
    stage.create(EXECUTOR, &work(&name, &json!([config_map]), &executor)).await?;
    let label = json!({"metadata": {"labels": {"a": "b"}}}).to_string();
    stage.plane.kubectl(&["patch", "manifestwork", &name, "--as", WORKER, "--type=merge", "-p", &label]).await?;
    stage.create(WORKER, &work(&unique("work"), &json!([config_map]), &json!(null))).await?;
    stage.plane.kubectl(&["delete", "manifestwork", &name]).await?;
    Ok(())
}

async fn authors_of_replica_sets_may_use_their_executors(stage: &Stage) -> Result<()> {
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}});
    let account = json!({"namespace": "team", "name": "deployer"});
    let set = |executor: Option<Value>| {
        let mut template = json!({"workload": {"manifests": [config_map]}});
        if let Some(executor) = executor {
            template["executor"] = executor;
        }
        json!({"apiVersion": format!("{WORKS}/v1alpha1"), "kind": "ManifestWorkReplicaSet",
            "metadata": {"name": unique("set"), "namespace": "default"},
            "spec": {"manifestWorkTemplate": template, "placementRefs": [{"name": "p"}]}})
    };
    let with_executor = set(Some(json!({"subject": {"type": "ServiceAccount", "serviceAccount": account}})));
    assert_refused(
        stage.create(WORKER, &with_executor).await,
        &[REPLICA_SET_VALIDATORS, "user worker may not apply a work in all namespaces as executor team/deployer"],
    );
    stage.create(EXECUTOR, &with_executor).await?;
    stage.create(WORKER, &set(None)).await?;
    Ok(())
}

/// One manifest that is too large, with characters that API servers escape.
fn large() -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}});
    object["data"] = json!({"a": "<".repeat(2), "b": ""});
    let escaped = object.to_string().len() + 2 * 5;
    object["data"]["b"] = json!("x".repeat(512_042 - 4 - escaped));
    json!([object])
}

fn work(name: &str, manifests: &Value, executor: &Value) -> Value {
    let mut work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"workload": {"manifests": manifests}}});
    if !executor.is_null() {
        work["spec"]["executor"] = executor.clone();
    }
    work
}

async fn nothing_is_changed_without_an_answer(stage: &mut Stage) -> Result<()> {
    let name = unique("unanswered");
    stage.create(EDITOR, &cluster(&name, &json!({}))).await?;
    stage.webhook.stop().await?;
    let status = json!({"status": {"conditions": []}}).to_string();
    let patch = ["patch", "managedcluster", &name, "--subresource=status", "--type=merge", "-p", &status];
    stage.plane.kubectl(&patch).await?;
    assert_refused(
        stage.edit(EDITOR, &name, &json!({"spec": {"leaseDurationSeconds": 30}})).await,
        &["failed calling webhook", "managedclustermutators"],
    );
    assert_refused(stage.create(BINDER, &binding("mine")).await, &["failed calling webhook"]);
    let some = json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]);
    assert_refused(
        stage.create(WORKER, &work("w", &some, &json!(null))).await,
        &["failed calling webhook", WORK_VALIDATORS],
    );
    stage.plane.kubectl(&["delete", "managedcluster", &name]).await?;
    stage.webhook.restart().await?;
    asks(&stage.plane).await?;
    stage.create(EDITOR, &cluster(&name, &json!({}))).await?;
    Ok(())
}
