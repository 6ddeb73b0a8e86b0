//! `addon.open-cluster-management.io/v1beta1`, the version that the hub works with.

mod config;
mod managed;
mod management;

pub use super::shared::*;
pub use config::{AddOnDeploymentConfig, AddOnTemplate};
pub use managed::{
    AgentRegistrationType, ConfigReference, CustomSignerConfig, CustomSignerSubject, KubeClientConfig,
    KubeClientSubject, ManagedClusterAddOn, ManagedClusterAddOnSpec, ManagedClusterAddOnStatus, RegistrationConfig,
};
pub use management::{ClusterManagementAddOn, ClusterManagementAddOnSpec, ClusterManagementAddOnStatus};
