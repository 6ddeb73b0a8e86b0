//! Makes the decisions: observes everything that the decision on an add-on depends on, and publishes what was decided.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::ResourceExt as _;
use ocm_api::addon::v1alpha1::{ClusterManagementAddOn, ManagedClusterAddOn};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, Requeue};

use super::{Decision, Inputs, decide};
use crate::{
    addon::{
        facts::{self, Management},
        sources,
        store::{AddOnStore, StoreEvent},
    },
    context::HubContext,
    error::{Error, Result},
};

/// How long to wait for more changes of installations before deciding: while an add-on is being installed on a large fleet,
/// one changes every few milliseconds.
const COALESCE: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Debug)]
pub(crate) struct DecisionController {
    store: AddOnStore,
    managements: Cache<ClusterManagementAddOn>,
    addons: Cache<ManagedClusterAddOn>,
}

/// An add-on, and what the decision on it depends on.
#[derive(Debug)]
pub(crate) struct Observed {
    addon: String,
    inputs: Inputs,
}

impl DecisionController {
    pub(crate) fn new(hub: &HubContext, store: AddOnStore) -> Self {
        let (managements, addons) = (sources::managements(&hub.informers), sources::addons(&hub.informers));
        Self { store, managements, addons }
    }

    fn inputs(&self, addon: &str) -> Inputs {
        let management = self.managements.named(addon).and_then(|management| Management::of(&management)).map(Arc::new);
        let followed = management.as_ref().map(|management| management.followed()).unwrap_or_default();
        let tracker = self.store.tracker();
        let is_unreadable = |namespace: &str| tracker.unreadable_in(namespace).is_some();
        Inputs {
            placements: followed.iter().map(|followed| tracker.placement(&followed.placement)).collect(),
            has_unreadable: followed.iter().any(|followed| is_unreadable(&followed.placement.namespace)),
            installed: self.store.installed(addon),
            failures: self.store.failures(addon),
            before: self.store.decision(addon).unwrap_or_default(),
            management,
        }
    }
}

impl Controller for DecisionController {
    const NAME: &'static str = "addon-decision";
    type Key = String;
    type Observed = Observed;
    type Plan = Decision;
    type Applied = Option<Duration>;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let queue = builder.queue();
        self.store.listen(move |event| {
            if let StoreEvent::Failure { addon } = event {
                queue.add_after(addon.clone(), COALESCE);
            }
        });
        builder.watches(&self.managements, |change| [change.object().name_any()]);
        let store = self.store.clone();
        self.store.tracker().setup(builder, move |placement| store.followers(placement));
        let queue = builder.queue();
        builder.watches(&self.addons, move |change| {
            if is_relevant(change) {
                queue.add_after(change.object().name_any(), COALESCE);
            }
            None
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let inputs = self.inputs(key);
        let is_known = inputs.management.is_some() || self.store.decision(key).is_some();
        Ok(is_known.then(|| Observed { addon: key.clone(), inputs }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Decision {
        decide(&observed.inputs, now)
    }

    async fn apply(&self, observed: &Observed, decision: Decision) -> Result<Option<Duration>> {
        let recheck_after = decision.recheck_after.and_then(|after| Duration::try_from(after).ok());
        self.store.publish(&observed.addon, decision);
        Ok(recheck_after)
    }

    async fn report(&self, _: &Observed, recheck_after: Option<Duration>, _: Timestamp) -> Result<Requeue> {
        Ok(recheck_after.map_or(Requeue::OnChange, Requeue::After))
    }
}

/// Whether an installation exists, is deleted, or is configured since this change.
fn is_relevant(change: Change<'_, ManagedClusterAddOn>) -> bool {
    match change {
        Change::Added(_) | Change::Deleted(_) => true,
        Change::Updated { old, new } => facts::is_configured(old) != facts::is_configured(new),
    }
}
