//! Add-ons: installs them on the clusters that placements select, and reports the progress.
//!
//! How the data flows: a `ClusterManagementAddOn` lists the placements that an add-on follows, and the tracker in
//! [`crate::decisions`] knows which clusters these have chosen. [`decision`] decides on each add-on over all its clusters, and
//! publishes in the [`store`] what is desired on each. [`installation`] creates or deletes one `ManagedClusterAddOn`, gives it
//! its owner and its conditions Configured and Progressing. [`progression`] writes into the status of an add-on how far it
//! has come. [`annotations`] carries changed annotations of a cluster to its add-ons. [`token`] keeps service accounts for
//! add-ons whose agents authenticate with tokens.
//!
//! The manager of an add-on is responsible for its works, its registration and its health. What this hub does not support yet
//! is refused by the name of its field ([`refusal`]): configurations, and rollouts other than all at once.
//!
//! All controllers read and write version v1alpha1, which is stored and needs no conversion.

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
pub(crate) mod token;

/// How many installations are reconciled at once. The API server is the limit: it takes the most writes a second with about
/// so many concurrent requests.
pub(crate) const WORKERS: usize = 32;
