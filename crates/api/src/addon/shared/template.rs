//! Spec of an add-on template.

use k8s_openapi::api::rbac::v1::RoleRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::work::v1::ManifestWorkSpec;

/// What an add-on made from a template deploys, and what it may do on the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnTemplateSpec {
    /// Name of the add-on.
    pub addon_name: String,
    /// Spec of the ManifestWork that each cluster gets. Texts of the form `{{NAME}}` in it are replaced by variables.
    pub agent_spec: ManifestWorkSpec,
    /// Identities of the agent on the hub and elsewhere.
    #[serde(default, deserialize_with = "crate::serde_util::null_as_default")]
    pub registration: Vec<RegistrationSpec>,
}

/// An identity of an add-on's agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationSpec {
    /// What the identity is for.
    #[serde(rename = "type")]
    pub type_: RegistrationType,
    /// Settings for type `KubeClient`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_client: Option<KubeClientRegistrationConfig>,
    /// Settings for type `CustomSigner`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_signer: Option<CustomSignerRegistrationConfig>,
}

string_enum! {
    /// What an identity is for.
    pub enum RegistrationType {
        /// The hub's API server.
        #[default]
        KubeClient = "KubeClient",
        /// A server that trusts a certificate authority of the user's.
        CustomSigner = "CustomSigner",
    }
}

/// An identity for the hub's API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeClientRegistrationConfig {
    /// What the agent may do there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hub_permissions: Vec<HubPermissionConfig>,
}

/// A permission of the agent on the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubPermissionConfig {
    /// Where it holds.
    #[serde(rename = "type")]
    pub type_: HubPermissionsBindingType,
    /// The role, with type `CurrentCluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_cluster: Option<CurrentClusterBindingConfig>,
    /// Namespace and role, with type `SingleNamespace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_namespace: Option<SingleNamespaceBindingConfig>,
}

string_enum! {
    /// Where a permission holds.
    pub enum HubPermissionsBindingType {
        /// In the namespace of the agent's own cluster.
        #[default]
        CurrentCluster = "CurrentCluster",
        /// In one namespace, the same for the agents of all clusters.
        SingleNamespace = "SingleNamespace",
    }
}

/// A permission in the namespace of the agent's cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CurrentClusterBindingConfig {
    /// Name of the ClusterRole to bind there.
    pub cluster_role_name: String,
}

/// A permission in one namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SingleNamespaceBindingConfig {
    /// The namespace.
    pub namespace: String,
    /// The Role or ClusterRole to bind there.
    #[schemars(schema_with = "crate::schema::role_ref")]
    pub role_ref: RoleRef,
}

/// An identity that the add-on manager signs with a certificate authority of the user's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomSignerRegistrationConfig {
    /// Name of the signer, such as `example.com/signer`, which the agent's request names.
    #[schemars(regex(pattern = crate::schema::SIGNER_NAME), length(min = 5, max = 571))]
    pub signer_name: String,
    /// Whom the certificate is for; the agent's default identity when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// The certificate authority.
    #[serde(rename = "signingCA")]
    pub signing_ca: SigningCaRef,
}

/// A secret of type `kubernetes.io/tls` with a certificate authority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SigningCaRef {
    /// Its namespace; that of the add-on manager when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// Whom a certificate is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The user: common name of the certificate.
    #[serde(default)]
    pub user: String,
    /// The user's groups: organizations of the certificate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Organizational units of the certificate.
    #[serde(rename = "organizationUnit", default, skip_serializing_if = "Vec::is_empty")]
    pub organization_units: Vec<String>,
}
