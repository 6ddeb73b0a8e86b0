//! Writing add-ons for [Open Cluster Management](https://open-cluster-management.io).
//!
//! An add-on has two sides. On the hub its *manager* says what is deployed on each cluster, and who its agents are; on
//! each managed cluster its *agent* does the work, with an identity of its own on the hub, and says that it is well. This
//! is a whole one:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use clap::Parser;
//! use ocm_addon::command::{AgentArgs, ManagerArgs};
//! use ocm_addon::{AddonError, AgentAddon, AgentAddonOptions, Installation, Manifest, PermissionBuilder, Registration};
//! use serde_json::json;
//!
//! struct HelloAddon;
//!
//! impl AgentAddon for HelloAddon {
//!     fn options(&self) -> AgentAddonOptions {
//!         // In the cluster's namespace on the hub, the agent may read ConfigMaps and nothing else.
//!         let rules = vec![PermissionBuilder::rule("", &["configmaps"], &["get", "list", "watch"])];
//!         let permissions = PermissionBuilder::new().bind_role("open-cluster-management:hello:agent", rules);
//!         AgentAddonOptions::new("hello").registration(Registration::kube_client("hello-agent").permissions(permissions))
//!     }
//!
//!     async fn manifests(&self, on: &Installation<'_>) -> Result<Vec<Manifest>, AddonError> {
//!         let (metadata, labels) = (json!({"name": "hello-agent", "namespace": on.namespace}), json!({"app": "hello-agent"}));
//!         let args = ["agent".into(), "--hub-kubeconfig=/hub/kubeconfig".into(), format!("--cluster-name={}", on.cluster_name())];
//!         let agent = json!({
//!             "name": "agent", "image": "example.com/hello:v1", "args": args,
//!             "volumeMounts": [{"name": "hub", "mountPath": "/hub"}],
//!         });
//!         let volumes = json!([{"name": "hub", "secret": {"secretName": on.hub_kubeconfig_secret()}}]);
//!         let pod = json!({"serviceAccountName": "hello-agent", "containers": [agent], "volumes": volumes});
//!         let template = json!({"metadata": {"labels": labels}, "spec": pod});
//!         Ok(vec![
//!             json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}).into(),
//!             json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
//!                 "spec": {"selector": {"matchLabels": labels}, "template": template}}).into(),
//!         ])
//!     }
//! }
//!
//! #[derive(Parser)]
//! enum Hello {
//!     Manager(ManagerArgs),
//!     Agent(AgentArgs),
//! }
//!
//! fn main() -> ExitCode {
//!     match Hello::parse() {
//!         Hello::Manager(args) => args.run("hello", |manager| Ok(manager.add_agent(HelloAddon)?)),
//!         Hello::Agent(args) => args.run("hello", |agent| async move {
//!             agent.lease_updater().spawn(&agent.context);
//!             Ok(agent.until_the_end().await)
//!         }),
//!     }
//! }
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
//! The crates [`kube`], [`k8s_openapi`], [`api`] (the types of OCM) and [`runtime`] (watches and controllers) are those
//! this one is built with; use them from here, since there can be only one version of each in a program.
//!
//! # What the status says
//!
//! | condition of the ManagedClusterAddOn | status, reason | |
//! | --- | --- | --- |
//! | `RegistrationApplied` | True, `SetPermissionApplied` or `NilRegistration` | the agent has its rights, or needs none |
//! | | False, `SetPermissionFailed` | its rights could not be set up; the message says why |
//! | | False, `PermissionConfigPending` | nobody knows yet whom the rights are for |
//! | `ManifestApplied` | True, `AddonManifestApplied` | all objects are on the cluster |
//! | | False, `AddonManifestAppliedFailed` | the cluster's agent could not apply them |
//! | | False, `ManifestWorkApplyFailed` | [`AgentAddon::manifests`] failed, or what it returned makes no work |
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
//! | `rbac.authorization.k8s.io` | `roles`, `rolebindings` | get, create, patch, delete | [`PermissionBuilder`] |
//! | `certificates.k8s.io` | `certificatesigningrequests` | get, list, watch | [`Registration`] |
//! | | `certificatesigningrequests/approval` | patch, update | |
//! | | `signers`, only `kubernetes.io/kube-apiserver-client` | approve | |
//! | `authentication.k8s.io` | `tokenreviews` | create | who may see `/metrics` |
//! | `authorization.k8s.io` | `subjectaccessreviews` | create | |
//!
//! Besides, it needs all that it grants to agents: Kubernetes lets nobody grant a right that he does not hold. With
//! `--enable-leader-election`: get, list, watch, create, update and patch leases in its own namespace.

#![warn(missing_docs)]

mod agent;
pub mod command;
mod error;
mod lease;
mod manager;
pub mod manifests;
mod owner;
mod registration;

pub use k8s_openapi;
pub use kube;
pub use ocm_api as api;
pub use ocm_api::work::v1::Manifest;
pub use ocm_runtime as runtime;

pub use crate::{
    agent::{AgentAddon, AgentAddonOptions, HealthProber, Installation},
    error::{AddonError, PermissionError},
    lease::LeaseUpdater,
    manager::{AddonManager, AgentError},
    registration::{Grant, Identity, PermissionBuilder, PermissionConfig, Registration, Request},
};
