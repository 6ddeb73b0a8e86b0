//! [`AddonManager`]: what runs on the hub for add-ons.

mod addon;
mod author;
mod requests;
mod served;
mod trigger;
mod works;

use std::{collections::BTreeMap, fmt, sync::Arc};

use kube::Client;
use ocm_api::cluster::v1::ManagedCluster;
use ocm_runtime::{Cache, Context, Informers, informer::WatchFilter};
use tracing::{info, warn};

#[cfg(fuzzing)]
pub use self::addon::fuzzing;
pub use self::trigger::Trigger;
use self::{addon::AddonController, requests::RequestController, served::Served};
use crate::{
    AgentAddon,
    agent::{AgentAddonOptions, Render},
};

/// How many clusters are worked on at a time. The API server answers writes fastest when about this many are under way.
const WORKERS: usize = 32;

/// The longest name: it is a label's value.
const LONGEST_NAME: usize = 63;

/// Runs one or more add-ons on a hub: what their agents are made of is brought to every cluster that has a
/// ManagedClusterAddOn of their name, and their agents get their identities.
///
/// It does not decide on which clusters an add-on is: users create ManagedClusterAddOns, or the hub does, as the
/// ClusterManagementAddOn's `installStrategy` says. Several managers can run side by side, each for its own add-ons.
pub struct AddonManager {
    client: Client,
    agents: BTreeMap<String, (Arc<dyn Render>, AgentAddonOptions)>,
    trigger: Trigger,
}

impl fmt::Debug for AddonManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddonManager").field("add-ons", &self.agents.keys()).finish_non_exhaustive()
    }
}

/// Why an add-on was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddAgentError {
    /// No object can have its name.
    #[error("{0:?} is no name for an add-on: use at most 63 lower-case letters, digits, dashes and dots")]
    Name(String),
    /// The manager has an add-on of that name already.
    #[error("there are two add-ons {0:?} in this manager")]
    Duplicate(String),
}

impl AddonManager {
    /// A manager without add-ons. `client` is for the hub; what it must be allowed to do is in the crate's
    /// [documentation](crate#rights-of-the-manager).
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, agents: BTreeMap::new(), trigger: Trigger::default() }
    }

    /// The client of the hub, for what an add-on's own code asks there.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Asks for manifests again once this manager runs, whoever holds it.
    #[must_use]
    pub fn trigger(&self) -> Trigger {
        self.trigger.clone()
    }

    /// Adds an add-on.
    ///
    /// # Errors
    /// [`AddAgentError`] when its name cannot be used or is taken.
    pub fn add_agent(mut self, agent: impl AgentAddon) -> Result<Self, AddAgentError> {
        let options = agent.options();
        let name = options.name.clone();
        if !is_name(&name) {
            return Err(AddAgentError::Name(name));
        }
        if self.agents.contains_key(&name) {
            return Err(AddAgentError::Duplicate(name));
        }
        self.agents.insert(name, (Arc::new(agent), options));
        Ok(self)
    }

    /// Runs until `context` is asked to end; [`Context::stop`] then waits until what is in progress is finished. The
    /// context's health says when the watches are complete.
    ///
    /// Must be called in the Tokio runtime of its client.
    pub async fn run(self, context: &Context) {
        self.start(context);
        context.ended().await;
    }

    fn start(self, context: &Context) {
        let watches = Informers::new(self.client.clone(), context.clone());
        let clusters: Cache<ManagedCluster> = watches.all(WatchFilter::all());
        let names: Vec<_> = self.agents.keys().cloned().collect();
        for (agent, options) in self.agents.into_values() {
            let served = Arc::new(Served::new(agent, options, &watches));
            let requests = RequestController::new(self.client.clone(), served.clone(), clusters.clone());
            let addons = AddonController::new(self.client.clone(), served, clusters.clone(), self.trigger.clone());
            // Workers of its own for each add-on: one whose code hangs does not keep the others waiting.
            context.run(addons, WORKERS);
            context.run(requests, WORKERS);
        }
        if names.is_empty() {
            warn!("this manager has no add-on, so there is nothing for it to do");
        }
        info!(addons = ?names, "add-on manager started");
    }
}

fn is_name(name: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label_fits = |label: &str| {
        let bytes = label.as_bytes();
        let edges_fit = bytes.first().copied().is_some_and(is_edge) && bytes.last().copied().is_some_and(is_edge);
        edges_fit && bytes.iter().all(|byte| is_edge(*byte) || *byte == b'-')
    };
    name.len() <= LONGEST_NAME && name.split('.').all(label_fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_an_object_and_a_label_can_have() {
        for good in ["a", "hello-world", "search.v2", &"a".repeat(63)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "Hello", "-a", "a-", "a..b", "a/b", "a b", &"a".repeat(64)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
