//! Every kind in every version, by the kind and API version of an object.

use k8s_openapi::Resource;
use ocm_api::about::v1alpha1::ClusterProperty;
use ocm_api::addon::{v1alpha1, v1beta1};
use ocm_api::cluster::v1::ManagedCluster;
use ocm_api::cluster::v1alpha1::{AddOnPlacementScore, ClusterClaim};
use ocm_api::cluster::v1beta1::{Placement, PlacementDecision};
use ocm_api::cluster::v1beta2::{ManagedClusterSet, ManagedClusterSetBinding};
use ocm_api::multicluster::v1alpha1::ClusterProfile;
use ocm_api::operator::v1::{ClusterManager, Klusterlet};
use ocm_api::work::v1::{AppliedManifestWork, ManifestWork};
use ocm_api::work::v1alpha1::ManifestWorkReplicaSet;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A kind in one version.
pub(crate) struct Kind {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// Reads an object into its type and writes it again.
    pub(crate) again: fn(&Value) -> Result<Value, serde_json::Error>,
}

/// Every kind in every version.
pub(crate) fn all() -> Vec<Kind> {
    vec![
        kind::<ManagedCluster>(),
        kind::<ManagedClusterSet>(),
        kind::<ManagedClusterSetBinding>(),
        kind::<Placement>(),
        kind::<PlacementDecision>(),
        kind::<AddOnPlacementScore>(),
        kind::<ClusterClaim>(),
        kind::<ManifestWork>(),
        kind::<ManifestWorkReplicaSet>(),
        kind::<AppliedManifestWork>(),
        kind::<v1alpha1::ClusterManagementAddOn>(),
        kind::<v1beta1::ClusterManagementAddOn>(),
        kind::<v1alpha1::ManagedClusterAddOn>(),
        kind::<v1beta1::ManagedClusterAddOn>(),
        kind::<v1alpha1::AddOnDeploymentConfig>(),
        kind::<v1beta1::AddOnDeploymentConfig>(),
        kind::<v1alpha1::AddOnTemplate>(),
        kind::<v1beta1::AddOnTemplate>(),
        kind::<ClusterManager>(),
        kind::<Klusterlet>(),
        kind::<ClusterProfile>(),
        kind::<ClusterProperty>(),
    ]
}

/// The kind of an object.
pub(crate) fn of(object: &Value) -> Kind {
    let found = all().into_iter().find(|kind| object["apiVersion"] == kind.api_version && object["kind"] == kind.kind);
    found.unwrap_or_else(|| panic!("no kind {} {}", object["apiVersion"], object["kind"]))
}

fn kind<K: Resource + Serialize + DeserializeOwned>() -> Kind {
    Kind {
        api_version: K::API_VERSION,
        kind: K::KIND,
        again: |value| serde_json::to_value(serde_json::from_value::<K>(value.clone())?),
    }
}
