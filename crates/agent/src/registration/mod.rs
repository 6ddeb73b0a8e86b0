//! The registration half of the agent: joins a cluster to a hub, and reports on the cluster.
//!
//! | module | while bootstrapping | afterwards | what it does |
//! | --- | --- | --- | --- |
//! | [`cluster_creation`] | yes | | creates the ManagedCluster on the hub |
//! | `join_problem` | yes | | explains why a hub cannot be joined |
//! | [`certificate`] | yes | yes | gets the agent's client certificate, renews it, keeps it in a Secret |
//! | [`hub_contact`] | yes | yes | leaves a hub that has been out of reach for too long, if there are several |
//! | [`hub_acceptance`] | | yes | leaves a hub that no longer accepts the cluster, if there are several |
//! | [`hub_ca`] | | yes | follows the certificate authority of the hub |
//! | [`lease`] | | yes | renews the cluster's lease, by which the hub knows that the agent is running |
//! | [`status`] | | yes | reports health, version, resources, claims and namespaces of the cluster |
//! | [`addon`] | | yes | gets certificates for the add-ons of the cluster, and reports on their health |
//!
//! ```text
//!  cluster_creation ──ManagedCluster──> hub  certificate ──CSR──> hub ──issued──> Secret
//!  lease            ──renewTime───────> hub  status ──one patch──> ManagedCluster, Event
//! ```

pub mod addon;
pub mod certificate;
pub mod cluster_creation;
pub mod hub_acceptance;
pub mod hub_ca;
pub mod hub_contact;
pub(crate) mod join_problem;
pub mod lease;
pub mod status;

use kube::{Api, api::ListParams};
use ocm_runtime::{ResultExt as _, error::Result, informer::Watchable};

/// Lists one object, to check that the server serves the kind and that the agent may list it.
async fn list_one<K: Watchable>(api: &Api<K>) -> Result<()> {
    let listed = api.list_metadata(&ListParams::default().limit(1)).await;
    listed.map(|_| ()).while_trying_to("list", || K::plural(&()).into_owned())
}
