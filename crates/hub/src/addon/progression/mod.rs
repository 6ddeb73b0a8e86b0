//! Says in the status of an add-on how its installation goes on the clusters of each placement.
//!
//! While an add-on is being installed, its status is written at most once in [`PAUSE`], whatever the number of clusters;
//! as soon as nothing is left to do, at once.

mod plan;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::Api;
use ocm_api::addon::v1alpha1::ClusterManagementAddOn;
use ocm_runtime::{Cache, ControllerBuilder, Requeue, StatusController, write};

use super::{
    index::{Index, News, Progress},
    sources,
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
    parts: HubContext,
    index: Index,
    managements: Cache<ClusterManagementAddOn>,
}

/// An add-on that the hub looks after, and how its installation goes.
#[derive(Debug)]
pub(crate) struct Observed {
    management: Arc<ClusterManagementAddOn>,
    progress: Vec<Progress>,
}

impl ProgressionController {
    pub(crate) fn new(parts: &HubContext) -> Self {
        let managements = sources::managements(&parts.informers);
        Self { index: parts.addon_index(), managements, parts: parts.clone() }
    }
}

impl StatusController for ProgressionController {
    const NAME: &'static str = "addon-progression";
    type Key = String;
    type Observed = Observed;
    type Plan = Box<ClusterManagementAddOn>;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let queue = builder.queue();
        self.index.setup(builder, move |news| match news {
            News::Progress { addon, is_settled: true } => queue.add(addon.clone()),
            News::Progress { addon, is_settled: false } => queue.add_after(addon.clone(), PAUSE),
            News::Installation(_) => {}
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let progress = self.index.ask(|index| index.progress(key));
        let management = self.managements.named(key);
        Ok(management.zip(progress).map(|(management, progress)| Observed { management, progress }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Box<ClusterManagementAddOn> {
        Box::new(plan::plan(&observed.management, &observed.progress, now))
    }

    async fn report(&self, observed: &Observed, new: Box<ClusterManagementAddOn>, _: Timestamp) -> Result<Requeue> {
        let api: Api<ClusterManagementAddOn> = Api::all(self.parts.client.clone());
        if let Some(written) = write::patch_status(&api, observed.management.as_ref(), &new).await? {
            self.managements.record_write(written);
        }
        Ok(Requeue::OnChange)
    }
}
