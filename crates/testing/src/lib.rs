//! Real control planes on one machine, for tests, the demo and benchmarks.
//!
//! A [`ControlPlane`] is etcd, kube-apiserver and kube-controller-manager on free loopback ports,
//! in a folder of its own; all ends when the value is dropped or the process ends in any way:
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use ocm_testing::ControlPlane;
//!
//! let hub = ControlPlane::builder().name("hub").audit(true).start().await?;
//! let client = hub.client().await?;
//! println!("{}", client.apiserver_version().await?.git_version);
//! println!("{}", hub.kubectl(&["get", "namespaces"]).await?);
//! # Ok(())
//! # }
//! ```
//!
//! Integration tests share one hub and two managed clusters per test binary through [`fixture`],
//! wait only with [`eventually`], and avoid each other's objects with [`unique`] names. The binaries come from `make testenv` or `KUBEBUILDER_ASSETS` (see [`Assets`]).
//!
//! A [`node::Node`] adds a machine that runs pods.
//!
//! [`scenario`] is what `ocm-demo`, `ocm-test-node` and `ocm-interop` have in common.
//!
//! For fleets of agents a [`MemoryCluster`] is a managed cluster without processes. [`JoinedClusters`] are clusters without
//! agents, for hubs with many of them.
//!
//! Environment variables:
//! - `KUBEBUILDER_ASSETS`: a folder with the Kubernetes binaries, searched first;
//! - `OCM_TESTING_KEEP=1`: keep the folders with logs and data;
//! - `OCM_TESTING_TIMEOUT`: seconds after which waiting gives up (60).

mod assets;
mod audit;
mod control_plane;
mod dirs;
pub mod fault;
pub mod fixture;
mod joined;
mod kubeconfig;
mod memory;
mod names;
pub mod node;
mod pki;
mod ports;
mod process;
mod proxy;
pub mod scenario;
mod spawn;
mod usage;
mod wait;

pub use assets::Assets;
pub use audit::{AuditLog, Write};
pub use control_plane::{Backup, ControlPlane, ControlPlaneBuilder, Part};
pub use dirs::TempDir;
pub use joined::JoinedClusters;
pub use kubeconfig::{client_for, write_kubeconfig};
pub use memory::{AnswerBody, Kind, MemoryCluster};
pub use names::unique;
pub use ports::Port;
pub use process::{Process, ProcessBuilder, Signal};
pub use proxy::ConnectProxy;
pub use usage::{Memory, allow_open_files, own_cpu_time};
pub use wait::{Probe, Seen, eventually, eventually_within, timeout};
