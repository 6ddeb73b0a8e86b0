//! [`ManagedClusterAddOn`]: an add-on on one cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AddOnConfig, AddOnMeta, ConfigGroupResource, ConfigSpecHash, HealthCheck, KubeClientDriver, ObjectReference,
};

/// An add-on on one cluster. Lives in the cluster's namespace on the hub; its name is the add-on's name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["spec"]))]
pub struct ManagedClusterAddOn {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// How the add-on is to run on the cluster.
    #[serde(default)]
    pub spec: ManagedClusterAddOnSpec,
    /// How it fares.
    #[serde(default)]
    pub status: Option<ManagedClusterAddOnStatus>,
}

kubernetes_kind!(
    ManagedClusterAddOn, spec: ManagedClusterAddOnSpec, status: status,
    group: "addon.open-cluster-management.io", version: "v1beta1", plural: "managedclusteraddons",
    scope: NamespaceResourceScope
);

/// How an add-on is to run on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterAddOnSpec {
    /// Configurations for this cluster, instead of those of the same kind from its placement or the defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configs: Vec<AddOnConfig>,
}

/// How an add-on fares on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterAddOnStatus {
    /// Conditions of the add-on, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_map")]
    pub conditions: Vec<Condition>,
    /// Objects that have to do with the add-on, for people to look at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_objects: Vec<ObjectReference>,
    /// What people see of the add-on.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub add_on_meta: AddOnMeta,
    /// Kinds of configuration that the add-on understands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["group", "resource"]))]
    pub supported_configs: Vec<ConfigGroupResource>,
    /// The configurations in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_references: Vec<ConfigReference>,
    /// Namespace of the agent on the managed cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Identities that the agent gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registrations: Vec<RegistrationConfig>,
    /// How the hub finds out whether the add-on is available.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub health_check: HealthCheck,
}

/// A configuration in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReference {
    /// API group of the configuration; empty for the core group.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = ""))]
    pub group: String,
    /// Resource of the configuration, plural and lower case.
    #[schemars(length(min = 1))]
    pub resource: String,
    /// Generation of the configuration that was last seen.
    #[serde(default)]
    pub last_observed_generation: i64,
    /// The configuration as the cluster is to get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
    /// The configuration that the cluster has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_config: Option<ConfigSpecHash>,
}

/// An identity that an add-on's agent gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationConfig {
    /// What the identity is for.
    #[serde(rename = "type")]
    pub type_: AgentRegistrationType,
    /// Settings for type `kubeClient`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_client: Option<KubeClientConfig>,
    /// Settings for type `customSigner`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_signer: Option<CustomSignerConfig>,
}

string_enum! {
    /// What an identity is for.
    pub enum AgentRegistrationType {
        /// The hub's API server.
        #[default]
        KubeClient = "kubeClient",
        /// A server that trusts another certificate authority.
        CustomSigner = "customSigner",
    }
}

/// An identity for the hub's API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeClientConfig {
    /// Who the agent is on the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<KubeClientSubject>,
    /// How the agent authenticates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<KubeClientDriver>,
}

/// Who an agent is to the hub's API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeClientSubject {
    /// The user.
    #[serde(default)]
    pub user: String,
    /// The user's groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// An identity from a signer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomSignerConfig {
    /// Name of the signer, such as `example.com/signer`.
    #[schemars(regex(pattern = crate::schema::SIGNER_NAME), length(min = 5, max = 571))]
    pub signer_name: String,
    /// Whom the certificate is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<CustomSignerSubject>,
}

/// Whom a certificate is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomSignerSubject {
    /// The user: common name of the certificate.
    #[serde(default)]
    pub user: String,
    /// The user's groups: organizations of the certificate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Organizational units of the certificate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub organization_units: Vec<String>,
}
