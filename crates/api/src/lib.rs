//! The nouns of Open Cluster Management: API types, conditions, reasons, labels. No I/O.
//!
//! * [`cluster`], [`work`], [`addon`] and [`operator`] hold the API types of OCM, [`about`] and [`multicluster`] those of
//!   Kubernetes that OCM uses; one module per API version.
//! * [`labels`], [`annotations`], [`finalizers`], [`taints`], [`conditions`], [`reasons`], [`identities`], [`rbac`],
//!   [`secrets`], [`leases`], [`signers`], [`recovery`], [`authorization`], [`components`], [`webhooks`] and [`limits`]
//!   hold every literal that hub and agent must agree on, each named once; [`cluster_names`] has the reserved names of
//!   clusters.
//! * [`feature_gates`] is the table of feature gates.
//! * [`crds`] builds the CustomResourceDefinitions from the types.

#![warn(missing_docs)]

#[macro_use]
mod macros;
mod schema;
mod serde_util;

pub mod about;
pub mod addon;
pub mod cluster;
pub mod multicluster;
pub mod operator;
pub mod work;

pub mod crds;
pub mod feature_gates;

mod names;
pub use names::{
    annotations, authorization, cluster_names, components, conditions, finalizers, identities, labels, leases, limits,
    namespaces, rbac, reasons, recovery, secrets, signers, taints, webhooks, works,
};
