//! [`AddonManager`]: what runs on the hub for add-ons.

mod addon;
mod requests;
mod served_addon;
mod trigger;
mod works;

use std::{collections::BTreeMap, fmt, future::Future, sync::Arc, time::Duration};

use kube::Client;
use ocm_api::cluster::v1::ManagedCluster;
use ocm_runtime::{Backoff, Cache, Context, Informers, error::chain, informer::WatchFilter};
use tokio::time::sleep;
use tracing::{info, warn};

#[cfg(fuzzing)]
pub use self::addon::fuzzing;
pub(crate) use self::requests::Undecided;
pub use self::trigger::Trigger;
use self::{addon::AddonController, requests::RequestController, served_addon::ServedAddon};
use crate::{AgentAddon, AgentAddonOptions, DynAgentAddon, SetupContext, author};

/// How many clusters are reconciled at a time. The API server answers writes fastest with about this many in progress.
const WORKERS: usize = 32;

/// After how long a failed set-up of an add-on is retried.
const SETUP_RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// The longest name: it is the value of a label.
const LONGEST_NAME: usize = 63;

/// Runs one or more add-ons on a hub: deploys their agents to every cluster that has a ManagedClusterAddOn of their name,
/// and gives the agents their identities and permissions.
///
/// It does not choose the clusters: users create ManagedClusterAddOns, or the hub does, by the `installStrategy` of the
/// ClusterManagementAddOn. Several managers can run side by side, each for its own add-ons.
pub struct AddonManager {
    client: Client,
    agents: BTreeMap<String, (Arc<dyn DynAgentAddon>, AgentAddonOptions)>,
    trigger: Trigger,
}

impl fmt::Debug for AddonManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddonManager").field("add-ons", &self.agents.keys()).finish_non_exhaustive()
    }
}

/// Why an add-on was not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddAgentError {
    /// Its name is not a valid name of an object.
    #[error("{0:?} is not a valid name of an add-on: use at most 63 lower-case letters, digits, dashes and dots")]
    Name(String),
    /// The manager already has an add-on of that name.
    #[error("this manager already has an add-on {0:?}")]
    Duplicate(String),
}

impl AddonManager {
    /// A manager without add-ons. `client` is for the hub; what it must be allowed to do is in the crate's
    /// [documentation](crate#rights-of-the-manager).
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, agents: BTreeMap::new(), trigger: Trigger::default() }
    }

    /// The client of the hub, for an add-on's own code.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Reconciles add-ons after changes that this manager does not watch.
    #[doc(alias = "Trigger")]
    #[must_use]
    pub fn trigger(&self) -> Trigger {
        self.trigger.clone()
    }

    /// Adds an add-on.
    ///
    /// # Errors
    /// [`AddAgentError`] when its name cannot be used or is taken.
    #[doc(alias = "AddAgent")]
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
    /// context's health reports when the informers are complete and the add-ons are set up.
    ///
    /// Must be called in the Tokio runtime of its client. It installs no logger and no signal handler, and does not exit
    /// the process; [`ManagerArgs`](crate::command::ManagerArgs) does.
    #[doc(alias = "Start")]
    pub async fn run(self, context: &Context) {
        self.start(context);
        context.ended().await;
    }

    /// Runs until `end` is ready, and then until what is in progress is finished. For programs that need no [`Context`].
    pub async fn run_until(self, end: impl Future<Output = ()>) {
        let context = Context::new();
        self.start(&context);
        end.await;
        context.stop().await;
    }

    fn start(self, context: &Context) {
        let informers = Informers::new(self.client.clone(), context.clone());
        let clusters: Cache<ManagedCluster> = informers.all(WatchFilter::all());
        if self.agents.is_empty() {
            warn!("this manager has no add-on, so there is nothing for it to do");
        }
        info!(addons = ?self.agents.keys(), "add-on manager started");
        let setup = SetupContext { client: self.client, informers, context: context.clone(), trigger: self.trigger };
        for (agent, options) in self.agents.into_values() {
            let served = Arc::new(ServedAddon::new(agent, options, &setup.informers));
            context.spawn(serve(served, clusters.clone(), setup.clone()));
        }
    }
}

/// Sets an add-on up and starts its controllers, which have workers of their own: an add-on whose code hangs does not keep
/// the others waiting.
async fn serve(served: Arc<ServedAddon>, clusters: Cache<ManagedCluster>, setup: SetupContext) {
    let awaiting = setup.context.health().awaiting(format!("set-up of add-on {}", served.options.name));
    set_up(&served, &setup).await;
    let SetupContext { client, context, trigger, .. } = setup;
    context.run(AddonController::new(client.clone(), served.clone(), clusters.clone(), trigger), WORKERS);
    context.run(RequestController::new(client, served, clusters), WORKERS);
    drop(awaiting);
}

async fn set_up(served: &ServedAddon, setup: &SetupContext) {
    let mut delays = SETUP_RETRY.delays();
    loop {
        // What a failed try has started ends with it.
        let attempt = SetupContext { context: setup.context.child(), ..setup.clone() };
        let error = match author::call(async { served.agent.dyn_setup(&attempt).await }).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => chain(&*error),
            Err(no_answer) => no_answer.to_string(),
        };
        attempt.context.abort();
        let retry_in = delays.next_delay();
        warn!(addon = served.options.name, error, ?retry_in, "cannot set the add-on up, retrying");
        sleep(retry_in).await;
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
