//! Registration: clusters join, get their rights, are watched and cleaned up.
//!
//! Agents create `ManagedCluster`s and certificate requests. An administrator accepts both, or, behind a feature gate,
//! [`acceptance`] accepts the cluster and [`csr`] approves the request of a listed user. [`cluster`] gives an accepted
//! cluster its namespace and rights; [`csr`] approves the renewal of its agent's certificate, and [`recovery`], if it is switched
//! on, a new one for an agent whose certificate has expired. What is special to one way of proving an identity is in a
//! [`driver`]. The agent renews the lease that [`availability::lease`] created and reports the cluster's
//! health, which [`availability`] turns into conditions and taints. [`admission`] reports what the API server does not check.
//! [`cluster_set`] relates clusters to cluster sets, [`cluster_profile`] shows them to other tools, and [`addon`] relates them to
//! their add-ons. [`cleanup`] and [`cluster`] remove everything when the cluster is deleted.

pub(crate) mod acceptance;
pub(crate) mod accepted;
pub(crate) mod addon;
pub(crate) mod admission;
pub(crate) mod availability;
pub(crate) mod cleanup;
pub(crate) mod cluster;
pub(crate) mod cluster_profile;
pub(crate) mod cluster_set;
pub(crate) mod csr;
pub(crate) mod driver;
pub(crate) mod maintained;
pub(crate) mod names;
pub(crate) mod recovery;
pub(crate) mod requester;
pub(crate) mod status;

/// How many clusters a controller works on at once. The API server is the limit, not this process.
pub(crate) const WORKERS: usize = 8;
