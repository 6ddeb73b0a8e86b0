//! The service accounts of `deploy/`.

use std::path::Path;

use anyhow::Result;

use crate::ControlPlane;

/// A service account.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// The namespace it is in.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
}

/// Whom a hub runs as.
pub const HUB: Account = Account { namespace: "open-cluster-management-hub", name: "hub-controller-sa" };
/// Whom an agent runs as on its own cluster.
pub const AGENT: Account = Account { namespace: "open-cluster-management-agent", name: "klusterlet-work-sa" };
/// As whom agents ask a hub to let them join.
pub const BOOTSTRAP: Account = Account { namespace: "open-cluster-management", name: "agent-registration-bootstrap" };

impl Account {
    /// Writes a kubeconfig file with which to be this account; see [`ControlPlane::write_login`].
    pub async fn write_login(self, plane: &ControlPlane, path: impl AsRef<Path>) -> Result<()> {
        plane.write_login(self.namespace, self.name, path).await
    }
}
