//! A kind of object that is deleted with its cluster, as `group/version/resource`.

use std::{fmt, str::FromStr};

use kube::api::ApiResource;

/// What is deleted with a cluster unless configured otherwise, in this order.
pub const DEFAULT_GC_RESOURCES: [&str; 2] = [
    "addon.open-cluster-management.io/v1beta1/managedclusteraddons",
    "work.open-cluster-management.io/v1/manifestworks",
];

/// A kind of namespaced object, named by group, version and plural.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GcResource {
    /// API group, such as `work.open-cluster-management.io`.
    pub group: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Plural in lower case, such as `manifestworks`.
    pub resource: String,
}

/// Not of the form `group/version/resource`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to read {0:?} as group/version/resource, such as work.open-cluster-management.io/v1/manifestworks")]
pub struct GcResourceError(String);

impl GcResource {
    /// What is deleted with a cluster unless configured otherwise.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        DEFAULT_GC_RESOURCES.iter().filter_map(|text| text.parse().ok()).collect()
    }

    pub(super) fn api(&self) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: format!("{}/{}", self.group, self.version),
            // Requests for metadata name the plural only.
            kind: String::new(),
            plural: self.resource.clone(),
        }
    }
}

impl FromStr for GcResource {
    type Err = GcResourceError;

    fn from_str(text: &str) -> Result<Self, GcResourceError> {
        let parts: Vec<_> = text.trim().split('/').map(str::to_owned).collect();
        match <[String; 3]>::try_from(parts) {
            Ok(parts) if parts.iter().all(|part| !part.is_empty()) => {
                let [group, version, resource] = parts;
                Ok(Self { group, version, resource })
            }
            _ => Err(GcResourceError(text.into())),
        }
    }
}

impl fmt::Display for GcResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.group, self.version, self.resource)
    }
}
