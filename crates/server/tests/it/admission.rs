//! `ocm webhook` decides on admission: a real API server asks it.

use std::process::Command;

use anyhow::{Result, ensure};
use ocm_api::{crds::Side, webhooks::CLUSTER_VALIDATORS};
use ocm_testing::{ControlPlane, eventually, unique};
use serde_json::{Value, json};

use crate::{
    webhook::{Pair, Webhook},
    world::install_on,
};

const CLUSTERS: &str = "cluster.open-cluster-management.io";

/// A hub's API server that asks a webhook about every change.
struct Stage {
    plane: ControlPlane,
    webhook: Webhook,
}

/// Whom the API server asks the webhook about, by their rights.
const EDITOR: &str = "editor";
const ACCEPTER: &str = "accepter";
const JOINER: &str = "joiner";
const BINDER: &str = "binder";

impl Stage {
    async fn new() -> Result<Self> {
        let (plane, pair) = (ControlPlane::start().await?, Pair::new()?);
        install_on(&plane, Side::Hub, &rights()).await?;
        let webhook = Webhook::start(&pair, Some(plane.admin_kubeconfig().to_owned())).await?;
        let authority = webhook.dir.path().join("authority.crt");
        std::fs::write(&authority, &pair.certificate)?;
        let printed = Command::new(crate::program::ocm())
            .args(["webhooks", "--url", &webhook.url(), "--ca-file"])
            .arg(&authority)
            .output()?;
        ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        plane.apply_yaml(&String::from_utf8(printed.stdout)?).await?;
        let stage = Self { plane, webhook };
        stage.asks().await?;
        Ok(stage)
    }

    /// An API server needs about a second to call new webhooks.
    async fn asks(&self) -> Result<()> {
        let odd = binding("misnamed").to_string().replace("\"name\":\"misnamed\"", "\"name\":\"other\"");
        eventually("the API server asks the webhook", || async {
            let outcome = self.plane.kubectl_with_input(&["create", "--dry-run=server", "-f", "-"], &odd).await;
            anyhow::Ok(outcome.is_err_and(|error| format!("{error:#}").contains("rename other to misnamed")))
        })
        .await
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
    let join = |sets: &[&str]| rule(CLUSTERS, "managedclustersets/join", &["create"], sets);
    let accept = rule("register.open-cluster-management.io", "managedclusters/accept", &["update"], &[]);
    let users = [
        (EDITOR, vec![edit.clone(), join(&["default"]), bindings.clone()]),
        (ACCEPTER, vec![edit.clone(), join(&["default"]), accept]),
        (JOINER, vec![edit, join(&["default", "mine"])]),
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

/// That the API server refused, with these words.
#[track_caller]
fn assert_refused(outcome: Result<String>, words: &[&str]) {
    let error = format!("{:#}", outcome.expect_err("it is refused"));
    for word in words {
        assert!(error.contains(word), "{word} is missing in: {error}");
    }
}

/// One control plane for all: starting one takes longer than the rest.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_asks_about_clusters_and_bindings_and_refuses_changes_while_nobody_answers() -> Result<()> {
    let mut stage = Stage::new().await?;
    clusters_are_completed_and_accepted_by_those_who_may(&stage).await?;
    times_of_taints_are_the_hubs(&stage).await?;
    sets_are_joined_and_bound_by_those_who_may(&stage).await?;
    what_no_cluster_can_be_is_refused(&stage).await?;
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

async fn what_no_cluster_can_be_is_refused(stage: &Stage) -> Result<()> {
    let odd = json!({"leaseDurationSeconds": -1, "managedClusterClientConfigs": [{"url": "http://a"}]});
    assert_refused(
        stage.create(EDITOR, &cluster("kube-system", &odd)).await,
        &["metadata.name", "spec.managedClusterClientConfigs[0].url", "spec.leaseDurationSeconds"],
    );
    Ok(())
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
    stage.plane.kubectl(&["delete", "managedcluster", &name]).await?;
    stage.webhook.restart().await?;
    stage.asks().await?;
    stage.create(EDITOR, &cluster(&name, &json!({}))).await?;
    Ok(())
}
