//! What to delete next.

use ocm_api::{cluster::v1::ManagedCluster, finalizers::CLUSTER_RESOURCE_CLEANUP};
use ocm_runtime::write;

use super::{
    GcResource,
    observe::{Item, Observed, RemainingResources},
};

/// What to write.
#[derive(Debug, PartialEq)]
pub(crate) enum Plan {
    /// Nothing.
    Leave,
    /// The cluster with the finalizer.
    AddFinalizer(Box<ManagedCluster>),
    /// Delete these.
    Delete { resource: GcResource, items: Vec<Item> },
    /// The cluster without the finalizer: nothing is left.
    RemoveFinalizer(Box<ManagedCluster>),
}

pub(super) fn plan(observed: &Observed) -> Plan {
    let cluster = observed.cluster.as_deref();
    match (&observed.remaining, cluster) {
        (Err(_), _) => Plan::Leave,
        (Ok(Some(remaining)), _) => next_of(remaining),
        (Ok(None), Some(cluster)) if write::is_deleting(cluster) => without_finalizer(cluster),
        (Ok(None), Some(cluster)) => with_finalizer(cluster),
        (Ok(None), None) => Plan::Leave,
    }
}

/// Those of the lowest priority, also while others of it are still going: what comes later must not go before them.
fn next_of(remaining: &RemainingResources) -> Plan {
    let lowest = remaining.items.iter().map(|item| item.priority).min();
    let is_next = |item: &&Item| Some(item.priority) == lowest && !item.is_deleting;
    Plan::Delete {
        resource: remaining.resource.clone(),
        items: remaining.items.iter().filter(is_next).cloned().collect(),
    }
}

fn with_finalizer(cluster: &ManagedCluster) -> Plan {
    let new = write::with_finalizer(cluster, CLUSTER_RESOURCE_CLEANUP);
    new.map_or(Plan::Leave, |new| Plan::AddFinalizer(Box::new(new)))
}

fn without_finalizer(cluster: &ManagedCluster) -> Plan {
    let new = write::without_finalizer(cluster, CLUSTER_RESOURCE_CLEANUP);
    new.map_or(Plan::Leave, |new| Plan::RemoveFinalizer(Box::new(new)))
}
