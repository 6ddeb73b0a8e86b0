//! The control planes, and the processes that run against them.

use std::path::Path;

use anyhow::Result;
use ocm_testing::scenario::{Ours, Running};
use ocm_testing::{ControlPlane, Port};

const HUB_MANIFESTS: &str = include_str!("../../../../../deploy/hub.yaml");
const AGENT_MANIFESTS: &str = include_str!("../../../../../deploy/agent.yaml");

/// A hub and the clusters it manages.
pub(crate) struct Clusters {
    pub(crate) hub: ControlPlane,
    pub(crate) managed: Vec<(&'static str, ControlPlane)>,
    pub(crate) ours: Ours,
    pub(crate) running: Running,
    webhook: Port,
}

impl Clusters {
    /// Starts control planes, for the programs in a folder.
    pub(crate) async fn start(programs: &Path) -> Result<Self> {
        let plane = |name: &'static str| ControlPlane::builder().name(name).start();
        let (hub, first, second) = tokio::try_join!(plane("hub"), plane("cluster1"), plane("cluster2"))?;
        let managed = vec![("cluster1", first), ("cluster2", second)];
        let (ours, webhook) = (Ours::new(programs)?, Port::free()?);
        Ok(Self { hub, managed, ours, running: Running::default(), webhook })
    }

    /// The CRDs as `ocm crds` prints them, and the manifests of `deploy/`.
    pub(crate) async fn install(&self) -> Result<()> {
        self.hub.install(&self.ours.hub_crds(&self.hub, &self.webhook).await?, HUB_MANIFESTS).await?;
        for (_, plane) in &self.managed {
            plane.install(&self.ours.managed_crds(plane).await?, AGENT_MANIFESTS).await?;
        }
        Ok(())
    }

    pub(crate) async fn start_webhook(&self) -> Result<()> {
        self.running.add(self.ours.start_webhook(&self.hub, &self.webhook).await?);
        Ok(())
    }

    pub(crate) async fn start_hub(&self) -> Result<()> {
        self.running.add(self.ours.start_hub(&self.hub, &[]).await?);
        Ok(())
    }

    pub(crate) async fn start_agents(&self) -> Result<()> {
        for (name, plane) in &self.managed {
            self.running.add(self.ours.start_agent(name, &self.hub, plane).await?);
        }
        Ok(())
    }
}
