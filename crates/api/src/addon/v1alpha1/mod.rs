//! `addon.open-cluster-management.io/v1alpha1`, the version that is stored and that the hub works with.

mod config;
mod managed;
mod management;

pub use super::shared::*;
pub use config::{AddOnDeploymentConfig, AddOnTemplate};
pub use managed::{
    ConfigReference, ManagedClusterAddOn, ManagedClusterAddOnSpec, ManagedClusterAddOnStatus, RegistrationConfig,
};
pub use management::{
    ClusterManagementAddOn, ClusterManagementAddOnSpec, ClusterManagementAddOnStatus, ConfigCoordinates, ConfigMeta,
};
