//! The rights of an accepted agent on the hub.

use k8s_openapi::api::{
    certificates::v1::CertificateSigningRequest,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use ocm_api::{cluster::v1::ManagedCluster, labels::CLUSTER_SET, leases, work::v1::ManifestWork};
use ocm_testing::{Seen, eventually};
use serde_json::json;

use crate::world::{is_forbidden, world};

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_agent_reads_its_own_namespace_and_no_other() -> anyhow::Result<()> {
    let world = world().await?;
    let (mut one, mut other) = tokio::try_join!(world.join(), world.join())?;
    let identity = one.hub_client().await?;
    let all = ListParams::default();

    Api::<ManifestWork>::namespaced(identity.clone(), &one.cluster).list(&all).await?;
    Api::<Lease>::namespaced(identity.clone(), &one.cluster).get(leases::MANAGED_CLUSTER).await?;
    let clusters = Api::<ManagedCluster>::all(identity.clone());
    clusters.get(&one.cluster).await?;

    assert!(is_forbidden(&clusters.get(&other.cluster).await));
    assert!(is_forbidden(&clusters.list(&all).await));
    let works = Api::<ManifestWork>::namespaced(identity.clone(), &other.cluster);
    assert!(is_forbidden(&works.list(&all).await));
    assert!(is_forbidden(&Api::<ManifestWork>::all(identity.clone()).list(&all).await));
    let lease = Api::<Lease>::namespaced(identity.clone(), &other.cluster);
    assert!(is_forbidden(&lease.get(leases::MANAGED_CLUSTER).await));
    for namespace in [&one.cluster, &other.cluster] {
        assert!(is_forbidden(&Api::<Secret>::namespaced(identity.clone(), namespace).list(&all).await));
        assert!(is_forbidden(&Api::<ConfigMap>::namespaced(identity.clone(), namespace).list(&all).await));
    }
    one.stop().await?;
    other.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_give_itself_work_or_approve_its_own_requests() -> anyhow::Result<()> {
    let world = world().await?;
    let mut agent = world.join().await?;
    let identity = agent.hub_client().await?;
    let work: ManifestWork = serde_json::from_value(json!({"metadata": {"name": "own"}, "spec": {"workload": {}}}))?;
    let works = Api::<ManifestWork>::namespaced(identity.clone(), &agent.cluster);
    assert!(is_forbidden(&works.create(&PostParams::default(), &work).await));
    let request = world.requests(&agent.cluster).await?.remove(0).metadata.name.unwrap_or_default();
    let approve = Patch::Merge(json!({"status": {"conditions": [{"type": "Approved", "status": "True"}]}}));
    let requests = Api::<CertificateSigningRequest>::all(identity);
    assert!(is_forbidden(&requests.patch_approval(&request, &PatchParams::default(), &approve).await));
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_may_edit_its_cluster_but_not_choose_the_sets_it_is_in() -> anyhow::Result<()> {
    let world = world().await?;
    let mut agent = world.join().await?;
    let clusters = Api::<ManagedCluster>::all(agent.hub_client().await?);
    let replace = async |edit: fn(&mut ManagedCluster)| {
        let mut cluster = clusters.get(&agent.cluster).await?;
        edit(&mut cluster);
        clusters.replace(&agent.cluster, &PostParams::default(), &cluster).await
    };
    // The hub edits the cluster too.
    eventually("the agent has edited its cluster", || async {
        replace(|cluster| cluster.annotations_mut().extend([("note".to_owned(), "mine".to_owned())]))
            .await
            .map(|_| true)
    })
    .await?;
    let message = eventually("the agent is kept out of the set", || async {
        let moved =
            replace(|cluster| cluster.labels_mut().extend([(CLUSTER_SET.to_owned(), "theirs".to_owned())])).await;
        match moved {
            Err(kube::Error::Api(status)) if status.code == 403 => Seen::Settled(status.message.clone()),
            other => Seen::NotYet(format!("{other:?}")),
        }
    })
    .await?;
    assert!(message.contains("managedclustersets/join") && message.contains("cluster set theirs"), "{message}");
    agent.stop().await
}
