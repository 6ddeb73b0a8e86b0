//! `cluster.open-cluster-management.io/v1`: [`ManagedCluster`].

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cluster that has asked to join the hub, or has joined it. Cluster-scoped; its name is the cluster's name and, once
/// accepted, the name of the cluster's namespace on the hub.
///
/// Joining takes consent from both sides: the agent creates this object and a certificate signing request; an admin of
/// the hub approves the request and sets `spec.hubAcceptsClient`; the agent then keeps status and lease up to date.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct ManagedCluster {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// What the hub's admins and the agent want of the cluster.
    #[serde(default)]
    pub spec: ManagedClusterSpec,
    /// What hub and agent have seen of the cluster.
    #[serde(default)]
    pub status: Option<ManagedClusterStatus>,
}

kubernetes_kind!(
    ManagedCluster, spec: ManagedClusterSpec, status: status,
    group: "cluster.open-cluster-management.io", version: "v1", plural: "managedclusters", scope: ClusterResourceScope
);

/// What the hub's admins and the agent want of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSpec {
    /// Ways to reach the cluster's API server from the hub. Empty when the hub cannot reach it, which is normal: agents
    /// dial out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_cluster_client_configs: Vec<ClientConfig>,
    /// Whether the hub lets the cluster in. Setting it to true takes permission to `update` the virtual resource
    /// `managedclusters/accept`. True makes the hub create the cluster's namespace and roles; false takes the agent's
    /// rights away.
    #[serde(default)]
    pub hub_accepts_client: bool,
    /// How often, in seconds, the agent renews its lease. The hub calls the cluster unreachable after five times as
    /// long without a renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = 60))]
    pub lease_duration_seconds: Option<i32>,
    /// Reasons for placements to avoid the cluster, unless they tolerate them. The hub owns the taints `unavailable`
    /// and `unreachable`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// One way to reach a cluster's API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    /// Address of the API server, `https` only.
    pub url: String,
    /// Certificates to trust, PEM; the system's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::bytes")]
    pub ca_bundle: Option<ByteString>,
}

/// A reason for placements to avoid a cluster, unless they tolerate it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Names the reason: a name with an optional DNS prefix, such as `bar` or `foo.example.com/bar`.
    #[schemars(schema_with = "crate::schema::taint_key")]
    pub key: String,
    /// Detail that tolerations can ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub value: Option<String>,
    /// What happens to placements without a toleration.
    pub effect: TaintEffect,
    /// When the taint was added; the hub's webhook sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time", extend("nullable" = true))]
    pub time_added: Option<Time>,
}

string_enum! {
    /// What a taint does to placements that do not tolerate it.
    pub enum TaintEffect {
        /// The cluster is not selected, and no longer selected where it was.
        #[default]
        NoSelect = "NoSelect",
        /// The cluster is selected only when no other will do.
        PreferNoSelect = "PreferNoSelect",
        /// The cluster is not selected; placements that had selected it keep it.
        NoSelectIfNew = "NoSelectIfNew",
    }
}

/// What hub and agent have seen of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterStatus {
    /// The cluster's conditions, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_map")]
    pub conditions: Vec<Condition>,
    /// Resources of all nodes added up, by resource name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub capacity: BTreeMap<String, Quantity>,
    /// Resources of all nodes that pods may use, added up, by resource name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// The cluster's software version.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub version: ManagedClusterVersion,
    /// Facts the cluster claims about itself, such as its id or its Kubernetes version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_claims: Vec<ManagedClusterClaim>,
    /// Namespaces on the cluster that belong to the cluster sets it is a member of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["clusterSet", "name"]))]
    pub managed_namespaces: Vec<ClusterSetManagedNamespaceConfig>,
}

/// Versions of what runs in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterVersion {
    /// Version of the cluster's API server, such as `v1.36.3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
}

/// A ClusterClaim of the managed cluster, as reported to the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = []))]
pub struct ManagedClusterClaim {
    /// Name of the claim.
    #[serde(default)]
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Value of the claim; its meaning is the claim's own.
    #[serde(default)]
    #[schemars(length(min = 1, max = 1024))]
    pub value: String,
}

/// A namespace on the managed cluster that a cluster set wants there, and how it fares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSetManagedNamespaceConfig {
    /// The cluster set that wants the namespace.
    pub cluster_set: String,
    /// The namespace.
    #[schemars(schema_with = "crate::schema::namespace_name")]
    pub name: String,
    /// The namespace's conditions, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_map")]
    pub conditions: Vec<Condition>,
}
