//! Works on the hub: replica sets, and the clean-up of completed works.
//!
//! How the data flows: a `ManifestWorkReplicaSet` lists placements, and the tracker in [`crate::decisions`] knows which clusters these
//! have chosen. [`decision`] decides on each set over all its clusters; [`replica_set`] gathers what that depends on, publishes in the
//! [`store`] what is desired of each work, and reports; [`replica`] creates, updates or deletes one work. The caches have works
//! without their manifests ([`kinds`]). [`completed`] deletes other works some time after they are complete.

pub(crate) mod completed;
pub(crate) mod decision;
pub(crate) mod facts;
pub(crate) mod kinds;
pub(crate) mod replica;
pub(crate) mod replica_set;
pub(crate) mod sources;
pub(crate) mod store;

/// How many works are written at once. The API server is the limit: it takes the most writes a second with about so many concurrent
/// requests.
pub(crate) const WORKERS: usize = 32;
