//! A cluster joins.

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Namespace, Secret},
    events::v1::Event,
};
use kube::{Api, ResourceExt as _, api::ListParams};
use ocm_api::{conditions, finalizers, leases, secrets, taints};
use ocm_testing::{eventually, unique};
use serde_json::json;

use crate::world::{config_map, world};

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_joins_from_nothing_to_available() -> anyhow::Result<()> {
    let world = world().await?;
    let mut agent = world.join().await?;
    let name = agent.cluster.clone();
    for type_ in [conditions::cluster::HUB_ACCEPTED, conditions::cluster::JOINED, conditions::cluster::CLOCK_SYNCED] {
        eventually("the cluster has all its conditions", || world.cluster_condition(&name, type_)).await?;
    }
    let cluster = world.clusters().get(&name).await?;
    assert_eq!(cluster.finalizers().len(), 2, "{:?}", cluster.finalizers());
    let version = cluster.status.unwrap_or_default().version.kubernetes.unwrap_or_default();
    assert!(version.starts_with("v1."), "{version}");
    world.cluster_is_reachable(&name).await?;
    let lease = Api::<Lease>::namespaced(world.hub.clone(), &name).get(leases::MANAGED_CLUSTER).await?;
    assert!(lease.spec.and_then(|spec| spec.renew_time).is_some());
    let events = Api::<Event>::namespaced(world.hub.clone(), &name);
    eventually("an event reports it", || async {
        let events = events.list(&ListParams::default()).await?;
        anyhow::Ok(events.iter().any(|event| event.reason.as_deref() == Some("Available")))
    })
    .await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_nobody_approves_gets_no_certificate() -> anyhow::Result<()> {
    let world = world().await?;
    let mut agent = world.start_agent(&unique("unapproved")).await?;
    world.accept(&agent.cluster).await?;
    let requests = eventually("the agent has asked for a certificate", || async {
        let requests = world.requests(&agent.cluster).await?;
        anyhow::Ok((!requests.is_empty()).then_some(requests))
    })
    .await?;
    eventually("the cluster is accepted", || {
        world.cluster_condition(&agent.cluster, conditions::cluster::HUB_ACCEPTED)
    })
    .await?;
    // The hub has reconciled the cluster, and so the request, which is older.
    assert_eq!(requests.len(), 1);
    let request = &world.requests(&agent.cluster).await?[0];
    assert!(request.status.as_ref().is_none_or(|status| status.conditions.is_none() && status.certificate.is_none()));
    let secrets = Api::<Secret>::namespaced(world.managed.clone(), &agent.namespace);
    assert!(secrets.get_opt(secrets::HUB_KUBECONFIG).await?.is_none());
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_not_accepted_gets_no_namespace_no_rights_and_no_work() -> anyhow::Result<()> {
    let world = world().await?;
    let mut agent = world.start_agent(&unique("unaccepted")).await?;
    let name = agent.cluster.clone();
    eventually("the agent holds a certificate", || async {
        world.approve_all(&name).await?;
        anyhow::Ok(agent.hub_dir().join("tls.crt").exists())
    })
    .await?;
    let cluster = world.clusters().get(&name).await?;
    assert!(!cluster.spec.hub_accepts_client);
    let identity = agent.hub_client().await?;
    let own = Api::<ocm_api::cluster::v1::ManagedCluster>::all(identity.clone()).get(&name).await;
    assert!(crate::world::is_forbidden(&own), "{own:?}");
    let works = Api::<ocm_api::work::v1::ManifestWork>::namespaced(identity, &name).list(&ListParams::default()).await;
    assert!(crate::world::is_forbidden(&works), "{works:?}");
    eventually("the hub has seen the cluster", || async {
        let cluster = world.clusters().get(&name).await?;
        let tainted = cluster.spec.taints.iter().any(|taint| taint.key == taints::UNREACHABLE);
        anyhow::Ok(tainted && cluster.finalizers() == [finalizers::CLUSTER_RESOURCE_CLEANUP])
    })
    .await?;
    assert!(Api::<Namespace>::all(world.hub.clone()).get_opt(&name).await?.is_none());
    assert_eq!(world.clusters().get(&name).await?.status, None);
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_agent_with_the_name_of_a_joined_cluster_gets_nothing_and_disturbs_nothing() -> anyhow::Result<()> {
    let world = world().await?;
    let mut first = world.join().await?;
    let cluster = first.cluster.clone();
    world.cluster_is_reachable(&cluster).await?;
    let before = world.clusters().get(&cluster).await?;
    // Even with the same agent id it has no certificate, and the hub approves renewals only.
    let mut second = world.start_agent(&cluster).await?;
    eventually("the second agent has asked for a certificate", || async {
        anyhow::Ok(world.requests(&cluster).await?.len() == 2)
    })
    .await?;
    let work = unique("undisturbed");
    world.create_work(&cluster, &work, json!([config_map(&work, json!({}))])).await?;
    world.work_is_available(&cluster, &work).await?;
    let undecided = world.requests(&cluster).await?.into_iter().filter(|request| {
        request.status.as_ref().is_none_or(|status| status.conditions.is_none() && status.certificate.is_none())
    });
    assert_eq!(undecided.count(), 1);
    assert!(!second.hub_dir().join("tls.crt").exists());
    let after = world.clusters().get(&cluster).await?;
    assert_eq!((after.spec, after.metadata.uid), (before.spec, before.metadata.uid));
    second.stop().await?;
    first.stop().await
}
