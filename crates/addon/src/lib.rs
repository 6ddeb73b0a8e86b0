//! Writing add-ons for [Open Cluster Management](https://open-cluster-management.io).
//!
//! An add-on has two sides. On the hub its *manager* says what is deployed on each cluster, and who its agents are; on
//! each managed cluster its *agent* does the work, with an identity of its own on the hub, and says that it is well. This
//! is a whole one:
//!
//! ```no_run
#![doc = include_str!("../examples/hello.rs")]
//! ```
//!
//! # From here to a cluster
//!
//! 1. Create a ClusterManagementAddOn `hello` on the hub. It may install the add-on by itself on the clusters that a
//!    Placement chooses (`spec.installStrategy`).
//! 2. Start the manager: `hello manager --kubeconfig hub.kubeconfig`, or in a pod without arguments.
//! 3. Create a ManagedClusterAddOn `hello` in the namespace of a cluster, unless the hub does it.
//!
//! The manager makes the works that bring the agent to the cluster, writes into the ManagedClusterAddOn's status whom the
//! agent is to be, gives that identity its rights, and approves its certificate. The cluster's own agent applies the works
//! and keeps the certificate in the secret that the agent mounts. The agent renews its lease, and the hub says
//! `Available`. When the ManagedClusterAddOn is deleted, all of that goes. `examples/helloworld` is such an add-on.
//!
//! | | |
//! | --- | --- |
//! | [`AgentAddon`] | what an author implements |
//! | [`AddonManager`] | what runs on the hub |
//! | [`Registration`], [`PermissionBuilder`] | the agent's identity, and what it may do on the hub |
//! | [`LeaseUpdater`] | how the agent says that it is well |
//! | [`manifests`] | making manifests from typed objects and YAML |
//! | [`command`] | command lines of manager and agent |
//!
//! The crates [`kube`], [`k8s_openapi`], [`clap`] and [`api`] (the types of OCM) are those this one is built with; use
//! these versions, since there can be only one of each in a program. Module [`runtime`] has what this crate is written with
//! itself and an agent may want as well: watches and controllers.
//!
//! # What the status says
//!
//! | condition of the ManagedClusterAddOn | status, reason | |
//! | --- | --- | --- |
//! | `RegistrationApplied` | True, `SetPermissionApplied` or `NilRegistration` | the agent has its rights, or needs none |
//! | | False, `SetPermissionFailed` | its rights could not be set up; the message says why |
//! | | False, `PermissionConfigPending` | nobody knows yet whom the rights are for, or it cannot be whom the status names |
//! | `ManifestApplied` | True, `AddonManifestApplied` | all objects are on the cluster |
//! | | False, `AddonManifestAppliedFailed` | the cluster's agent could not apply them |
//! | | False, `ManifestWorkApplyFailed` | [`AgentAddon::manifests`] failed, what it returned makes no work, or a work that is being deleted is waited for |
//!
//! Not built yet, and refused by name in these conditions: agents hosted on another cluster, and pre-delete hooks.
//! Configurations, Helm charts, templates and custom signers are not part of this version.
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
//! | | `managedclusteraddons/finalizers` | update | owning what goes with the add-on |
//! | `work.open-cluster-management.io` | `manifestworks` | get, list, watch, create, patch, delete | |
//! | `rbac.authorization.k8s.io` | `roles`, `rolebindings` | get, list, create, patch, delete | [`PermissionBuilder`] |
//! | `certificates.k8s.io` | `certificatesigningrequests` | get, list, watch | [`Registration`] |
//! | | `certificatesigningrequests/approval` | patch | |
//! | | `signers`, only `kubernetes.io/kube-apiserver-client` | approve | |
//! | `authentication.k8s.io` | `tokenreviews` | create | who may see `/metrics` |
//! | `authorization.k8s.io` | `subjectaccessreviews` | create | |
//!
//! Besides, it needs all that it grants to agents: Kubernetes lets nobody grant a right that he does not hold. With
//! `--enable-leader-election`, in its own namespace: create leases, and get, list, watch and update the one that is named
//! like its component.

#![warn(missing_docs)]

mod account;
mod agent;
pub mod command;
mod error;
mod lease;
mod manager;
pub mod manifests;
mod owner;
mod registration;

pub use clap;
pub use k8s_openapi;
pub use kube;
pub use ocm_api as api;
pub use ocm_api::work::v1::Manifest;

#[cfg(fuzzing)]
pub use crate::manager::fuzzing;
pub use crate::{
    agent::{AgentAddon, AgentAddonOptions, HealthProber, Installation},
    error::{AddonError, PermissionError},
    lease::LeaseUpdater,
    manager::{AddAgentError, AddonManager, Trigger},
    registration::{Grant, Identity, PermissionBuilder, PermissionConfig, Registration, Request},
};

/// What this crate's own controllers are written with: shared watches, a work queue with retries, and writes that carry
/// the version they were decided on.
pub mod runtime {
    pub use ocm_runtime::{
        Cache, Change, Class, Classified, Clock, Context, Controller, ControllerBuilder, Error, Informers, ObjectKey,
        Queue, Requeue, Result, ResultExt, StatusController, conditions, error::chain, error::found, informer::View,
        informer::WatchFilter, write,
    };
}
