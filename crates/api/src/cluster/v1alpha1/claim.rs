//! [`ClusterClaim`]: a fact that a cluster reports about itself.

use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fact that a managed cluster claims about itself, such as `id.k8s.io`. Lives on the managed cluster; the agent copies
/// it into the status of the ManagedCluster on the hub.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct ClusterClaim {
    /// Standard object metadata; the name is the claim's name.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// The fact.
    #[serde(default)]
    pub spec: ClusterClaimSpec,
}

kubernetes_kind!(
    ClusterClaim, spec: ClusterClaimSpec,
    group: "cluster.open-cluster-management.io", version: "v1alpha1", plural: "clusterclaims", scope: ClusterResourceScope
);

/// The content of a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClaimSpec {
    /// The value; its meaning is the claim's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub value: Option<String>,
}
