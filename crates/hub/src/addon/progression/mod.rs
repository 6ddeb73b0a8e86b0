//! Writes into the status of an add-on how far it has come on the clusters of each placement.
//!
//! While an add-on is being installed, its status is written at most once in [`PAUSE`], regardless of the number of clusters.
//! When it is installed everywhere, the status is written at once.

mod plan;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use ocm_api::addon::v1alpha1::ClusterManagementAddOn;
use ocm_runtime::{Cache, ControllerBuilder, Requeue, StatusController, write};

use super::{
    decision::Decision,
    sources,
    store::{AddOnStore, StoreEvent},
};
use crate::{
    context::HubContext,
    error::{Error, Result},
};

/// Time between two writes while an add-on is being installed.
const PAUSE: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(crate) struct ProgressionController {
    hub: HubContext,
    store: AddOnStore,
    managements: Cache<ClusterManagementAddOn>,
}

/// An add-on that the hub manages, and the progress of its installation.
#[derive(Debug)]
pub(crate) struct Observed {
    management: Arc<ClusterManagementAddOn>,
    decision: Arc<Decision>,
}

impl ProgressionController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let managements = sources::managements(&hub.informers);
        Self { store: hub.addon_store(), managements, hub: hub.clone() }
    }
}

impl StatusController for ProgressionController {
    const NAME: &'static str = "addon-progression";
    type Key = String;
    type Observed = Observed;
    type Plan = Box<ClusterManagementAddOn>;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let (queue, store) = (builder.queue(), self.store.clone());
        let add = move |addon: &str| match store.decision(addon) {
            Some(decision) if !decision.is_settled() => queue.add_after(addon.to_owned(), PAUSE),
            _ => queue.add(addon.to_owned()),
        };
        self.store.listen({
            let add = add.clone();
            move |event| {
                if let StoreEvent::Progress { addon } = event {
                    add(addon);
                }
            }
        });
        builder.watches(&self.managements, move |change| {
            add(&change.object().name_any());
            None
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let (management, decision) = (self.managements.named(key), self.store.decision(key));
        Ok(management.zip(decision).map(|(management, decision)| Observed { management, decision }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Box<ClusterManagementAddOn> {
        let progress = observed.decision.progress.as_deref().unwrap_or_default();
        Box::new(plan::plan(&observed.management, progress, now))
    }

    async fn report(&self, observed: &Observed, new: Box<ClusterManagementAddOn>, _: Timestamp) -> Result<Requeue> {
        let api: Api<ClusterManagementAddOn> = Api::all(self.hub.client.clone());
        if let Some(written) = write::patch_status(&api, observed.management.as_ref(), &new).await? {
            self.managements.record_write(written);
        }
        Ok(Requeue::OnChange)
    }
}
