//! The service accounts of `deploy/`.

use std::path::Path;

use anyhow::Result;

use crate::ControlPlane;

/// A service account.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// Its namespace.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
}

/// The account of a hub.
pub const HUB: Account = Account { namespace: "open-cluster-management-hub", name: "hub-controller-sa" };
/// The account of an agent on its own cluster.
pub const AGENT: Account = Account { namespace: "open-cluster-management-agent", name: "klusterlet-work-sa" };
/// The account with which agents bootstrap.
pub const BOOTSTRAP: Account = Account { namespace: "open-cluster-management", name: "agent-registration-bootstrap" };

impl Account {
    /// Writes a kubeconfig file of this account; see [`ControlPlane::write_login`].
    pub async fn write_login(self, plane: &ControlPlane, path: impl AsRef<Path>) -> Result<()> {
        plane.write_login(self.namespace, self.name, path).await
    }
}
