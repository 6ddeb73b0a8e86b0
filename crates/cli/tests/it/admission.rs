//! What the policies in `deploy/hub.yaml` allow and deny.

use anyhow::{Context as _, Result};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use ocm_api::{
    cluster::{
        v1::ManagedCluster,
        v1beta2::{ManagedClusterSetBinding, ManagedClusterSetBindingSpec},
    },
    labels,
    work::{v1::ManifestWork, v1alpha1::ManifestWorkReplicaSet},
};
use ocm_testing::{ControlPlane, Seen, client_for, eventually, unique};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::hub::{HUB_YAML, bootstrap_client, hub, hub_crds, register};

const CLUSTERS: &str = "cluster.open-cluster-management.io";
const REGISTER: &str = "register.open-cluster-management.io";

/// A rule of a role: verbs on a resource of a group, for the object of this name or for all.
fn rule(verbs: &[&str], group: &str, resource: &str, name: Option<&str>) -> Value {
    json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs, "resourceNames": Vec::from_iter(name) })
}

/// A new user with these rules, and a client of theirs.
async fn user_who_may(hub: &ControlPlane, rules: &[Value]) -> Result<(String, Client)> {
    let user = unique("user");
    let (rbac, metadata) = ("rbac.authorization.k8s.io", json!({ "name": user }));
    let objects = [
        json!({ "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": metadata, "rules": rules }),
        json!({ "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
                "roleRef": { "apiGroup": rbac, "kind": "ClusterRole", "name": user },
                "subjects": [{ "apiGroup": rbac, "kind": "User", "name": user }] }),
    ];
    hub.apply_yaml(&objects.map(|object| object.to_string()).join("\n---\n")).await?;
    let client = client_for(&hub.kubeconfig_for_user(&user, &[])?).await?;
    Ok((user, client))
}

/// Waits until a dry run is refused, and returns the API server's message.
async fn is_refused<F, Fut, T>(what: &str, attempt: F) -> Result<String>
where
    F: Fn() -> Fut,
    Fut: Future<Output = kube::Result<T>>,
{
    eventually(what, || async {
        match attempt().await {
            Err(kube::Error::Api(status)) if status.message.contains("denied request") => {
                Seen::Settled(format!("{}: {}", status.code, status.message))
            }
            Err(error) => Seen::NotYet(error.to_string()),
            Ok(_) => Seen::NotYet("it passes".to_owned()),
        }
    })
    .await
}

fn cluster(name: &str, labels: &Value, spec: &Value) -> Result<ManagedCluster> {
    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": { "name": name, "labels": labels }, "spec": spec,
    });
    Ok(serde_json::from_value(object)?)
}

async fn create_is_refused(client: &Client, object: &ManagedCluster) -> Result<String> {
    let (clusters, dry) = (Api::<ManagedCluster>::all(client.clone()), PostParams { dry_run: true, ..<_>::default() });
    is_refused("the cluster is refused", || clusters.create(&dry, object)).await
}

async fn edit_is_refused(client: &Client, name: &str, edit: &Value) -> Result<String> {
    let (clusters, dry) = (Api::<ManagedCluster>::all(client.clone()), PatchParams { dry_run: true, ..<_>::default() });
    let edit = Patch::Merge(edit);
    is_refused("the edit is refused", || clusters.patch(name, &dry, &edit)).await
}

/// Edits a cluster. New roles take a moment to have an effect.
async fn edit(client: &Client, name: &str, edit: &Value) -> Result<ManagedCluster> {
    let clusters = Api::<ManagedCluster>::all(client.clone());
    let edit = Patch::Merge(edit);
    eventually("the edit is made", || async { clusters.patch(name, &<_>::default(), &edit).await.map(Some) }).await
}

fn in_set(set: &str) -> Value {
    json!({ labels::CLUSTER_SET: set })
}

#[track_caller]
fn assert_says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{word} is missing in: {message}");
    }
}

#[tokio::test]
async fn an_agent_that_bootstraps_can_ask_to_join_but_not_accept_itself() -> Result<()> {
    let (hub, name) = (hub().await?, unique("self-accepted"));
    let agent = bootstrap_client(hub).await?;
    let message = create_is_refused(&agent, &cluster(&name, &json!({}), &json!({ "hubAcceptsClient": true }))?).await?;
    assert_says(
        &message,
        &[
            "403",
            "agent-registration-bootstrap",
            &format!("clusteradm accept --clusters {name}"),
            "managedclusters/accept",
        ],
    );
    register(&agent, &name).await
}

#[tokio::test]
async fn an_agent_that_bootstraps_can_put_its_cluster_into_no_set_but_the_default_one() -> Result<()> {
    let hub = hub().await?;
    let (agent, set) = (bootstrap_client(hub).await?, unique("production"));
    let message = create_is_refused(&agent, &cluster(&unique("intruder"), &in_set(&set), &json!({}))?).await?;
    assert_says(&message, &["403", "agent-registration-bootstrap", &set, "managedclustersets/join"]);
    let in_default = cluster(&unique("by-default"), &in_set("default"), &json!({}))?;
    Api::all(agent).create(&PostParams::default(), &in_default).await?;
    Ok(())
}

#[tokio::test]
async fn to_accept_a_cluster_takes_the_right_to_accept_it_and_to_deny_it_does_not() -> Result<()> {
    let (hub, name) = (hub().await?, unique("pending"));
    register(&bootstrap_client(hub).await?, &name).await?;
    let (accept, deny) =
        (json!({ "spec": { "hubAcceptsClient": true } }), json!({ "spec": { "hubAcceptsClient": false } }));
    let edits = rule(&["get", "patch"], CLUSTERS, "managedclusters", None);
    let accepts = |name| rule(&["update"], REGISTER, "managedclusters/accept", Some(name));
    let (editor, editors) = user_who_may(hub, &[edits.clone(), accepts("other")]).await?;
    let message = edit_is_refused(&editors, &name, &accept).await?;
    assert_says(&message, &["403", &editor, "clusteradm accept", "managedclusters/accept"]);

    let (_, accepter) = user_who_may(hub, &[edits, accepts(&name)]).await?;
    assert!(edit(&accepter, &name, &accept).await?.spec.hub_accepts_client);
    // An accepted cluster is edited, and denied, as before.
    edit(&editors, &name, &json!({ "spec": { "hubAcceptsClient": true, "leaseDurationSeconds": 30 } })).await?;
    assert!(!edit(&editors, &name, &deny).await?.spec.hub_accepts_client);
    Ok(())
}

#[tokio::test]
async fn a_cluster_moves_between_sets_only_with_the_right_to_both() -> Result<()> {
    let (hub, name, [ours, theirs]) = (hub().await?, unique("mover"), [unique("ours"), unique("theirs")]);
    register(&bootstrap_client(hub).await?, &name).await?;
    let label = |set: Option<&str>| json!({ "metadata": { "labels": { labels::CLUSTER_SET: set } } });
    let edits = rule(&["get", "patch"], CLUSTERS, "managedclusters", None);
    let joins = rule(&["create"], CLUSTERS, "managedclustersets/join", Some(&ours));
    let (user, client) = user_who_may(hub, &[edits, joins]).await?;
    let message = edit_is_refused(&client, &name, &label(Some(&theirs))).await?;
    assert_says(
        &message,
        &["403", &user, &format!("add cluster {name} to cluster set {theirs}"), "managedclustersets/join"],
    );
    edit(&client, &name, &label(Some(&ours))).await?;
    edit(&client, &name, &label(None)).await?;

    edit(&hub.client().await?, &name, &label(Some(&theirs))).await?;
    for taken_out in [label(Some(&ours)), label(None)] {
        let message = edit_is_refused(&client, &name, &taken_out).await?;
        assert_says(&message, &["403", &format!("take cluster {name} out of cluster set {theirs}")]);
    }
    edit(&client, &name, &json!({ "metadata": { "labels": { "colour": "red" } } })).await?;

    let (_, creator) = user_who_may(hub, &[rule(&["create"], CLUSTERS, "managedclusters", None)]).await?;
    let message = create_is_refused(&creator, &cluster(&unique("new"), &in_set(&theirs), &json!({}))?).await?;
    assert_says(&message, &["403", &theirs]);
    Ok(())
}

#[tokio::test]
async fn a_cluster_has_a_name_that_a_namespace_can_have_and_addresses_with_https() -> Result<()> {
    let admin = hub().await?.client().await?;
    for name in ["a.b".to_owned(), "a".repeat(64)] {
        let message = create_is_refused(&admin, &cluster(&name, &json!({}), &json!({}))?).await?;
        assert_says(&message, &["422", &format!("a cluster named {name}"), "at most 63"]);
    }
    let (name, configs) = (unique("addresses"), |url: &str| json!({ "managedClusterClientConfigs": [{ "url": url }] }));
    for url in ["http://10.0.0.5:6443", "10.0.0.5:6443", ""] {
        let message = create_is_refused(&admin, &cluster(&name, &json!({}), &configs(url))?).await?;
        assert_says(&message, &["422", "https://HOST:PORT", url]);
    }
    let created = cluster(&name, &json!({}), &configs("https://[::1]:6443"))?;
    Api::all(admin.clone()).create(&PostParams::default(), &created).await?;
    let message = edit_is_refused(&admin, &name, &json!({ "spec": configs("http://10.0.0.5") })).await?;
    assert_says(&message, &["422", "http://10.0.0.5"]);
    Ok(())
}

#[tokio::test]
async fn a_set_is_bound_under_its_own_name_and_with_the_right_to_bind_it() -> Result<()> {
    let (hub, [ours, theirs]) = (hub().await?, [unique("ours"), unique("theirs")]);
    let edits = rule(&["create", "get", "patch"], CLUSTERS, "managedclustersetbindings", None);
    let binds = rule(&["create"], CLUSTERS, "managedclustersets/bind", Some(&ours));
    let (user, client) = user_who_may(hub, &[edits, binds]).await?;
    let binding = |name: &str, set: &str| {
        ManagedClusterSetBinding::new("default", name, ManagedClusterSetBindingSpec { cluster_set: set.to_owned() })
    };
    let (api, dry) = (
        Api::<ManagedClusterSetBinding>::namespaced(client, "default"),
        PostParams { dry_run: true, ..<_>::default() },
    );
    let refused =
        async |object: &ManagedClusterSetBinding| is_refused("the binding", || api.create(&dry, object)).await;
    assert_says(&refused(&binding(&theirs, &theirs)).await?, &["403", &user, &theirs, "managedclustersets/bind"]);
    assert_says(&refused(&binding(&theirs, &ours)).await?, &["422", &format!("rename {theirs} to {ours}")]);

    api.create(&PostParams::default(), &binding(&ours, &ours)).await?;
    let moved = Patch::Merge(json!({ "spec": { "clusterSet": theirs } }));
    let dry = PatchParams { dry_run: true, ..<_>::default() };
    assert_says(&is_refused("the edit", || api.patch(&ours, &dry, &moved)).await?, &["422", &theirs]);
    let labelled = Patch::Merge(json!({ "metadata": { "labels": { "colour": "red" } } }));
    api.patch(&ours, &PatchParams::default(), &labelled).await?;
    Ok(())
}

#[tokio::test]
async fn what_was_wrong_before_the_policies_can_still_be_edited_and_deleted() -> Result<()> {
    let plane = ControlPlane::builder().name("before").start().await?;
    plane.apply_yaml(&hub_crds()?).await?;
    let (client, finalizers) = (plane.client().await?, json!(["example.com/held"]));
    let configs = json!([{ "url": "http://10.0.0.5" }]);
    let mut old = cluster("a.b", &json!({}), &json!({ "managedClusterClientConfigs": configs }))?;
    old.metadata.finalizers = serde_json::from_value(finalizers.clone())?;
    let clusters = Api::<ManagedCluster>::all(client.clone());
    clusters.create(&PostParams::default(), &old).await?;
    let spec = ManagedClusterSetBindingSpec { cluster_set: "other".to_owned() };
    let mut old = ManagedClusterSetBinding::new("default", "one", spec);
    old.metadata.finalizers = serde_json::from_value(finalizers)?;
    let bindings = Api::<ManagedClusterSetBinding>::namespaced(client.clone(), "default");
    bindings.create(&PostParams::default(), &old).await?;

    plane.kubectl_with_input(&["apply", "--server-side", "-f", "-"], HUB_YAML).await?;
    create_is_refused(&client, &cluster("c.d", &json!({}), &json!({}))?).await?;
    let message = edit_is_refused(&client, "a.b", &json!({ "spec": { "hubAcceptsClient": true } })).await?;
    assert_says(&message, &["422", "a.b"]);

    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    clusters.delete("a.b", &DeleteParams::default()).await?;
    clusters.patch("a.b", &PatchParams::default(), &release).await?;
    bindings.delete("one", &DeleteParams::default()).await?;
    bindings.patch("one", &PatchParams::default(), &release).await?;
    assert!(clusters.get_opt("a.b").await?.is_none() && bindings.get_opt("one").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn an_executor_is_used_by_those_who_may_and_stays_through_other_edits() -> Result<()> {
    let (hub, name) = (hub().await?, unique("work"));
    let works = "work.open-cluster-management.io";
    let executor = |name: &str| {
        let account = json!({ "namespace": "team", "name": name });
        json!({ "subject": { "type": "ServiceAccount", "serviceAccount": account } })
    };
    let work = |executor: Option<Value>| -> Result<ManifestWork> {
        let manifest =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "b" } });
        let spec = json!({ "workload": { "manifests": [manifest] }, "executor": executor });
        Ok(serde_json::from_value(json!({ "metadata": { "name": name, "namespace": "default" }, "spec": spec }))?)
    };
    let edit = rule(&["create", "patch", "get"], works, "manifestworks", None);
    let execute = rule(&["execute-as"], works, "manifestworks", Some("system:serviceaccount:team:deployer"));
    let (user, client) = user_who_may(hub, &[edit, execute]).await?;
    let api = Api::<ManifestWork>::namespaced(client, "default");
    let dry = PostParams { dry_run: true, ..<_>::default() };
    let admin = work(Some(executor("admin")))?;
    let message = is_refused("the executor is refused", || api.create(&dry, &admin)).await?;
    assert_says(&message, &["403", &user, "team/admin", "execute-as", "system:serviceaccount:team:admin"]);
    let allowed = work(Some(executor("deployer")))?;
    eventually("the work is created", || async { api.create(&<_>::default(), &allowed).await.map(Some) }).await?;
    let labelled = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    let unlabelled = Patch::Merge(json!({ "metadata": { "labels": null } }));
    hub.kubectl(&[
        "patch",
        "manifestwork",
        &name,
        "--type=merge",
        "-p",
        &json!({ "spec": { "executor": executor("admin") } }).to_string(),
    ])
    .await?;
    api.patch(&name, &PatchParams::default(), &labelled).await?;
    let removed = Patch::Merge(json!({ "spec": { "executor": null } }));
    api.patch(&name, &PatchParams::default(), &removed).await?;
    api.patch(&name, &PatchParams::default(), &unlabelled).await?;
    let dry = PatchParams { dry_run: true, ..<_>::default() };
    let again = Patch::Merge(json!({ "spec": { "executor": executor("admin") } }));
    is_refused("the edit is refused", || api.patch(&name, &dry, &again)).await?;
    api.create(&PostParams { dry_run: true, ..<_>::default() }, &{
        let mut other = work(None)?;
        other.metadata.name = Some(unique("without"));
        other
    })
    .await?;
    Ok(())
}

/// Kubernetes checks expressions against the schema of their objects, and only warns.
#[tokio::test]
async fn kubernetes_finds_nothing_wrong_with_the_policies_and_each_is_in_force() -> Result<()> {
    let hub = hub().await?;
    let list = async |kind: &str| -> Result<Vec<DynamicObject>> {
        let list = hub.kubectl(&["get", kind, "-o", "json"]).await?;
        Ok(serde_json::from_value(serde_json::from_str::<Value>(&list)?["items"].clone())?)
    };
    let policies = eventually("Kubernetes has checked the policies", || async {
        let policies = list("validatingadmissionpolicies").await?;
        let is_checked = |policy: &DynamicObject| policy.data["status"]["typeChecking"].is_object();
        anyhow::Ok(policies.iter().all(is_checked).then_some(policies))
    })
    .await?;
    let bindings = list("validatingadmissionpolicybindings").await?;
    // Other tests install the policy for replica sets on the same hub.
    let is_ours = |policy: &&DynamicObject| policy.metadata.name.as_deref().is_some_and(|name| HUB_YAML.contains(name));
    let ours: Vec<_> = policies.iter().filter(is_ours).collect();
    assert_eq!(ours.len(), 3);
    for policy in ours {
        assert_eq!(policy.data["status"]["typeChecking"], json!({}), "{policy:?}");
        let name = policy.metadata.name.as_deref().context("no name")?;
        let binding = bindings.iter().find(|binding| binding.data["spec"]["policyName"] == name);
        assert_eq!(binding.context("no binding")?.data["spec"]["validationActions"], json!(["Deny"]), "{name}");
        assert_eq!(policy.data["spec"]["failurePolicy"], "Fail", "{name}");
    }
    Ok(())
}

const REPLICA_SET_EXECUTORS: &str = include_str!("../../../../deploy/replica-set-executors.yaml");

/// Two users who edit replica sets in namespace `default`. The hub, which may use every executor, creates the works.
struct Users {
    /// The name of the one who may use executor `team/deployer` in this namespace only.
    editor: String,
    editors: Api<ManifestWorkReplicaSet>,
    /// With the right to executor `team/deployer` in all namespaces.
    authors: Api<ManifestWorkReplicaSet>,
}

/// New users, on a hub that checks the authors of replica sets.
async fn users() -> Result<Users> {
    static READY: OnceCell<()> = OnceCell::const_new();
    let hub = hub().await?;
    let apply = || async {
        let applied = hub.kubectl_with_input(&["apply", "--server-side", "-f", "-"], REPLICA_SET_EXECUTORS).await;
        applied.map(|_| ())
    };
    READY.get_or_try_init(apply).await?;
    let (works, sets) = ("work.open-cluster-management.io", "manifestworkreplicasets");
    let edit = rule(&["create", "patch", "get", "delete"], works, sets, None);
    let status = rule(&["patch"], works, "manifestworkreplicasets/status", None);
    let execute = rule(&["execute-as"], works, "manifestworks", Some("system:serviceaccount:team:deployer"));
    let (editor, editors) = user_who_may(hub, &[edit.clone(), status]).await?;
    // The right in one namespace is not enough, also not in that of the set.
    let (role, _) = user_who_may(hub, std::slice::from_ref(&execute)).await?;
    let (role, user) = (format!("--clusterrole={role}"), format!("--user={editor}"));
    hub.kubectl(&["create", "rolebinding", &unique("here"), &role, &user, "-n", "default"]).await?;
    let (_, authors) = user_who_may(hub, &[edit, execute]).await?;
    let of = |client: Client| Api::<ManifestWorkReplicaSet>::namespaced(client, "default");
    Ok(Users { editor, editors: of(editors), authors: of(authors) })
}

fn set_spec(executor: Option<&str>, placement: &str) -> Value {
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "b" } });
    let account = |name| json!({ "namespace": "team", "name": name });
    let executor =
        executor.map(|name| json!({ "subject": { "type": "ServiceAccount", "serviceAccount": account(name) } }));
    let template = json!({ "workload": { "manifests": [manifest] }, "executor": executor });
    json!({ "manifestWorkTemplate": template, "placementRefs": [{ "name": placement }] })
}

fn replica_set(name: &str, executor: Option<&str>) -> Result<ManifestWorkReplicaSet> {
    let metadata = json!({ "name": name, "namespace": "default" });
    Ok(serde_json::from_value(json!({ "metadata": metadata, "spec": set_spec(executor, "p") }))?)
}

/// The name of a set with executor `team/deployer` that its author has created.
async fn created(users: &Users) -> Result<String> {
    let name = unique("set");
    let set = replica_set(&name, Some("deployer"))?;
    eventually("the set is created", || async { users.authors.create(&<_>::default(), &set).await.map(Some) }).await?;
    Ok(name)
}

#[tokio::test]
async fn the_author_of_a_replica_set_may_use_its_executor_in_all_namespaces() -> Result<()> {
    let users = users().await?;
    let Users { editor, editors, .. } = &users;
    let dry = PostParams { dry_run: true, ..<_>::default() };
    let wanted = replica_set(&unique("set"), Some("deployer"))?;
    let message = is_refused("the set is refused", || editors.create(&dry, &wanted)).await?;
    assert_says(&message, &["403", editor, "team/deployer", "in all namespaces", "execute-as", "ClusterRoleBinding"]);
    created(&users).await?;
    let plain = replica_set(&unique("plain"), None)?;
    eventually("a set without one is created", || async { editors.create(&dry, &plain).await.map(Some) }).await?;
    Ok(())
}

#[tokio::test]
async fn what_a_replica_set_applies_and_where_is_edited_by_those_who_may_use_its_executor() -> Result<()> {
    let users = users().await?;
    let (name, Users { editors, authors, .. }) = (created(&users).await?, &users);
    let dry = PatchParams { dry_run: true, ..<_>::default() };
    let mut secret = set_spec(Some("deployer"), "p");
    secret["manifestWorkTemplate"]["workload"]["manifests"][0]["kind"] = json!("Secret");
    for change in [set_spec(Some("deployer"), "all"), set_spec(Some("admin"), "p"), secret] {
        let patch = Patch::Merge(json!({ "spec": change }));
        is_refused("the edit is refused", || editors.patch(&name, &dry, &patch)).await?;
    }
    let patch = Patch::Merge(json!({ "spec": set_spec(Some("admin"), "p") }));
    is_refused("another executor is refused", || authors.patch(&name, &dry, &patch)).await?;
    let patch = Patch::Merge(json!({ "spec": set_spec(Some("deployer"), "all") }));
    authors.patch(&name, &PatchParams::default(), &patch).await?;
    Ok(())
}

#[tokio::test]
async fn metadata_and_status_of_a_replica_set_are_edited_without_the_right_to_its_executor() -> Result<()> {
    let users = users().await?;
    let (name, Users { editors, .. }) = (created(&users).await?, &users);
    let (edits, dry) = (PatchParams::default(), PatchParams { dry_run: true, ..<_>::default() });
    let spec = Patch::Merge(json!({ "spec": set_spec(Some("admin"), "p") }));
    is_refused("the policy is in force", || editors.patch(&name, &dry, &spec)).await?;
    let labelled = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" }, "finalizers": ["example.com/kept"] } }));
    editors.patch(&name, &edits, &labelled).await?;
    // What is sent with a status is not stored.
    let spec = set_spec(Some("admin"), "p");
    let status = Patch::Merge(json!({ "spec": spec, "status": { "summary": { "total": 1 } } }));
    editors.patch_status(&name, &edits, &status).await?;
    let stored = serde_json::to_value(editors.get(&name).await?.spec)?;
    let executor = stored.pointer("/manifestWorkTemplate/executor/subject/serviceAccount/name");
    assert_eq!(executor, Some(&json!("deployer")));
    editors.delete(&name, &DeleteParams::default()).await?;
    let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    editors.patch(&name, &edits, &released).await?;
    assert!(editors.get_opt(&name).await?.is_none());
    Ok(())
}
