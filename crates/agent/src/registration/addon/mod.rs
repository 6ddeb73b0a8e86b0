//! Registration and health of the cluster's add-ons: each gets its own identities on the hub, and the agent reports whether it
//! is available.
//!
//! ```text
//!  ManagedClusterAddOn ──registrations──> credential, one each ──CSR or TokenRequest──> hub ──> Secret of the add-on's agent
//!           ^                                                                                    │ uses it
//!           └───────────── Available <──── health <──every 30 s──── Lease <──renews── the add-on's agent
//! ```
//!
//! | module | what it does |
//! | --- | --- |
//! | `registrations` | starts and stops one credential controller per registration, deletes the secrets of removed ones |
//! | `credentials` | the running credential controllers, and their outcomes |
//! | `driver` | how agents of add-ons authenticate to the hub's API server, as the status must say |
//! | `target` | the desired credentials of an add-on, and where they are kept |
//! | `token` | gets the token of an add-on's agent, renews it, keeps it in its secret |
//! | `health` | reports by the add-on's lease whether it is available |
//!
//! A hub may not serve add-ons at all: until it does, the agent only polls for the kind. On the clusters of the add-ons' agents
//! nothing is watched but the secrets of existing registrations.

mod credentials;
mod driver;
#[cfg(fuzzing)]
pub mod fuzzing;
mod health;
mod registrations;
mod target;
mod token;

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use kube::{Api, Client};
use ocm_api::{
    addon::v1alpha1::{KubeClientDriver, ManagedClusterAddOn},
    cluster::v1::ManagedCluster,
};
use ocm_runtime::{Backoff, Cache, Context, Informers, ObjectKey, error::chain, informer::WatchFilter};
use tokio::sync::watch as signal;
use tracing::{Instrument as _, Span, debug, info, warn};

use self::{health::AddOnHealth, registrations::Registrations, target::Host};
use super::{certificate::Requests, lease::is_accepted, list_one};

/// How many add-ons are set up at a time.
const WORKERS: usize = 4;
/// After how long the hub is asked again whether it has add-ons.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
/// After so many tries, the log says why there are no add-ons.
const LOGGED_AT: usize = 4;

/// Settings of the controllers of add-ons.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) cluster: String,
    /// The agent's own secrets, which no add-on may use.
    pub(crate) own_secrets: Vec<ObjectKey>,
    /// How agents of add-ons authenticate to the hub's API server.
    pub(crate) driver: KubeClientDriver,
    /// The kubeconfig for the hub that add-ons get; it names certificate and key, or the token, as files beside it.
    pub(crate) kubeconfig: String,
    /// The life time to ask for in certificates, in seconds; `None` leaves it to the hub.
    pub(crate) certificate_seconds: Option<i32>,
    /// The life time to ask for in tokens, in seconds.
    pub(crate) token_seconds: i64,
    /// How often leases are polled.
    pub(crate) lease_period: Duration,
}

/// The clusters on which the agents of add-ons run.
#[derive(Clone)]
pub(crate) struct HostClusters {
    pub(crate) managed: Informers,
    /// The cluster that this agent runs on.
    pub(crate) management: Informers,
}

impl HostClusters {
    fn informers(&self, host: Host) -> &Informers {
        match host {
            Host::Managed => &self.managed,
            Host::Management => &self.management,
        }
    }

    fn client(&self, host: Host) -> &Client {
        self.informers(host).client()
    }
}

/// Starts the controllers as soon as the hub has accepted the cluster and serves add-ons; they end with `context`.
pub(crate) fn start(context: &Context, hub: &Informers, hosts: HostClusters, settings: Settings) {
    let (part, hub) = (context.clone(), hub.clone());
    let starting = async move {
        accepted(&hub.all(WatchFilter::named(&settings.cluster))).await;
        served(&hub, &settings.cluster).await;
        run(&part, &hub, hosts, settings);
    };
    context.spawn(starting.instrument(Span::current()));
}

fn run(context: &Context, hub: &Informers, hosts: HostClusters, settings: Settings) {
    let addons: Cache<ManagedClusterAddOn> = hub.namespaced(&settings.cluster, WatchFilter::all());
    let (requests, settings) = (Requests::of(hub, &settings.cluster), Arc::new(settings));
    context.run(AddOnHealth::new(hub.client().clone(), addons.clone(), hosts.clone(), settings.clone()), WORKERS);
    context.run(Registrations::new(context, requests, addons, hosts, settings), WORKERS);
}

/// Waits until the hub has accepted the cluster: before, the agent has no permission to read add-ons.
async fn accepted(clusters: &Cache<ManagedCluster>) {
    let (sender, mut receiver) = signal::channel(());
    clusters.subscribe(move |change| match is_accepted(change.object()) {
        // There is no receiver if the agent has ended in the meantime.
        true => {
            sender.send_replace(());
            ControlFlow::Break(())
        }
        false => ControlFlow::Continue(()),
    });
    // An error means that the subscriber was dropped: it has sent, and unsubscribed.
    let _ = receiver.changed().await;
}

/// Waits until the agent can list add-ons on the hub. Their CRD may be installed later, or never.
async fn served(hub: &Informers, cluster: &str) {
    let addons: Api<ManagedClusterAddOn> = Api::namespaced(hub.client().clone(), cluster);
    let (mut delays, mut tries) = (RETRY.delays(), 0);
    while let Err(error) = list_one(&addons).await {
        let (text, retry_in) = (chain(&error), delays.next_delay());
        tries += 1;
        if !error.is_not_found() && !error.is_denied() {
            warn!(error = text, ?retry_in, "cannot find out whether the hub has add-ons, retrying");
        } else if tries == LOGGED_AT {
            info!(error = text, "no add-ons: the hub does not know them or does not let the agent list them");
        } else {
            debug!(error = text, "no add-ons yet");
        }
        tokio::time::sleep(retry_in).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Mock;

    fn refusal(code: u16) -> (u16, Value) {
        (code, json!({"kind": "Status", "code": code, "status": "Failure", "message": "", "reason": ""}))
    }

    #[tokio::test(start_paused = true)]
    async fn a_hub_that_does_not_know_addons_yet_is_asked_until_it_does() {
        let list = json!({"metadata": {"resourceVersion": "1"}, "items": []});
        let mock = Mock::answering(vec![refusal(403), refusal(404), refusal(404), refusal(500), (200, list)]);
        let start = tokio::time::Instant::now();
        served(&Informers::new(mock.client(), Context::new()), "cluster1").await;
        assert_eq!(mock.asked().len(), 5);
        let (waited, longest) = (start.elapsed().as_secs(), 1 + 2 + 4 + 8);
        assert!((longest / 2..=longest).contains(&waited), "{waited} s");
    }

    #[tokio::test]
    async fn a_cluster_is_accepted_when_the_hub_says_so() {
        let cluster = |status: &str| {
            let accepted = json!({
                "type": "HubAcceptedManagedCluster", "status": status, "reason": "x", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            json!([{"metadata": {"name": "cluster1"}, "spec": {}, "status": {"conditions": [accepted]}}])
        };
        let clusters = |list: Value| {
            let mock = Mock::default().listing("/apis/cluster.open-cluster-management.io/v1/managedclusters", &list);
            Informers::new(mock.client(), Context::new()).all(WatchFilter::named("cluster1"))
        };
        accepted(&clusters(cluster("True"))).await;
        let denied = clusters(cluster("False"));
        denied.synced().await;
        assert!(futures::poll!(Box::pin(accepted(&denied))).is_pending());
    }
}
