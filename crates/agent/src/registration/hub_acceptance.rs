//! Makes an agent with several hubs leave one that no longer accepts its cluster.

use jiff::Timestamp;
use ocm_api::cluster::v1::ManagedCluster;
use ocm_runtime::{Cache, Controller, ControllerBuilder, Error, Informers, informer::WatchFilter};

use crate::agent::{Leave, StayOrLeave};

/// Follows `hubAcceptsClient` of the ManagedCluster.
pub(crate) struct HubAcceptance {
    clusters: Cache<ManagedCluster>,
    leave: Leave,
}

impl HubAcceptance {
    pub(crate) fn new(hub: &Informers, cluster: &str, leave: Leave) -> Self {
        Self { clusters: hub.all(WatchFilter::named(cluster)), leave }
    }
}

impl Controller for HubAcceptance {
    const NAME: &'static str = "hub-acceptance";
    type Key = String;
    /// Whether the hub accepts the cluster.
    type Observed = bool;
    type Plan = StayOrLeave;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.watches(&self.clusters, |change| change.object().metadata.name.clone());
    }

    async fn observe(&self, key: &String) -> Result<Option<bool>, Error> {
        Ok(self.clusters.named(key).map(|cluster| cluster.spec.hub_accepts_client))
    }

    fn plan(accepts: &bool, _: Timestamp) -> StayOrLeave {
        if *accepts { StayOrLeave::Stay } else { StayOrLeave::Leave }
    }

    async fn apply(&self, _: &bool, plan: StayOrLeave) -> Result<(), Error> {
        if plan == StayOrLeave::Leave {
            self.leave.because("the hub no longer accepts this cluster (hubAcceptsClient is false)".into());
        }
        Ok(())
    }
}
