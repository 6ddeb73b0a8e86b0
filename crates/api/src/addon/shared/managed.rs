//! Parts of an add-on on one cluster that both versions share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object that has to do with an add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// API group of the object; empty for the core group.
    pub group: String,
    /// Resource of the object, plural and lower case.
    pub resource: String,
    /// Namespace of the object; absent when its kind has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

/// How the hub finds out whether an add-on is available.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheck {
    /// The way: `Lease` (default) or `Customized`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "Lease"))]
    pub mode: Option<HealthCheckMode>,
}

string_enum! {
    /// Ways to find out whether an add-on is available.
    pub enum HealthCheckMode {
        /// Its agent renews a lease on the managed cluster.
        #[default]
        Lease = "Lease",
        /// Its manager on the hub sets the condition.
        Customized = "Customized",
    }
}

string_enum! {
    /// How an agent authenticates to the hub's API server.
    pub enum KubeClientDriver {
        /// With a certificate that it asks for in a certificate signing request.
        #[default]
        Csr = "csr",
        /// With the token of a service account on the hub.
        Token = "token",
    }
}
