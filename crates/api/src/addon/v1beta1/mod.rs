//! `addon.open-cluster-management.io/v1beta1`, the newest version, which garbage collection and the clean-up of
//! clusters ask for. The hub works with v1alpha1.

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
