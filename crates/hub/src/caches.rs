//! The caches of the hub: one informer per kind, however many controllers ask for it.
//!
//! Kubernetes' own kinds are watched with a label selector, so that only objects of clusters are in memory, however many
//! others the API server has.

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
    multicluster::v1alpha1::ClusterProfile,
};
use ocm_runtime::{
    Cache, Informers,
    informer::{WatchFilter, Watchable},
    write,
};

use crate::error::{Error, Result};

pub(crate) fn clusters(informers: &Informers) -> Cache<ManagedCluster> {
    informers.all(WatchFilter::all())
}

pub(crate) fn sets(informers: &Informers) -> Cache<ManagedClusterSet> {
    informers.all(WatchFilter::all())
}

pub(crate) fn addons(informers: &Informers) -> Cache<ManagedClusterAddOn> {
    informers.all(WatchFilter::all())
}

pub(crate) fn set_bindings(informers: &Informers) -> Cache<ManagedClusterSetBinding> {
    informers.all(WatchFilter::all())
}

pub(crate) fn cluster_profiles(informers: &Informers) -> Cache<ClusterProfile> {
    informers.optional(
        WatchFilter::all(),
        "the feature gate ClusterProfile needs a CRD and rights: kubectl apply --server-side -f \
         crds/multicluster.x-k8s.io_clusterprofiles.yaml -f deploy/cluster-profile.yaml",
    )
}

pub(crate) fn cluster_roles(informers: &Informers) -> Cache<ClusterRole> {
    of_clusters(informers)
}

pub(crate) fn cluster_role_bindings(informers: &Informers) -> Cache<ClusterRoleBinding> {
    of_clusters(informers)
}

pub(crate) fn role_bindings(informers: &Informers) -> Cache<RoleBinding> {
    of_clusters(informers)
}

pub(crate) fn leases(informers: &Informers) -> Cache<Lease> {
    of_clusters(informers)
}

pub(crate) fn requests(informers: &Informers) -> Cache<CertificateSigningRequest> {
    of_clusters(informers)
}

/// Objects of clusters, without those of add-ons.
fn of_clusters<K: Watchable>(informers: &Informers) -> Cache<K> {
    informers.all(WatchFilter::labelled(format!("{},!{}", labels::CLUSTER_NAME, labels::ADDON_NAME)))
}

/// The cluster that an object belongs to according to its label; `None` if all clusters share the object.
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
