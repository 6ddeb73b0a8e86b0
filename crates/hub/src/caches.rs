//! The caches of the hub: one informer per kind, however many controllers ask for it.
//!
//! Kubernetes' own kinds are watched with a label selector, so that the hub holds only what it keeps for clusters,
//! however much else is on the API server.

use k8s_openapi::api::{
    certificates::v1::CertificateSigningRequest,
    coordination::v1::Lease,
    rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding},
};
use kube::{Resource, ResourceExt as _};
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    cluster::{
        v1::ManagedCluster,
        v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
    },
    labels,
};
use ocm_runtime::{
    Cache, Informers,
    informer::{WatchFilter, Watchable},
    write,
};

use crate::error::{Error, Result};

pub(crate) fn clusters(watches: &Informers) -> Cache<ManagedCluster> {
    watches.all(WatchFilter::all())
}

pub(crate) fn sets(watches: &Informers) -> Cache<ManagedClusterSet> {
    watches.all(WatchFilter::all())
}

pub(crate) fn addons(watches: &Informers) -> Cache<ManagedClusterAddOn> {
    watches.all(WatchFilter::all())
}

pub(crate) fn set_bindings(watches: &Informers) -> Cache<ManagedClusterSetBinding> {
    watches.all(WatchFilter::all())
}

pub(crate) fn cluster_roles(watches: &Informers) -> Cache<ClusterRole> {
    of_clusters(watches)
}

pub(crate) fn cluster_role_bindings(watches: &Informers) -> Cache<ClusterRoleBinding> {
    of_clusters(watches)
}

pub(crate) fn role_bindings(watches: &Informers) -> Cache<RoleBinding> {
    of_clusters(watches)
}

pub(crate) fn leases(watches: &Informers) -> Cache<Lease> {
    of_clusters(watches)
}

pub(crate) fn requests(watches: &Informers) -> Cache<CertificateSigningRequest> {
    of_clusters(watches)
}

/// What belongs to clusters, and not to their add-ons.
fn of_clusters<K: Watchable>(watches: &Informers) -> Cache<K> {
    watches.all(WatchFilter::labelled(format!("{},!{}", labels::CLUSTER_NAME, labels::ADDON_NAME)))
}

/// The cluster that an object belongs to, as its label says; `None` for what all clusters share.
pub(crate) fn cluster_of<K: Resource>(object: &K) -> Option<String> {
    object.labels().get(labels::CLUSTER_NAME).filter(|name| !name.is_empty()).cloned()
}

/// Checks that an object which the cache does not show may be adopted for a cluster. Only an object that lost its label may:
/// one that belongs to another cluster, or to all of them, stays as it is.
pub(crate) fn check_adoptable<K: Resource<DynamicType = ()>>(object: &K, cluster: &str) -> Result<()> {
    match object.labels().get(labels::CLUSTER_NAME) {
        Some(owner) if owner != cluster => Err(Error::Foreign { noun: write::describe(object), owner: owner.clone() }),
        _ => Ok(()),
    }
}
