//! Every literal that hub, agent and users must agree on, each named once.

pub mod annotations;
pub mod authorization;
pub mod cluster_names;
pub mod components;
pub mod conditions;
pub mod finalizers;
pub mod identities;
pub mod labels;
pub mod leases;
pub mod limits;
pub mod namespaces;
pub mod rbac;
pub mod reasons;
pub mod recovery;
pub mod secrets;
pub mod signers;
pub mod taints;
pub mod webhooks;
pub mod works;
