//! `multicluster.x-k8s.io/v1alpha1`: [`ClusterProfile`], of Kubernetes' multicluster interest group.

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cluster as tools of other projects see it. Behind a feature gate, the hub keeps one for each cluster in the
/// namespaces that the cluster's set is bound to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["spec"]))]
pub struct ClusterProfile {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// Which cluster, and who looks after it.
    #[serde(default)]
    pub spec: ClusterProfileSpec,
    /// What is known of the cluster.
    #[serde(default)]
    pub status: Option<ClusterProfileStatus>,
}

kubernetes_kind!(
    ClusterProfile, spec: ClusterProfileSpec, status: status,
    group: "multicluster.x-k8s.io", version: "v1alpha1", plural: "clusterprofiles", scope: NamespaceResourceScope
);

/// Which cluster, and who looks after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterProfileSpec {
    /// The cluster's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Who looks after the cluster; cannot be changed.
    pub cluster_manager: ClusterManagerRef,
}

/// A manager of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{"message": "ClusterManager is immutable", "rule": "self == oldSelf"}]))]
pub struct ClusterManagerRef {
    /// Its name; `open-cluster-management` for this one.
    pub name: String,
}

/// What is known of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterProfileStatus {
    /// Conditions of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_list")]
    pub conditions: Vec<Condition>,
    /// The cluster's software version.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub version: ClusterVersion,
    /// Facts about the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
    /// Ways to reach the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_providers: Vec<AccessProvider>,
    /// Deprecated: use `accessProviders`, which go first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credential_providers: Vec<AccessProvider>,
}

/// Versions of what runs in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVersion {
    /// Version of the cluster's API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
}

/// A fact about a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Property {
    /// Name of the fact.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its value.
    #[schemars(length(min = 1, max = 1024))]
    pub value: String,
    /// When it was last seen on the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub last_observed_time: Option<Time>,
}

/// A way to reach a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessProvider {
    /// Name of the provider, by which tools know what credentials to use.
    pub name: String,
    /// Address of the cluster, as in a kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
}

/// Address of a cluster, as in a kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Cluster {
    /// URL of the API server.
    pub server: String,
    /// Name that the server's certificate must have; the URL's host when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_server_name: Option<String>,
    /// Whether any certificate of the server is accepted; insecure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure_skip_tls_verify: Option<bool>,
    /// Path to a file with certificates to trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_authority: Option<String>,
    /// Certificates to trust, PEM; goes before `certificate-authority`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::bytes")]
    pub certificate_authority_data: Option<ByteString>,
    /// URL of a proxy to go through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_url: Option<String>,
    /// Whether answers are asked for without compression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_compression: Option<bool>,
    /// More settings, for tools that know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<NamedExtension>,
}

/// Settings for a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedExtension {
    /// Name of the settings.
    pub name: String,
    /// The settings.
    #[schemars(schema_with = "crate::schema::any_object")]
    pub extension: serde_json::Value,
}
