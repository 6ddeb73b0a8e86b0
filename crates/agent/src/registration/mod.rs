//! The registration half of the agent: joins a cluster to a hub, and reports on the cluster.
//!
//! | module | while bootstrapping | afterwards | what it does |
//! | --- | --- | --- | --- |
//! | [`creating`] | yes | | creates the ManagedCluster on the hub |
//! | [`certificate`] | yes | yes | gets the agent's client certificate, renews it, keeps it in a Secret |
//! | [`lease`] | | yes | renews the cluster's lease, so that the hub sees the agent is alive |
//! | [`status`] | | yes | reports health, version, resources, claims and namespaces of the cluster |
//!
//! ```text
//!  creating ──ManagedCluster──> hub          certificate ──CSR──> hub ──issued──> Secret
//!  lease    ──renewTime───────> hub          status ──one patch──> ManagedCluster, Event
//! ```

pub mod certificate;
pub mod creating;
pub mod lease;
pub mod status;
