//! Add-ons: installing them on the clusters that placements choose, and saying how that goes.
//!
//! How the data flows: a `ClusterManagementAddOn` says which placements an add-on follows, and the tracker in
//! [`crate::decisions`] knows which clusters these have chosen. [`decision`] decides on each add-on over all its clusters, and
//! publishes in the [`store`] what is desired on each. [`installation`] creates or deletes one `ManagedClusterAddOn`, gives it
//! its owner and its conditions Configured and Progressing. [`progression`] writes into the status of an add-on how far it
//! has come. [`annotations`] carries changed annotations of a cluster to its add-ons.
//!
//! What belongs to one add-on alone (its works, its registration, its health) is its own manager's. What this hub cannot do
//! yet is refused by name ([`refusal`]): configurations, and rollouts other than all at once.
//!
//! All of it reads and writes version v1alpha1, which is stored: no conversion is needed for it.

pub(crate) mod annotations;
pub(crate) mod decision;
pub(crate) mod facts;
pub(crate) mod installation;
pub(crate) mod outstanding;
pub(crate) mod progression;
pub(crate) mod refusal;
pub(crate) mod sources;
pub(crate) mod store;
#[cfg(test)]
pub(crate) mod testing;

/// How many installations are worked on at once. The API server is the limit: it takes most writes a second when so many
/// are on their way.
pub(crate) const WORKERS: usize = 32;
