//! An agent that a test starts and stops.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use kube::{Client, config::Kubeconfig};
use ocm_agent::AgentConfig;
use ocm_testing::TempDir;
use tokio::task::JoinHandle;

use super::endpoint;

/// An agent in this process, with its own folder and namespace, which can be stopped and started.
pub(crate) struct Agent {
    pub(crate) cluster: String,
    pub(crate) namespace: String,
    bootstrap: PathBuf,
    own: Kubeconfig,
    dir: TempDir,
    /// Changes the configuration that it is started with next.
    pub(crate) configure: fn(&mut AgentConfig),
    running: Option<(ocm_runtime::Context, JoinHandle<Result<()>>)>,
}

impl Agent {
    /// Starts an agent whose folder, `dir`, contains its bootstrap kubeconfig.
    pub(super) async fn start_new(
        cluster: &str,
        namespace: String,
        bootstrap: PathBuf,
        own: Kubeconfig,
        dir: TempDir,
    ) -> Result<Self> {
        let cluster = cluster.to_owned();
        let mut agent = Self { cluster, namespace, bootstrap, own, dir, configure: |_| {}, running: None };
        agent.start().await?;
        Ok(agent)
    }

    /// The folder with its credentials for the hub.
    pub(crate) fn hub_dir(&self) -> PathBuf {
        self.dir.path().join("hub")
    }

    pub(crate) async fn start(&mut self) -> Result<()> {
        let mut config = AgentConfig::new(self.hub_dir());
        config.cluster_name.clone_from(&self.cluster);
        config.agent_id = format!("{}-agent", self.cluster);
        config.namespace.clone_from(&self.namespace);
        config.bootstrap_kubeconfig = Some(self.bootstrap.clone());
        (self.configure)(&mut config);
        let context = ocm_runtime::Context::new();
        let managed = endpoint(&self.own).await?;
        let own = context.clone();
        let task = tokio::spawn(async move { Ok(ocm_agent::run(&own, &managed, &managed, config).await?) });
        self.running = Some((context, task));
        Ok(())
    }

    pub(crate) async fn stop(&mut self) -> Result<()> {
        let (context, task) = self.running.take().context("the agent does not run")?;
        context.stop().await;
        task.await?
    }

    /// How many passes a controller of the agent has made without an error.
    pub(crate) fn passes(&self, controller: &str) -> u64 {
        let Some((context, _)) = &self.running else { return 0 };
        let of = format!("reconciles_total{{controller=\"{controller}\",result=\"success\"}} ");
        let metrics = context.metrics().encode();
        let count = metrics.lines().find_map(|line| line.split_once(&of)?.1.parse().ok());
        count.unwrap_or(0)
    }

    /// A client with the agent's own identity on the hub.
    pub(crate) async fn hub_client(&self) -> Result<Client> {
        let kubeconfig = Kubeconfig::read_from(self.hub_dir().join("kubeconfig"))?;
        Ok(endpoint(&kubeconfig).await?.client("test")?)
    }
}
