//! A real node for a control plane: containerd, kubelet, kube-proxy and a scheduler, in namespaces of their own.
//!
//! A node changes the network, the mounts and the packet rules of the machine it runs on, so the whole program that uses
//! one moves into namespaces of its own first: [`isolated`] starts it again there, in a network that holds nothing but
//! itself. Test, control plane, node and pods then reach each other without any forwarding, and when the program ends, or
//! is killed, every process, mount, interface and packet rule is gone with the namespaces.
//!
//! ```no_run
//! use ocm_testing::node::{self, Node};
//!
//! fn main() -> std::process::ExitCode {
//!     node::isolated(|| async {
//!         let plane = node::control_plane("cluster1").start().await?;
//!         let node = Node::builder().start(&plane).await?;
//!         node.serve_busybox().await?;
//!         plane.kubectl(&["run", "hello", "--image=busybox", "--", "sleep", "3600"]).await?;
//!         Ok(())
//!     })
//! }
//! ```
//!
//! It needs root, some packages (`testenv/packages.sh` installs them) and kubelet, kube-scheduler and kube-proxy (`make
//! testenv-node` builds them); what is missing is an error that says so.

mod builder;
mod cgroups;
mod config;
mod images;
mod isolation;
mod parts;
mod requirements;
mod usage;

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

pub use builder::NodeBuilder;
pub use cgroups::remove_dead as remove_dead_groups;
pub use isolation::{is_inside, isolated};
pub use requirements::check;
pub use usage::ContainerMemory;

use crate::control_plane::ControlPlaneBuilder;
use crate::process::Process;
use crate::{ControlPlane, Part, TempDir};

/// The address of the machine in its own network, where the API server and kubelet are reached from pods.
pub const ADDRESS: &str = "192.168.77.1";

/// The name of the node.
pub const NAME: &str = "node";

/// Whether these namespaces have had their node: what runs in pods outlives it.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A control plane that a node can be added to: reached from pods under [`ADDRESS`], it hands out what belongs to a node
/// as a production cluster does.
pub fn control_plane(name: &str) -> ControlPlaneBuilder {
    let flags = [
        ("bind-address", "0.0.0.0"),
        ("advertise-address", ADDRESS),
        // Writes the endpoint behind the service `kubernetes`, through which pods find their API server.
        ("endpoint-reconciler-type", "lease"),
        ("kubelet-preferred-address-types", "InternalIP"),
        ("authorization-mode", "Node,RBAC"),
        ("enable-admission-plugins", "NodeRestriction"),
    ];
    let builder = ControlPlane::builder().name(name).reached_as(ADDRESS);
    flags.into_iter().fold(builder, |builder, (flag, value)| builder.flag(Part::ApiServer, flag, value))
}

/// The one node of these namespaces. Dropping it ends kubelet and containerd; its pods live as long as the program.
///
/// Made by [`Node::builder`].
pub struct Node {
    dir: TempDir,
    cgroup: String,
    registry_port: u16,
    processes: Vec<Process>,
}

impl Node {
    /// Prepares to start a node.
    pub fn builder() -> NodeBuilder {
        NodeBuilder::default()
    }

    /// The folder with configuration and logs (`containerd.log`, `kubelet.log` and so on).
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The last lines of the log of every process of the node, for error messages.
    pub fn last_words(&self) -> String {
        let words = |process: &Process| format!("{}:\n{}\n", process.name(), process.log_tail());
        self.processes.iter().map(words).collect()
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Node").field("dir", &self.dir()).finish_non_exhaustive()
    }
}
