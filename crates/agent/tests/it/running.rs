//! An agent that runs in a test.

use anyhow::{Context as _, Result};
use ocm_agent::AgentError;
use ocm_runtime::Context;
use ocm_testing::eventually;
use tokio::task::JoinHandle;

/// A running agent.
pub(crate) struct Running {
    pub(crate) context: Context,
    pub(crate) task: JoinHandle<Result<(), AgentError>>,
}

impl Running {
    pub(crate) async fn stop(self) -> Result<()> {
        self.context.end();
        Ok(self.task.await??)
    }

    /// How it ended by itself.
    pub(crate) async fn ended(self) -> Result<AgentError> {
        self.task.await?.err().context("the agent ended without an error")
    }

    /// How often a controller has reconciled successfully.
    pub(crate) fn reconciles(&self, controller: &str) -> u64 {
        reconciles(&self.context, controller)
    }
}

/// How often a controller of the context has reconciled successfully.
pub(crate) fn reconciles(context: &Context, controller: &str) -> u64 {
    let of = format!("controller=\"{controller}\",result=\"success\"}} ");
    let metrics = context.metrics().encode();
    let line = metrics.lines().find(|line| line.contains("reconciles_total") && line.contains(&of));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

/// Waits until a controller of an agent has reconciled so many more times.
pub(crate) async fn reconciles_again(agent: &Running, controller: &str, times: u64) -> Result<()> {
    let enough = agent.reconciles(controller) + times;
    eventually(&format!("{controller} has reconciled {times} times"), || async {
        agent.reconciles(controller) >= enough
    })
    .await
}
