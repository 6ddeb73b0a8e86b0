//! What the hub wrote, as kube-apiserver's audit log has it.

use std::collections::BTreeMap;

use anyhow::Result;
use ocm_testing::{AuditLog, Write, unique};

use crate::{
    gated::gated_world,
    support::{ACCOUNT, NAMESPACE, World, world},
};

/// The hub's writes that name a cluster, each with its number: `create leases 201`.
pub(crate) fn writes_for(world: &World, cluster: &str) -> Result<BTreeMap<String, usize>> {
    let hub = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let mut writes = BTreeMap::new();
    for write in AuditLog::of(world.plane)?.all()?.iter().filter(|write| write.user == hub && names(write, cluster)) {
        *writes.entry(format!("{write} {}", write.code)).or_default() += 1;
    }
    Ok(writes)
}

fn names(write: &Write, cluster: &str) -> bool {
    let role = format!("open-cluster-management:managedcluster:{cluster}");
    write.name == cluster || write.namespace == cluster || write.name == role
}

fn count(writes: &BTreeMap<String, usize>) -> usize {
    writes.values().sum()
}

#[tokio::test]
async fn joining_takes_no_more_writes_than_it_must_and_no_conflict() -> Result<()> {
    let world = world().await?;
    let name = unique("thrift");
    world.register(&name).await?;
    ocm_testing::eventually("finalizer and taint are there", || async {
        let cluster = world.clusters().get(&name).await?;
        Ok::<_, kube::Error>(cluster.spec.taints.len() == 1 && cluster.metadata.finalizers.is_some())
    })
    .await?;
    assert_eq!(writes_for(&world, &name)?, BTreeMap::from([("patch managedclusters 200".to_owned(), 1)]));
    world.set_accepted(&name, true).await?;
    world.wait_for_accepted(&name).await?;
    assert_eq!(writes_for(&world, &name)?, accepting(2));
    Ok(())
}

/// What an accepted cluster costs, with so many patches of its finalizers and taints.
fn accepting(patches: usize) -> BTreeMap<String, usize> {
    let writes = [
        ("create clusterrolebindings 201", 1),
        ("create clusterroles 201", 1),
        ("create leases 201", 1),
        ("create namespaces 201", 1),
        ("create rolebindings 201", 2),
        ("patch managedclusters 200", patches),
        ("patch managedclusters/status 200", 1),
    ];
    writes.into_iter().map(|(write, times)| (write.to_owned(), times)).collect()
}

#[tokio::test]
async fn a_cluster_that_is_accepted_from_the_start_gets_finalizers_and_taint_in_one_patch() -> Result<()> {
    let world = world().await?;
    let name = unique("hasty");
    world.accepted(&name).await?;
    assert_eq!(writes_for(&world, &name)?, accepting(1));
    Ok(())
}

#[tokio::test]
async fn automatic_acceptance_adds_no_patch_to_that_of_an_administrator() -> Result<()> {
    let world = gated_world().await?;
    let name = unique("trusted");
    world.register(&name).await?;
    world.wait_for_accepted(&name).await?;
    // The acceptance brings the finalizer of the rights, and if it is the first patch, everything else.
    let writes = writes_for(&world, &name)?;
    assert!([accepting(1), accepting(2)].contains(&writes), "{writes:?}");
    Ok(())
}

#[tokio::test]
async fn an_idle_cluster_costs_no_writes() -> Result<()> {
    let world = world().await?;
    let name = unique("idle");
    world.accepted(&name).await?;
    world.say_available(&name).await?;
    ocm_testing::eventually("the taint is gone", || async {
        Ok::<_, kube::Error>(world.clusters().get(&name).await?.spec.taints.is_empty())
    })
    .await?;
    let before = count(&writes_for(&world, &name)?);
    // Changes without an effect: controllers that are concerned reconcile the cluster, and write nothing.
    world.patch(&name, serde_json::json!({"metadata": {"annotations": {"note": "x"}}})).await?;
    world.accepted(&unique("later")).await?;
    assert_eq!(count(&writes_for(&world, &name)?), before, "{:?}", writes_for(&world, &name)?);
    Ok(())
}

#[tokio::test]
async fn a_cluster_goes_without_a_single_failed_write() -> Result<()> {
    let world = world().await?;
    let name = unique("going");
    world.accepted(&name).await?;
    let before = writes_for(&world, &name)?;
    world.clusters().delete(&name, &kube::api::DeleteParams::default()).await?;
    world.wait_until_gone("managedcluster", "", &name).await?;
    let mut writes = writes_for(&world, &name)?;
    before.iter().for_each(|(write, times)| *writes.entry(write.clone()).or_default() -= times);
    let failed: Vec<_> = writes.iter().filter(|(write, times)| **times > 0 && !write.ends_with("200")).collect();
    assert!(failed.is_empty(), "{writes:?}");
    assert!(count(&writes) <= 8, "{writes:?}");
    Ok(())
}
