//! The controllers of a hub.
//!
//! A [`Hub`] is a value: [`Hub::start`] takes a client, a [`HubConfig`] and a [`Context`], and runs the chosen
//! [`CONTROLLERS`] until the context ends. It reads nothing else: no files, no environment, no globals, so that many
//! hubs run in one process.
//!
//! | module | what it gives |
//! | --- | --- |
//! | `registration` | letting clusters in, watching over them, cleaning up after them |
//! | [`controllers`] | the table of controllers, and choosing among them |
//! | [`feature_gates`] | the gates a hub knows |
//!
//! Every controller is driven by [`ocm_runtime::Controller`]: observe → plan → apply → report. `plan` and what `report`
//! says are pure and hold the behaviour; the rest reads the shared watches and writes.

#![warn(missing_docs)]

pub mod controllers;
mod error;
pub mod feature_gates;
mod registration;

use std::collections::BTreeMap;

use kube::Client;
use ocm_api::{labels, namespaces};
use ocm_runtime::{Context, Watches, feature_gates::FeatureGates};
use tracing::info;

use crate::registration::Parts;
pub use crate::{
    controllers::{CONTROLLERS, ControllerInfo, UnknownController},
    error::Error,
    registration::gc::{DEFAULT_GC_RESOURCES, GcResource, GcResourceError},
};

/// What a hub is told.
#[derive(Clone, Debug)]
pub struct HubConfig {
    /// Namespace of the hub itself; no cluster may be named like it.
    pub namespace: String,
    /// Name of the machine or pod; it tells the reporters of events apart.
    pub host: String,
    /// Feature gates, of those in [`feature_gates::known`].
    pub gates: FeatureGates,
    /// The controllers to run, see [`controllers::select`]; none for all.
    pub controllers: Vec<String>,
    /// More labels for namespaces and RBAC objects of clusters.
    pub labels: BTreeMap<String, String>,
    /// What is deleted with a cluster, in this order.
    pub gc_resources: Vec<GcResource>,
}

impl Default for HubConfig {
    fn default() -> Self {
        Self {
            namespace: namespaces::HUB.into(),
            host: "localhost".into(),
            gates: FeatureGates::parse(&feature_gates::known(), &[]).unwrap_or_default(),
            controllers: Vec::new(),
            labels: BTreeMap::new(),
            gc_resources: GcResource::defaults(),
        }
    }
}

/// Why a hub was not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// A controller was chosen that does not exist.
    #[error(transparent)]
    Controller(#[from] UnknownController),
    /// A label was given that the hub goes by itself.
    #[error("label {0} cannot be given to the objects of clusters: the hub tells by it what belongs to whom")]
    ReservedLabel(String),
}

/// The controllers of a hub, running.
#[derive(Clone, Debug)]
pub struct Hub {
    watches: Watches,
    controllers: Vec<&'static str>,
}

impl Hub {
    /// Starts the chosen controllers. They run until `context` ends; its health says when their watches are complete.
    ///
    /// Must be called in the Tokio runtime of `client`.
    ///
    /// # Errors
    /// [`StartError`] when the configuration cannot be used; nothing runs then.
    pub fn start(context: &Context, client: Client, config: HubConfig) -> Result<Self, StartError> {
        let chosen = controllers::select(&config.controllers)?;
        check_labels(&config)?;
        let watches = Watches::new(client.clone(), context.clone());
        let parts = Parts::new(client, watches.clone(), context.clock(), config);
        let started = chosen.iter().filter(|controller| controller.start(context, &parts));
        let controllers: Vec<_> = started.map(|controller| controller.name).collect();
        info!(?controllers, "hub started");
        Ok(Self { watches, controllers })
    }

    /// The names of the controllers that run: those chosen, less those whose feature gate is off.
    #[must_use]
    pub fn controllers(&self) -> &[&'static str] {
        &self.controllers
    }

    /// The hub's watches, for other parts of the process with the same identity.
    #[must_use]
    pub fn watches(&self) -> &Watches {
        &self.watches
    }
}

/// The hub's watches leave out what belongs to add-ons, so it would not see its own objects with that label.
fn check_labels(config: &HubConfig) -> Result<(), StartError> {
    let reserved = [labels::CLUSTER_NAME, labels::ADDON_NAME];
    match reserved.into_iter().find(|key| config.labels.contains_key(*key)) {
        Some(key) => Err(StartError::ReservedLabel(key.into())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_the_hub_goes_by_are_refused() {
        let with = |key: &str| HubConfig { labels: [(key.to_owned(), "x".to_owned())].into(), ..HubConfig::default() };
        assert!(check_labels(&with("team")).is_ok());
        assert!(check_labels(&with(labels::ADDON_NAME)).is_err());
        assert!(check_labels(&with(labels::CLUSTER_NAME)).is_err());
    }
}
