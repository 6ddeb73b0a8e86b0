//! [`AppliedManifestWork`]: the agent's record of what it applied.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The record, on the managed cluster, of the objects one ManifestWork put there. Cluster-scoped; its name is
/// `<hub hash>-<work name>`. Applied objects name it as owner, so deleting it deletes them, also after the agent is gone.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct AppliedManifestWork {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// Which work of which hub.
    #[serde(default)]
    pub spec: AppliedManifestWorkSpec,
    /// What was applied.
    #[serde(default)]
    pub status: Option<AppliedManifestWorkStatus>,
}

kubernetes_kind!(
    AppliedManifestWork, spec: AppliedManifestWorkSpec, status: status,
    group: "work.open-cluster-management.io", version: "v1", plural: "appliedmanifestworks", scope: ClusterResourceScope
);

/// Which work of which hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkSpec {
    /// Which hub: hex SHA-256 of the host of its API server.
    pub hub_hash: String,
    /// Which agent looks after the record; empty in records of old agents.
    #[serde(rename = "agentID", default, skip_serializing_if = "String::is_empty")]
    pub agent_id: String,
    /// Name of the ManifestWork on the hub.
    pub manifest_work_name: String,
}

/// What was applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkStatus {
    /// The objects that exist because of the work. An object taken out of the work stays listed until it is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied_resources: Vec<AppliedManifestResourceMeta>,
    /// Since when the work is missing on the hub, or the agent belongs to another hub. After a grace period the record and
    /// its objects are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub eviction_start_time: Option<Time>,
}

/// An object that was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestResourceMeta {
    /// API group; empty for the core group. Written even when empty.
    #[serde(default)]
    pub group: String,
    /// API version it was applied with.
    pub version: String,
    /// Resource, plural and lower case, such as `deployments`.
    pub resource: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; empty when its kind has none. Written even when empty.
    #[serde(default)]
    pub namespace: String,
    /// UID of the object, to tell it from a later one of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}
