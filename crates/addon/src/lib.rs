//! Writing add-ons for [Open Cluster Management](https://open-cluster-management.io).
//!
//! An add-on has two sides. On the hub its *manager* deploys its agent to each cluster and gives it an identity; on each
//! managed cluster its *agent* does the work, with that identity on the hub, and reports its health. This is a whole one:
//!
//! ```no_run
#![doc = include_str!("../examples/hello.rs")]
//! ```
//!
//! # From here to a cluster
//!
//! 1. Create a ClusterManagementAddOn `hello` on the hub. It may install the add-on on the clusters that a Placement
//!    chooses (`spec.installStrategy`).
//! 2. Start the manager: `hello manager --kubeconfig hub.kubeconfig`, or in a pod without arguments.
//! 3. Create a ManagedClusterAddOn `hello` in the namespace of a cluster, unless the hub does it.
//!
//! The manager creates the ManifestWorks that deploy the agent on the cluster, writes the agent's identity into the
//! ManagedClusterAddOn's status, sets up its permissions, and approves its certificate. The cluster's own agent applies the
//! works and keeps the certificate in the secret that the add-on's agent mounts. That agent renews its lease, and the hub
//! reports it as `Available`. All of that is deleted with the ManagedClusterAddOn. `examples/helloworld` is such an add-on.
//!
//! | | |
//! | --- | --- |
//! | [`AgentAddon`] | what an author implements; [`DynAgentAddon`] for add-ons in a box |
//! | [`AddonManager`] | what runs on the hub, alone or as part of another program |
//! | [`Registration`], [`CsrApprover`], [`CsrSigner`] | the agent's identities |
//! | [`PermissionBuilder`], [`PermissionConfig`] | what the agent may do on the hub |
//! | [`SetupContext`], [`DynamicInformer`], [`Trigger`] | informers of configurations, and reconciling after their changes |
//! | [`LeaseUpdater`] | how the agent reports its health |
//! | [`manifests`] | making manifests from typed objects and YAML |
//! | [`command`] | command lines of manager and agent |
//!
//! The crates [`kube`], [`k8s_openapi`], [`clap`] and [`api`] (the types of OCM) are those this one is built with; use
//! these versions, since there can be only one of each in a program. Authors see add-ons in version v1beta1. Module
//! [`runtime`] has what this crate is written with itself and an agent may want as well: informers and controllers.
//!
//! # From Go
//!
//! Items are found by their Go names in the search of this documentation.
//!
//! | addon-framework | here |
//! | --- | --- |
//! | `agent.AgentAddon`, `Manifests`, `GetAgentAddonOptions` | [`AgentAddon`], [`AgentAddon::manifests`], [`AgentAddon::options`] |
//! | `agent.AgentAddonOptions` | [`AgentAddonOptions`] |
//! | `AgentInstallNamespace` | [`AgentAddon::install_namespace`] |
//! | `AgentDeployTriggerClusterFilter` | [`AgentAddonOptions::deploy_trigger_cluster_filter`] |
//! | `ManifestConfigs` | [`AgentAddonOptions::manifest_configs`] |
//! | `HealthProber`, types `Lease` and `None` | [`HealthProber`] |
//! | `RegistrationOption.Configurations` | [`AgentAddon::registrations`] |
//! | `KubeClientRegistration`, `KubeClientSignerConfigurations` | [`Registration::kube_client`] |
//! | `CustomSignerRegistration` | [`Registration::custom_signer`] |
//! | `CSRApproveCheck`, `UnionCSRApprover` | [`Registration::approve_if`], [`CsrApprover`] |
//! | `DefaultCSRApprover` | always applied; [`Registration::approve_by_hand`] switches approval off |
//! | `CSRSign` | [`Registration::sign_with`], [`CsrSigner`] |
//! | `PermissionConfig`, `SubjectNotReadyError` | [`PermissionConfig`], [`PermissionError::SubjectNotReady`] |
//! | `NewRBACPermissionConfigBuilder`, `BindKubeClientRole` | [`PermissionBuilder`], [`PermissionBuilder::bind_role`] |
//! | `DefaultUser`, `DefaultGroups` | [`Identity::of_agent`] |
//! | `addonmanager.New`, `AddAgent`, `Start`, `Trigger` | [`AddonManager::new`], [`AddonManager::add_agent`], [`AddonManager::run`], [`Trigger::reconcile`] |
//! | `SupportedConfigGVRs` | [`SetupContext::watch`], for configurations that the add-on reads itself |
//! | `lease.NewLeaseUpdater`, `WithHubLeaseConfig` | [`LeaseUpdater::new`], [`LeaseUpdater::hub_fallback`] |
//! | `factory.NewControllerCommandConfig` | [`command::ManagerArgs`], [`command::AgentArgs`] |
//!
//! Not built yet: `HostedModeEnabled`, pre-delete hooks, the other health probers, `addonfactory` (Helm charts and
//! templates), and values from AddOnDeploymentConfigs. An add-on that asks for the first two is refused by name in its
//! conditions.
//!
//! # Conditions
//!
//! | condition of the ManagedClusterAddOn | status, reason | |
//! | --- | --- | --- |
//! | `RegistrationApplied` | True, `SetPermissionApplied` or `NilRegistration` | the agent has its identities and permissions, or needs none |
//! | | False, `SetPermissionFailed` | they could not be set up; the message gives the reason |
//! | | False, `PermissionConfigPending` | the agent's user is not known yet, the status names another one than the agent can be, or the hub does not accept the cluster |
//! | `ManifestApplied` | True, `AddonManifestApplied` | all objects are on the cluster |
//! | | False, `AddonManifestAppliedFailed` | the cluster's agent could not apply them |
//! | | False, `ManifestWorkApplyFailed` | [`AgentAddon::manifests`] failed, its manifests make no ManifestWork, or the manager waits until a ManifestWork is deleted |
//!
//! # Rights of the manager
//!
//! The manager's service account needs these on the hub, cluster-wide. `examples/helloworld/deploy/hub.yaml` has them as
//! a ClusterRole.
//!
//! | API group | resources | verbs | for |
//! | --- | --- | --- | --- |
//! | `cluster.open-cluster-management.io` | `managedclusters` | get, list, watch | |
//! | `addon.open-cluster-management.io` | `managedclusteraddons` | get, list, watch, patch | finalizers of former managers |
//! | | `managedclusteraddons/status` | patch | |
//! | | `managedclusteraddons/finalizers` | update | owner references to the add-on |
//! | `work.open-cluster-management.io` | `manifestworks` | get, list, watch, create, patch, delete | |
//! | `rbac.authorization.k8s.io` | `roles`, `rolebindings` | get, list, create, patch, delete | [`PermissionBuilder`] |
//! | `certificates.k8s.io` | `certificatesigningrequests` | get, list, watch | [`Registration`] |
//! | | `certificatesigningrequests/approval` | patch | |
//! | | `signers`, only `kubernetes.io/kube-apiserver-client` | approve | |
//! | | the same for a custom signer, and sign | | [`Registration::custom_signer`] |
//! | | `certificatesigningrequests/status` | patch | [`Registration::sign_with`] |
//! | `authentication.k8s.io` | `tokenreviews` | create | access to `/metrics` |
//! | `authorization.k8s.io` | `subjectaccessreviews` | create | |
//!
//! It also needs all rights that it grants to agents: Kubernetes lets nobody grant permissions that they do not have. With
//! `--enable-leader-election`, in its own namespace: create leases, and get, list, watch and update the one that is named
//! like its component.

#![warn(missing_docs)]

mod account;
mod agent;
mod author;
pub mod command;
mod error;
mod informer;
mod lease;
mod manager;
pub mod manifests;
mod owner;
mod registration;
mod setup;

pub use clap;
pub use futures::future::BoxFuture;
pub use k8s_openapi;
pub use kube;
pub use ocm_api as api;
pub use ocm_api::work::v1::Manifest;

#[cfg(fuzzing)]
pub use crate::manager::fuzzing;
pub use crate::{
    agent::{AgentAddon, AgentAddonOptions, DynAgentAddon, HealthProber, Installation},
    error::{AddonError, PermissionError},
    informer::DynamicInformer,
    lease::LeaseUpdater,
    manager::{AddAgentError, AddonManager, Trigger},
    registration::{
        CertificateRequest, CsrApprover, CsrSigner, Identity, PermissionBuilder, PermissionConfig, PermissionContext,
        Registration,
    },
    setup::SetupContext,
};

/// What this crate's own controllers are written with: shared informers, a work queue with retries, and writes that carry
/// the resource version they were decided on. It follows the needs of this crate, and may change more often than the rest.
pub mod runtime {
    pub use ocm_runtime::{
        Cache, Change, Class, Classified, Clock, Context, Controller, ControllerBuilder, Error, Informers, ObjectKey,
        Queue, Requeue, Result, ResultExt, StatusController, conditions, error::chain, error::found, informer::View,
        informer::WatchFilter, write,
    };
}
