//! The controllers of a hub.
//!
//! A [`Hub`] is a value: [`Hub::start`] takes a client, a [`HubConfig`] and a [`Context`], and runs the chosen
//! [`CONTROLLERS`] until the context ends. It reads nothing else: no files, no environment, no globals, so that many
//! hubs run in one process.
//!
//! | module | what it gives |
//! | --- | --- |
//! | `registration` | accepting clusters, their rights and health, cleaning up after them |
//! | `addon` | installing add-ons on the clusters that placements choose |
//! | `placement` | choosing clusters |
//! | `placement_debug` | OCM's debug endpoint of placements |
//! | `work` | works for the clusters that placements choose, and the clean-up of completed works |
//! | [`decisions`] | what placements have chosen, for everything that follows placements |
//! | [`rollout`] | which of the chosen clusters get a change now; pure |
//! | [`controllers`] | the table of controllers, and choosing among them |
//! | [`feature_gates`] | the gates a hub knows |
//! | [`webhook`] | the server that API servers ask about changes, and to convert add-ons |
//!
//! Every controller is driven by [`ocm_runtime::Controller`]: observe → plan → apply → report. `plan` and what `report`
//! says are pure and hold the behaviour; the rest reads the shared caches and writes.

#![warn(missing_docs)]

mod addon;
mod caches;
mod cluster_writer;
mod context;
pub mod controllers;
pub mod decisions;
mod error;
pub mod feature_gates;
mod observable;
mod pace;
mod placement;
mod placement_debug;
mod registration;
mod requester;
#[cfg(test)]
mod rights;
pub mod rollout;
#[cfg(test)]
mod testing;
pub mod webhook;
mod work;

use std::{collections::BTreeMap, convert::Infallible, sync::Arc};

use kube::Client;
use ocm_api::{labels, leases::HubComponent, namespaces};
use ocm_apimachinery::labels::{is_key, is_value};
use ocm_runtime::{
    Context, Informers,
    feature_gates::FeatureGates,
    leader::{self, Lock, Settings},
};
use tracing::info;

use crate::context::HubContext;
pub use crate::{
    controllers::{CONTROLLERS, ControllerInfo, UnknownController},
    error::Error,
    placement_debug::PlacementDebug,
    registration::{
        cleanup::{DEFAULT_GC_RESOURCES, GcResource, GcResourceError},
        recovery::RecoveryPolicy,
    },
};
#[cfg(fuzzing)]
pub use crate::{placement::fuzzing, registration::recovery::fuzzing as recovery_fuzzing};

/// Configuration of a hub.
#[derive(Clone, Debug)]
pub struct HubConfig {
    /// Namespace of the hub itself; no cluster may be named like it.
    pub namespace: String,
    /// Name of the machine or pod; identifies the reporter of an event and the candidate for a lease.
    pub host: String,
    /// How leaders are elected, each component by a lock of its own in the hub's namespace; `None` to work without election.
    pub election: Option<Settings>,
    /// Feature gates, of those in [`feature_gates::known`].
    pub gates: FeatureGates,
    /// The controllers to run, see [`controllers::select`]; empty for all.
    pub controllers: Vec<String>,
    /// More labels for namespaces and RBAC objects of clusters.
    pub labels: BTreeMap<String, String>,
    /// What is deleted with a cluster, in this order.
    pub gc_resources: Vec<GcResource>,
    /// Users who may have the first certificates of agents approved without an administrator. Without the feature gate
    /// `ManagedClusterAutoApproval` nobody may.
    pub auto_approved_csr_users: Vec<String>,
    /// Which agents may recover an expired certificate without an administrator; by default none.
    pub recovery: RecoveryPolicy,
}

impl Default for HubConfig {
    fn default() -> Self {
        Self {
            namespace: namespaces::HUB.into(),
            host: "localhost".into(),
            election: None,
            gates: FeatureGates::parse(&feature_gates::known(), &[]).unwrap_or_default(),
            controllers: Vec::new(),
            labels: BTreeMap::new(),
            gc_resources: GcResource::defaults(),
            auto_approved_csr_users: Vec::new(),
            recovery: RecoveryPolicy::default(),
        }
    }
}

/// Why a hub was not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// A controller was chosen that does not exist.
    #[error(transparent)]
    Controller(#[from] UnknownController),
    /// A label was given that the hub uses itself.
    #[error(
        "label {0} cannot be added to the objects of clusters: the hub itself uses it to find the cluster or add-on of an object"
    )]
    ReservedLabel(String),
    /// A label was given that no object can have.
    #[error(
        "label {0} cannot be added to the objects of clusters: a key or value has at most 63 letters, digits, '-', '_' and '.', \
         begins and ends with a letter or digit, and a key may have a DNS name and '/' before it"
    )]
    InvalidLabel(String),
}

/// The running controllers of a hub.
#[derive(Clone, Debug)]
pub struct Hub {
    informers: Informers,
    controllers: Vec<&'static str>,
}

/// The controllers of one component, which are elected together.
#[derive(Clone)]
struct ComponentRunner {
    component: HubComponent,
    controllers: Vec<&'static ControllerInfo>,
    process: Arc<HubProcess>,
}

/// What all components of a hub share.
struct HubProcess {
    client: Client,
    informers: Informers,
    config: HubConfig,
}

impl Hub {
    /// Starts the chosen controllers, or makes each component a candidate for its lock, which starts them once they are
    /// elected. They run until `context` ends; its health reports when their informers are synced.
    ///
    /// Must be called in the Tokio runtime of `client`.
    ///
    /// # Errors
    /// [`StartError`] when the configuration cannot be used; nothing runs then.
    pub fn start(context: &Context, client: Client, config: HubConfig) -> Result<Self, StartError> {
        let mut chosen = controllers::select(&config.controllers)?;
        chosen.retain(|controller| controller.is_on(&config.gates));
        check_labels(&config)?;
        // Informers outlive a leader's term: a replica that is elected again uses the same ones.
        let informers = Informers::new(client.clone(), context.clone());
        let process = Arc::new(HubProcess { client, informers: informers.clone(), config });
        for component in HubComponent::ALL {
            let of_component = |controller: &&ControllerInfo| controller.component == component.name;
            let controllers: Vec<_> = chosen.iter().copied().filter(of_component).collect();
            if !controllers.is_empty() {
                ComponentRunner { component, controllers, process: process.clone() }.start(context);
            }
        }
        Ok(Self { informers, controllers: chosen.iter().map(|controller| controller.name).collect() })
    }

    /// The names of its controllers: those chosen, less those whose feature gate is off.
    #[must_use]
    pub fn controllers(&self) -> &[&'static str] {
        &self.controllers
    }

    /// The hub's informers, for other parts of the process with the same identity.
    #[must_use]
    pub fn informers(&self) -> &Informers {
        &self.informers
    }
}

impl ComponentRunner {
    fn start(self, context: &Context) {
        let Some(settings) = self.process.config.election else { return self.run(context) };
        let context = context.clone();
        context.clone().spawn_to_completion(async move {
            let lead = leader::lead(&context, self.process.client.clone(), self.lock(), settings, |term| {
                let runner = self.clone();
                async move {
                    runner.run(&term);
                    term.ended().await;
                    Ok::<_, Infallible>(())
                }
            });
            // The error type has no values.
            _ = lead.await;
        });
    }

    fn lock(&self) -> Lock {
        let config = &self.process.config;
        let (namespace, name) = (config.namespace.clone(), self.component.lock.into());
        Lock { namespace, name, identity: leader::identity(&config.host) }
    }

    /// Runs the controllers until `term` ends.
    fn run(&self, term: &Context) {
        let HubProcess { client, informers, config } = &*self.process;
        let hub = HubContext::new(client.clone(), informers.clone(), term.clock(), config.clone());
        for controller in &self.controllers {
            controller.start(term, &hub);
        }
        let controllers: Vec<_> = self.controllers.iter().map(|controller| controller.name).collect();
        info!(component = self.component.name, ?controllers, "hub started");
    }
}

/// The hub's informers leave out objects of add-ons, so the hub would not see its own objects with that label. With a label that
/// the API server refuses, no cluster would get its rights.
fn check_labels(config: &HubConfig) -> Result<(), StartError> {
    let reserved = [labels::CLUSTER_NAME, labels::ADDON_NAME];
    if let Some(key) = reserved.into_iter().find(|key| config.labels.contains_key(*key)) {
        return Err(StartError::ReservedLabel(key.into()));
    }
    match config.labels.iter().find(|(key, value)| !is_key(key) || !is_value(value)) {
        Some((key, value)) => Err(StartError::InvalidLabel(format!("{key}={value}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_the_hub_uses_and_labels_that_cannot_be_are_refused() {
        let pair =
            |key: &str, value: &str| HubConfig { labels: [(key.into(), value.into())].into(), ..HubConfig::default() };
        let with = |key| pair(key, "x");
        assert!(check_labels(&with("team")).is_ok() && check_labels(&pair("example.com/team", "")).is_ok());
        for (key, value) in [("", "x"), ("a b", "x"), ("team", "a b"), ("team", "-")] {
            let refused = check_labels(&pair(key, value)).unwrap_err().to_string();
            assert!(refused.contains(&format!("label {key}={value} cannot")), "{refused}");
        }
        assert!(check_labels(&with(labels::ADDON_NAME)).is_err());
        assert!(check_labels(&with(labels::CLUSTER_NAME)).is_err());
    }
}
