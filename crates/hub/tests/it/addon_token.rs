//! Service accounts for agents of add-ons that authenticate with tokens.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenReview},
    core::v1::ServiceAccount,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use ocm_api::identities;
use ocm_testing::{AuditLog, Seen, client_for, eventually, unique};
use serde_json::{Value, json};

use crate::{
    addon_world::{AddonWorld, addon_world},
    support::{ACCOUNT, NAMESPACE, World, there, world},
};

const READY: &str = "TokenInfrastructureReady";
const FAILED: &str = "TokenInfrastructureApplyFailed";
const KINDS: [(&str, &str); 3] =
    [("serviceaccount", "hello-agent"), ("role", "hello-token-role"), ("rolebinding", "hello-token-role")];

/// An accepted cluster with the add-on `hello`.
async fn cluster_with_hello(addons: &AddonWorld) -> Result<String> {
    let cluster = addons.cluster("token").await?;
    addons.install(&cluster, "hello", json!({})).await?;
    Ok(cluster)
}

/// As the cluster's agent writes it.
async fn use_driver(addons: &AddonWorld, cluster: &str, driver: &str) -> Result<()> {
    let registrations = json!([{"signerName": "kubernetes.io/kube-apiserver-client"}]);
    let status = json!({"status": {"kubeClientDriver": driver, "registrations": registrations}});
    addons.addons(cluster).patch_status("hello", &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

/// Waits until the condition names the service account that exists; returns its uid.
async fn ready(world: &World, addons: &AddonWorld, cluster: &str) -> Result<String> {
    eventually("the condition names the service account", || async {
        let uid =
            world.get("serviceaccount", cluster, "hello-agent").await.map(|found| found["metadata"]["uid"].clone());
        let uid = uid.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let expected = format!("ServiceAccount {cluster}/hello-agent (UID: {uid}) is ready");
        let conditions = addons.addons(cluster).get("hello").await?.status.unwrap_or_default().conditions;
        let found = conditions.into_iter().find(|condition| condition.type_ == READY);
        Ok::<_, kube::Error>(match found {
            Some(found) if found.status == "True" && found.message == expected => Seen::Settled(uid),
            other => Seen::NotYet(format!("{other:?}")),
        })
    })
    .await
}

async fn nothing_is_left(world: &World, cluster: &str) -> Result<()> {
    for (kind, name) in KINDS {
        world.wait_until_gone(kind, cluster, name).await?;
    }
    Ok(())
}

async fn has_no_condition(addons: &AddonWorld, cluster: &str) -> Result<()> {
    eventually("the condition is gone", || async {
        let conditions = addons.addons(cluster).get("hello").await?.status.unwrap_or_default().conditions;
        Ok::<_, kube::Error>(!conditions.iter().any(|condition| condition.type_ == READY))
    })
    .await
}

/// A client with the user and the group of a cluster's agent.
async fn agent_of(world: &World, cluster: &str) -> Result<Client> {
    let user = identities::cluster_user(cluster, "agent");
    client_for(&world.plane.kubeconfig_for_user(&user, &[&identities::cluster_group(cluster)])?).await
}

fn request() -> Result<TokenRequest> {
    Ok(serde_json::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 600}}))?)
}

/// The hub's writes in a cluster's namespace, each with its number: `create roles 201`.
fn writes_in(world: &World, cluster: &str) -> Result<BTreeMap<String, usize>> {
    let hub = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let mut writes = BTreeMap::new();
    let of_token = |name: &str| KINDS.iter().any(|(_, own)| *own == name) || name == "hello";
    for write in AuditLog::of(world.plane)?.all()? {
        if write.user == hub && write.namespace == cluster && of_token(&write.name) {
            *writes.entry(format!("{write} {}", write.code)).or_default() += 1;
        }
    }
    Ok(writes)
}

#[tokio::test]
async fn the_clusters_agent_creates_tokens_of_the_service_account_and_of_no_other() -> Result<()> {
    let (world, addons) = (world().await?, addon_world().await?);
    let cluster = cluster_with_hello(&addons).await?;
    use_driver(&addons, &cluster, "token").await?;
    let uid = ready(&world, &addons, &cluster).await?;

    let agent = agent_of(&world, &cluster).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(agent.clone(), &cluster);
    let token = eventually("the agent gets a token", || async {
        let requested = accounts.create_token_request("hello-agent", &PostParams::default(), &request()?).await;
        anyhow::Ok(requested.ok().and_then(|requested| requested.status))
    })
    .await?
    .token;
    let review: TokenReview = serde_json::from_value(json!({"spec": {"token": token}}))?;
    let review = Api::<TokenReview>::all(world.client.clone()).create(&PostParams::default(), &review).await?;
    let user = review.status.and_then(|status| status.user).unwrap_or_default();
    assert_eq!(user.username, Some(format!("system:serviceaccount:{cluster}:hello-agent")));
    assert_eq!(user.uid, Some(uid));
    for (namespace, account) in [(cluster.as_str(), "default"), (NAMESPACE, ACCOUNT), ("default", "hello-agent")] {
        let accounts: Api<ServiceAccount> = Api::namespaced(agent.clone(), namespace);
        let denied = accounts.create_token_request(account, &PostParams::default(), &request()?).await;
        assert!(matches!(denied, Err(kube::Error::Api(status)) if status.code == 403), "{namespace}/{account}");
    }
    Ok(())
}

#[tokio::test]
async fn tokens_cost_four_writes_and_what_stays_as_it_is_costs_none() -> Result<()> {
    let (world, addons) = (world().await?, addon_world().await?);
    let cluster = cluster_with_hello(&addons).await?;
    use_driver(&addons, &cluster, "token").await?;
    ready(&world, &addons, &cluster).await?;
    addons.edit_cluster(&cluster, json!({"metadata": {"annotations": {"note": "x"}}})).await?;
    addons.set_condition(&cluster, "hello", "Available", "True").await?;
    addons.settle().await?;
    let expected = [
        ("create rolebindings 201", 1),
        ("create roles 201", 1),
        ("create serviceaccounts 201", 1),
        ("patch managedclusteraddons/status 200", 1),
    ];
    let expected: BTreeMap<_, _> = expected.into_iter().map(|(write, times)| (write.to_owned(), times)).collect();
    assert_eq!(writes_in(&world, &cluster)?, expected);
    Ok(())
}

#[tokio::test]
async fn what_somebody_deletes_or_edits_is_restored_and_the_condition_names_the_new_account() -> Result<()> {
    let (world, addons) = (world().await?, addon_world().await?);
    let cluster = cluster_with_hello(&addons).await?;
    use_driver(&addons, &cluster, "token").await?;
    let uid = ready(&world, &addons, &cluster).await?;
    let rules = there(world.get("role", &cluster, "hello-token-role").await)?["rules"].clone();
    let wide = json!({"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}).to_string();
    world.plane.kubectl(&["patch", "role", "hello-token-role", "-n", &cluster, "--type=merge", "-p", &wide]).await?;
    eventually("the role is as it was", || async {
        world.get("role", &cluster, "hello-token-role").await.is_some_and(|role| role["rules"] == rules)
    })
    .await?;
    world.plane.kubectl(&["delete", "rolebinding", "hello-token-role", "-n", &cluster]).await?;
    eventually("the binding is restored", || async { world.get("rolebinding", &cluster, "hello-token-role").await })
        .await?;
    world.plane.kubectl(&["delete", "serviceaccount", "hello-agent", "-n", &cluster]).await?;
    eventually("there is another service account", || async {
        let found = world.get("serviceaccount", &cluster, "hello-agent").await;
        found.is_some_and(|found| found["metadata"]["uid"] != json!(uid))
    })
    .await?;
    assert_ne!(ready(&world, &addons, &cluster).await?, uid);
    Ok(())
}

#[tokio::test]
async fn the_objects_go_with_the_driver_the_add_on_and_the_acceptance_of_the_cluster() -> Result<()> {
    let (world, addons) = (world().await?, addon_world().await?);
    let cluster = cluster_with_hello(&addons).await?;
    use_driver(&addons, &cluster, "token").await?;
    ready(&world, &addons, &cluster).await?;
    use_driver(&addons, &cluster, "csr").await?;
    nothing_is_left(&world, &cluster).await?;
    has_no_condition(&addons, &cluster).await?;

    use_driver(&addons, &cluster, "token").await?;
    ready(&world, &addons, &cluster).await?;
    addons.edit_cluster(&cluster, json!({"spec": {"hubAcceptsClient": false}})).await?;
    nothing_is_left(&world, &cluster).await?;
    let message = addons.wait_for_condition(&cluster, "hello", READY, "False", FAILED).await?;
    assert!(message.contains("does not accept"), "{message}");
    addons.edit_cluster(&cluster, json!({"spec": {"hubAcceptsClient": true}})).await?;
    ready(&world, &addons, &cluster).await?;

    // Held by a finalizer, it is being deleted first.
    let hold = |finalizers: Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    addons.addons(&cluster).patch("hello", &PatchParams::default(), &hold(json!(["example.com/hold"]))).await?;
    addons.uninstall(&cluster, "hello").await?;
    nothing_is_left(&world, &cluster).await?;
    addons.addons(&cluster).patch("hello", &PatchParams::default(), &hold(json!(null))).await?;
    addons.wait_until_gone(&cluster, "hello").await
}

#[tokio::test]
async fn objects_that_an_add_on_left_behind_are_deleted() -> Result<()> {
    let (world, addons) = (world().await?, addon_world().await?);
    let cluster = addons.cluster("left").await?;
    world.plane.kubectl_with_input(&["create", "-f", "-"], &account(&cluster, true).to_string()).await?;
    world.wait_until_gone("serviceaccount", &cluster, "hello-agent").await
}

fn account(cluster: &str, is_own: bool) -> Value {
    let labels = json!({"addon.open-cluster-management.io/name": "hello",
        "addon.open-cluster-management.io/token-infrastructure": "true"});
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "hello-agent", "namespace": cluster,
        "labels": if is_own { labels } else { json!({"team": "a"}) }}})
}

#[tokio::test]
async fn a_service_account_of_somebody_else_is_reported_and_nobody_gets_its_tokens() -> Result<()> {
    let (world, addons) = (world().await?, addon_world().await?);
    let cluster = cluster_with_hello(&addons).await?;
    world.plane.kubectl_with_input(&["create", "-f", "-"], &account(&cluster, false).to_string()).await?;
    let theirs = there(world.get("serviceaccount", &cluster, "hello-agent").await)?;
    use_driver(&addons, &cluster, "token").await?;
    let message = addons.wait_for_condition(&cluster, "hello", READY, "False", FAILED).await?;
    assert!(message.contains(&format!("ServiceAccount {cluster}/hello-agent")), "{message}");
    assert!(world.get("rolebinding", &cluster, "hello-token-role").await.is_none());
    assert!(world.get("role", &cluster, "hello-token-role").await.is_none());
    use_driver(&addons, &cluster, "csr").await?;
    has_no_condition(&addons, &cluster).await?;
    assert_eq!(there(world.get("serviceaccount", &cluster, "hello-agent").await)?, theirs, "it is as it was");
    Ok(())
}

#[tokio::test]
async fn an_account_that_loses_a_label_loses_the_right_to_its_tokens() -> Result<()> {
    let (world, addons) = (world().await?, addon_world().await?);
    let cluster = cluster_with_hello(&addons).await?;
    use_driver(&addons, &cluster, "token").await?;
    ready(&world, &addons, &cluster).await?;
    let unlabelled = ["label", "serviceaccount", "hello-agent", "-n", &cluster];
    world.plane.kubectl(&[&unlabelled[..], &["addon.open-cluster-management.io/name-"]].concat()).await?;
    addons.wait_for_condition(&cluster, "hello", READY, "False", FAILED).await?;
    world.wait_until_gone("rolebinding", &cluster, "hello-token-role").await?;
    world.plane.kubectl(&[&unlabelled[..], &["addon.open-cluster-management.io/name=hello"]].concat()).await?;
    ready(&world, &addons, &cluster).await?;
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_goes_takes_the_objects_along() -> Result<()> {
    let (world, addons) = (world().await?, addon_world().await?);
    let cluster = cluster_with_hello(&addons).await?;
    use_driver(&addons, &cluster, "token").await?;
    ready(&world, &addons, &cluster).await?;
    world.plane.kubectl(&["delete", "managedcluster", &cluster, "--wait=false"]).await?;
    nothing_is_left(&world, &cluster).await
}

#[tokio::test]
async fn an_add_on_whose_name_is_too_long_for_a_label_is_reported() -> Result<()> {
    let addons = addon_world().await?;
    let cluster = addons.cluster("long").await?;
    let name = format!("{}-{}", unique("long"), "a".repeat(63));
    addons.install(&cluster, &name, json!({})).await?;
    let registrations = json!([{"signerName": "kubernetes.io/kube-apiserver-client"}]);
    let status = Patch::Merge(json!({"status": {"kubeClientDriver": "token", "registrations": registrations}}));
    addons.addons(&cluster).patch_status(&name, &PatchParams::default(), &status).await?;
    let message = addons.wait_for_condition(&cluster, &name, READY, "False", FAILED).await?;
    assert!(message.contains("63 characters"), "{message}");
    Ok(())
}
