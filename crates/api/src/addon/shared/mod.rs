//! What both versions have in common.

mod config;
mod deployment;
mod install;
mod managed;
mod template;

pub use config::{
    AddOnConfig, ConfigGroupResource, ConfigReferent, ConfigSpecHash, DefaultConfigReference, InstallConfigReference,
};
pub use deployment::{
    AddOnDeploymentConfigSpec, ContainerResourceRequirements, CustomizedVariable, ImageMirror, NodePlacement,
    ProxyConfig,
};
pub use install::{AddOnMeta, InstallProgression, InstallStrategy, InstallStrategyType, PlacementStrategy};
pub use managed::{HealthCheck, HealthCheckMode, KubeClientDriver, ObjectReference};
pub use template::{
    AddOnTemplateSpec, CurrentClusterBindingConfig, CustomSignerRegistrationConfig, HubPermissionConfig,
    HubPermissionsBindingType, KubeClientRegistrationConfig, RegistrationSpec, RegistrationType, SigningCaRef,
    SingleNamespaceBindingConfig, Subject,
};
