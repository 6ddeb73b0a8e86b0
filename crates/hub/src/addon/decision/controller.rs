//! Makes the decisions: observes everything that the decision on an add-on depends on, and publishes what was decided.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use kube::ResourceExt as _;
use ocm_api::addon::v1alpha1::{ClusterManagementAddOn, ManagedClusterAddOn};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, Requeue};

use super::{Decision, Inputs, decide, recent::RecentDecisions};
use crate::{
    addon::{
        facts::{self, Management},
        sources,
        store::{AddOnStore, StoreEvent},
    },
    context::HubContext,
    error::{Error, Result},
};

/// How long to wait, at least, for more changes of installations before deciding: while an add-on is being installed on a
/// large fleet, one changes every few milliseconds. See [`RecentDecisions::pause`].
const COALESCE: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Debug)]
pub(crate) struct DecisionController {
    store: AddOnStore,
    managements: Cache<ClusterManagementAddOn>,
    addons: Cache<ManagedClusterAddOn>,
    recent: RecentDecisions,
}

/// An add-on, and what the decision on it depends on.
#[derive(Debug)]
pub(crate) struct Observed {
    addon: String,
    inputs: Inputs,
    since: Instant,
}

impl DecisionController {
    pub(crate) fn new(hub: &HubContext, store: AddOnStore) -> Self {
        let (managements, addons) = (sources::managements(&hub.informers), sources::addons(&hub.informers));
        Self { store, managements, addons, recent: RecentDecisions::default() }
    }

    fn inputs(&self, addon: &str) -> Inputs {
        let management = self.managements.named(addon).and_then(|management| Management::of(&management)).map(Arc::new);
        let followed = management.as_ref().map(|management| management.followed()).unwrap_or_default();
        let tracker = self.store.tracker();
        let is_unreadable = |namespace: &str| tracker.unreadable_in(namespace).is_some();
        let placements: Vec<_> = followed.iter().map(|followed| tracker.placement(&followed.placement)).collect();
        Inputs {
            chosen: self.recent.chosen(addon, &placements),
            placements,
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
        let (queue, recent) = (builder.queue(), self.recent.clone());
        let add = move |addon: String, least| {
            let pause = recent.pause(&addon, least);
            queue.add_after(addon, pause);
        };
        builder.watches(&self.managements, |change| [change.object().name_any()]);
        self.store.listen({
            let add = add.clone();
            move |event| {
                if let StoreEvent::Failure { addon } = event {
                    add(addon.clone(), COALESCE);
                }
            }
        });
        self.store.tracker().setup(builder, {
            let (store, add) = (self.store.clone(), add.clone());
            move |placement| {
                store.followers(placement).into_iter().for_each(|addon| add(addon, Duration::ZERO));
                None::<String>
            }
        });
        builder.watches(&self.addons, move |change| {
            if is_relevant(change) {
                add(change.object().name_any(), COALESCE);
            }
            None
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let since = Instant::now();
        let inputs = self.inputs(key);
        let is_known = inputs.management.is_some() || self.store.decision(key).is_some();
        Ok(is_known.then(|| Observed { addon: key.clone(), inputs, since }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Decision {
        decide(&observed.inputs, now)
    }

    async fn apply(&self, observed: &Observed, decision: Decision) -> Result<Option<Duration>> {
        let recheck_after = decision.recheck_after.and_then(|after| Duration::try_from(after).ok());
        let Observed { addon, inputs, since } = observed;
        self.store.publish(addon, decision);
        match inputs.management {
            Some(_) => self.recent.record(addon, &inputs.chosen, since.elapsed()),
            None => self.recent.forget(addon),
        }
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
