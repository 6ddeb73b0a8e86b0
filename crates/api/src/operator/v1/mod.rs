//! `operator.open-cluster-management.io/v1`: [`ClusterManager`] on the hub, [`Klusterlet`] on the managed cluster.

mod cluster_manager;
mod deploy;
mod klusterlet;
mod registration;
mod registration_hub;
mod server;
mod shared;

pub use cluster_manager::{
    AddOnManagerConfiguration, ClusterManager, ClusterManagerSpec, ClusterManagerStatus, PlacementConfiguration,
    WorkConfiguration, WorkDriver,
};
pub use deploy::{
    BindConfiguration, ClusterManagerDeployOption, DefaultClusterManagerConfiguration, DefaultWebhookConfiguration,
    HostedClusterManagerConfiguration, HostedWebhookConfiguration,
};
pub use klusterlet::{
    HubApiServerHostAlias, Klusterlet, KlusterletDeployOption, KlusterletSpec, KlusterletStatus, ServerUrl,
    WorkAgentConfiguration,
};
pub use registration::{
    AddOnRegistrationDriver, AwsIrsa, BootstrapKubeConfigs, BootstrapKubeConfigsType, ClusterClaimConfiguration,
    KubeConfigSecret, LocalSecretsConfig, RegistrationConfiguration, RegistrationDriver, TokenConfig,
};
pub use registration_hub::{
    AwsIrsaConfig, CsrConfig, GrpcRegistrationConfig, ImporterConfiguration, RegistrationDriverHub,
    RegistrationHubConfiguration,
};
pub use server::{
    Endpoint, EndpointExposure, EndpointExposureType, EndpointProtocol, HostnameConfig, LoadBalancerConfig,
    RouteConfig, ServerConfiguration,
};
pub use shared::{
    AuthType, FeatureGate, FeatureGateMode, GenerationStatus, InstallMode, NodePlacement, RelatedResourceMeta,
    ResourceQosClass, ResourceRequirement,
};
