//! All that an agent may do on the hub, and what it tries beyond that.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use k8s_openapi::{
    api::{
        authorization::v1::{SelfSubjectRulesReview, SelfSubjectRulesReviewSpec},
        certificates::v1::CertificateSigningRequest,
        rbac::v1::PolicyRule,
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use ocm_api::{
    cluster::v1::{ManagedCluster, ManagedClusterSpec},
    labels::CLUSTER_SET,
};
use ocm_testing::{Seen, client_for, eventually, unique};
use serde_json::{Value, json};

use crate::{
    requests::{Request, assert_untouched, client_of_agent, wait_for_certificate},
    support::{World, there, world},
};

/// Verb, API group, resource and name of what is allowed.
type Rights = BTreeSet<[String; 4]>;

fn rights_of(rules: &[PolicyRule]) -> Rights {
    let every =
        |list: &Option<Vec<String>>| list.clone().filter(|list| !list.is_empty()).unwrap_or(vec![String::new()]);
    let mut rights = Rights::new();
    for rule in rules {
        for verb in &rule.verbs {
            for group in every(&rule.api_groups) {
                for resource in every(&rule.resources) {
                    for name in every(&rule.resource_names) {
                        rights.insert([verb.clone(), group.clone(), resource.clone(), name]);
                    }
                }
            }
        }
    }
    rights
}

/// What the API server says that this client may do in a namespace.
async fn granted(client: &Client, namespace: &str) -> Result<Rights> {
    let spec = SelfSubjectRulesReviewSpec { namespace: Some(namespace.into()) };
    let review = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
    let review = Api::all(client.clone()).create(&PostParams::default(), &review).await?;
    let rules = serde_json::to_value(review.status.context("there is no answer")?.resource_rules)?;
    Ok(rights_of(&serde_json::from_value::<Vec<PolicyRule>>(rules)?))
}

/// What a client may do in a namespace beyond what everyone may do.
async fn beyond_everyone(world: &World, client: &Client, namespace: &str) -> Result<Rights> {
    let everyone = granted(&client_for(&world.plane.kubeconfig_for_user("nobody", &[])?).await?, namespace).await?;
    Ok(granted(client, namespace).await?.difference(&everyone).cloned().collect())
}

/// The rights in these cluster roles, by the end of their names.
async fn in_roles(world: &World, roles: &[&str]) -> Result<Rights> {
    let mut all = Rights::new();
    for role in roles {
        let name = format!("open-cluster-management:managedcluster:{role}");
        let role = there(world.get("clusterrole", "", &name).await)?;
        all.extend(rights_of(&serde_json::from_value::<Vec<PolicyRule>>(role["rules"].clone())?));
    }
    Ok(all)
}

async fn wait_for(world: &World, client: &Client, namespace: &str, expected: &Rights) -> Result<()> {
    eventually(&format!("the rights in {namespace} are {expected:?}"), || async {
        let found = beyond_everyone(world, client, namespace).await?;
        anyhow::Ok(if found == *expected { Seen::Settled(()) } else { Seen::NotYet(format!("{found:?}")) })
    })
    .await
}

#[tokio::test]
async fn an_agent_has_the_rights_of_its_roles_only_and_loses_them_when_its_cluster_is_denied_or_deleted() -> Result<()>
{
    let world = world().await?;
    let (name, other) = (unique("rights"), unique("rights-other"));
    world.accepted(&name).await?;
    world.accepted(&other).await?;
    let agent = client_of_agent(&world, &name, "agent1").await?;
    let everywhere = in_roles(&world, &[&name]).await?;
    wait_for(&world, &agent, &name, &in_roles(&world, &[&name, "registration", "work"]).await?).await?;
    for namespace in [&other, "default", "kube-system", crate::support::NAMESPACE] {
        wait_for(&world, &agent, namespace, &everywhere).await?;
    }

    world.set_accepted(&name, false).await?;
    world.wait_for_condition(&name, "HubAcceptedManagedCluster", "False").await?;
    let group = "cluster.open-cluster-management.io";
    let reads =
        ["get", "list", "watch"].map(|verb| [verb.into(), group.into(), "managedclusters".into(), name.clone()]).into();
    for namespace in [&name, &other] {
        wait_for(&world, &agent, namespace, &reads).await?;
    }
    let renewal = Request::renewal(&name, "agent1").send(&agent).await.unwrap_err();
    assert!(format!("{renewal:#}").contains("cannot create resource \"certificatesigningrequests\""), "{renewal:#}");

    world.clusters().delete(&name, &DeleteParams::default()).await?;
    world.wait_until_gone("managedcluster", "", &name).await?;
    for namespace in [&name, &other] {
        wait_for(&world, &agent, namespace, &Rights::new()).await?;
    }
    Ok(())
}

/// The message with which the API server refuses what `attempt` does, as soon as it refuses it with these words. The hub edits
/// clusters too, and policies take a second.
async fn refused<F, T>(words: &str, attempt: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = kube::Result<T>>,
{
    eventually(&format!("it is refused with {words:?}"), || async {
        match attempt().await {
            Err(kube::Error::Api(status)) if status.code == 403 && status.message.contains(words) => Seen::Settled(()),
            Err(error) => Seen::NotYet(error.to_string()),
            Ok(_) => Seen::NotYet("it is allowed".into()),
        }
    })
    .await
}

fn owner() -> OwnerReference {
    let (api_version, kind, name, uid) = ("v1".into(), "Namespace".into(), "n".into(), "1".into());
    OwnerReference { api_version, kind, name, uid, ..OwnerReference::default() }
}

fn new_cluster(name: &str, metadata: &Value, accepted: bool) -> Result<ManagedCluster> {
    let mut cluster =
        ManagedCluster::new(name, ManagedClusterSpec { hub_accepts_client: accepted, ..Default::default() });
    let mut object = serde_json::to_value(&cluster)?;
    ocm_apimachinery::merge::apply(&mut object, &json!({ "metadata": metadata }));
    cluster = serde_json::from_value(object)?;
    Ok(cluster)
}

#[tokio::test]
async fn a_bootstrap_identity_registers_its_cluster_neither_accepted_nor_in_a_set_nor_owned() -> Result<()> {
    let world = world().await?;
    let account = ("open-cluster-management", "agent-registration-bootstrap");
    let bootstrap = client_for(&world.plane.kubeconfig_for_service_account(account.0, account.1).await?).await?;
    let clusters = Api::<ManagedCluster>::all(bootstrap);
    let trial = PostParams { dry_run: true, ..PostParams::default() };
    let create = async |metadata: Value, accepted| {
        let cluster = new_cluster(&unique("bootstrap"), &metadata, accepted);
        let cluster = cluster.map_err(|error| kube::Error::Service(error.into()))?;
        clusters.create(&trial, &cluster).await
    };
    refused("may not accept", || create(json!({}), true)).await?;
    refused("may not add", || create(json!({"labels": {CLUSTER_SET: "theirs"}}), false)).await?;
    refused("ownerReferences", || create(json!({"ownerReferences": [owner()]}), false)).await?;
    create(json!({"labels": {CLUSTER_SET: "default"}}), false).await?;
    create(json!({}), false).await?;
    Ok(())
}

#[tokio::test]
async fn an_agent_cannot_accept_move_own_or_delete_its_cluster_nor_decide_on_its_requests() -> Result<()> {
    let world = world().await?;
    let (name, other) = (unique("self"), unique("self-other"));
    world.accepted(&name).await?;
    world.accepted(&other).await?;
    let agent = client_of_agent(&world, &name, "agent1").await?;
    let clusters = Api::<ManagedCluster>::all(agent.clone());
    let edit = |change: fn(&mut ManagedCluster)| {
        let (clusters, name) = (clusters.clone(), name.clone());
        async move {
            let mut cluster = clusters.get(&name).await?;
            change(&mut cluster);
            clusters.replace(&name, &PostParams::default(), &cluster).await
        }
    };
    refused("may not add", || edit(|it| _ = it.labels_mut().insert(CLUSTER_SET.into(), "theirs".into()))).await?;
    refused("ownerReferences", || edit(|it| it.metadata.owner_references = Some(vec![owner()]))).await?;
    refused("cannot delete", || async { clusters.delete(&name, &DeleteParams::default()).await }).await?;

    // What Kubernetes and the hub allow only to others.
    let sent = Request { signer: "example.com/other", ..Request::renewal(&name, "agent1") }.send(&agent).await?;
    let requests = Api::<CertificateSigningRequest>::all(agent.clone());
    let approved = json!({"type": "Approved", "status": "True", "reason": "R", "message": "m"});
    let approve = Patch::Merge(json!({"status": {"conditions": [approved]}}));
    let params = PatchParams::default();
    refused("/approval", || requests.patch_approval(&sent, &params, &approve)).await?;
    let issue = Patch::Merge(json!({"status": {"certificate": "bQ=="}}));
    refused("/status", || requests.patch_status(&sent, &params, &issue)).await?;
    let foreign = Request::renewal(&other, "agent1").send(&agent).await?;
    let own = Request::renewal(&name, "agent1").send(&agent).await?;
    wait_for_certificate(&world, &own).await?;
    assert_untouched(&world, &foreign).await?;
    assert_untouched(&world, &sent).await?;

    // An agent may deny its own cluster, and cannot take that back.
    eventually("the agent has denied its cluster", || async {
        edit(|it| it.spec.hub_accepts_client = false).await.is_ok()
    })
    .await?;
    let accept = edit(|it| it.spec.hub_accepts_client = true).await;
    assert!(matches!(&accept, Err(kube::Error::Api(status)) if matches!(status.code, 403 | 409)), "{accept:?}");
    world.wait_for_condition(&name, "HubAcceptedManagedCluster", "False").await?;
    let accept = edit(|it| it.spec.hub_accepts_client = true).await;
    assert!(matches!(&accept, Err(kube::Error::Api(status)) if status.code == 403), "{accept:?}");
    assert!(!world.clusters().get(&name).await?.spec.hub_accepts_client);
    Ok(())
}
