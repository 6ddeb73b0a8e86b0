//! [`ManifestWork`] and its spec.

use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Manifest, ManifestConfigOption, ManifestWorkStatus};

/// Objects that the hub wants on a managed cluster. Lives in the cluster's namespace on the hub; the cluster's agent
/// applies the objects and reports how they fare.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct ManifestWork {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// The objects, and how to treat them.
    #[serde(default)]
    pub spec: ManifestWorkSpec,
    /// How the objects fare, written by the agent.
    #[serde(default)]
    pub status: Option<ManifestWorkStatus>,
}

kubernetes_kind!(
    ManifestWork, spec: ManifestWorkSpec, status: status,
    group: "work.open-cluster-management.io", version: "v1", plural: "manifestworks", scope: NamespaceResourceScope
);

/// Objects for a managed cluster, and how to treat them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkSpec {
    /// The objects.
    #[serde(default)]
    pub workload: ManifestsTemplate,
    /// What becomes of the objects when the work, or one of its manifests, is deleted. Absent means `Foreground`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,
    /// Settings for single objects of the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifest_configs: Vec<ManifestConfigOption>,
    /// Whose rights on the managed cluster limit what the work may do. Absent means the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ManifestWorkExecutor>,
}

/// A list of objects to apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestsTemplate {
    /// The objects, applied in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<Manifest>,
}

/// What becomes of applied objects when the work, or one of its manifests, is deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOption {
    /// Whether the objects go with the work.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = "Foreground"))]
    pub propagation_policy: PropagationPolicy,
    /// The objects to leave behind, with policy `SelectivelyOrphan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selectively_orphans: Option<SelectivelyOrphan>,
    /// Seconds after completion (condition `Complete`) until the hub may delete the work itself; 0 means at once, absent
    /// means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
}

string_enum! {
    /// Whether applied objects go with their work.
    pub enum PropagationPolicy {
        /// Every object is deleted, and the work is gone only when they are.
        #[default]
        Foreground = "Foreground",
        /// Every object stays.
        Orphan = "Orphan",
        /// Objects named in `selectivelyOrphans` stay, all others are deleted. For handing objects over from one work to
        /// another.
        SelectivelyOrphan = "SelectivelyOrphan",
    }
}

/// Objects to leave behind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectivelyOrphan {
    /// One rule per object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphaning_rules: Vec<OrphaningRule>,
}

/// Names an object of the workload to leave behind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrphaningRule {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Resource, plural and lower case, such as `deployments`.
    pub resource: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; empty when its kind has none. Written even when empty.
    #[serde(default)]
    pub namespace: String,
}

/// Whose rights on the managed cluster limit what a work may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkExecutor {
    /// The identity whose rights are checked before each write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<ManifestWorkExecutorSubject>,
}

/// An identity on the managed cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkExecutorSubject {
    /// What kind of identity.
    #[serde(rename = "type")]
    pub type_: ManifestWorkExecutorSubjectType,
    /// The service account, with type `ServiceAccount`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ManifestWorkSubjectServiceAccount>,
}

string_enum! {
    /// Kinds of identity an executor can be.
    pub enum ManifestWorkExecutorSubjectType {
        /// A service account of the managed cluster.
        #[default]
        ServiceAccount = "ServiceAccount",
    }
}

/// A service account of the managed cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkSubjectServiceAccount {
    /// Its namespace.
    #[schemars(schema_with = "crate::schema::dns_subdomain")]
    pub namespace: String,
    /// Its name.
    #[schemars(schema_with = "crate::schema::dns_subdomain")]
    pub name: String,
}
