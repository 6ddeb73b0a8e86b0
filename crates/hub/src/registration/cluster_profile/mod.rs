//! ClusterProfiles: clusters as tools of other projects see them, in the namespaces that may use them.
//!
//! A namespace with a bound set binding → a ClusterProfile for each cluster of the set, with labels and status of the
//! ManagedCluster ([`plan`]). Which namespace has which clusters is in [`selection`]. A profile is ours if it has the label
//! and the manager that the hub gives it. Only such profiles are written or deleted; one of somebody else that has the name
//! of a cluster is reported in an event.

mod plan;
mod selection;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use ocm_api::{cluster::v1::ManagedCluster, multicluster::v1alpha1::ClusterProfile};
use ocm_runtime::{Cache, Controller, ControllerBuilder, ObjectKey, Requeue, error::chain, events::NewEvent, write};
use tracing::{info, warn};

use self::{
    plan::Step,
    selection::{Selected, Selection},
};
use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
};

/// The reason of the event about a profile that is not ours.
const NAME_TAKEN: &str = "ClusterProfileNameTaken";

/// See the module.
#[derive(Debug)]
pub(crate) struct ClusterProfileController {
    hub: HubContext,
    clusters: Cache<ManagedCluster>,
    profiles: Cache<ClusterProfile>,
    selection: Selection,
    /// Profiles of others that were reported, by uid.
    reported: Mutex<BTreeSet<String>>,
}

/// A cluster in a namespace, and its profile there.
#[derive(Debug)]
pub(crate) struct Observed {
    cluster: Option<Arc<ManagedCluster>>,
    profile: Option<Arc<ClusterProfile>>,
    namespace: String,
    selected: Selected,
}

impl ClusterProfileController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        Self {
            clusters: caches::clusters(&hub.informers),
            profiles: caches::cluster_profiles(&hub.informers),
            selection: Selection::new(&hub.informers),
            reported: Mutex::default(),
            hub: hub.clone(),
        }
    }

    fn api(&self, namespace: &str) -> Api<ClusterProfile> {
        Api::namespaced(self.hub.client.clone(), namespace)
    }

    /// Whether the namespace may use the cluster. A cluster that the cache lacks may be one that it could not parse.
    async fn selected(&self, key: &ObjectKey, cluster: Option<&ManagedCluster>) -> Result<Selected> {
        match cluster {
            Some(cluster) if write::is_deleting(cluster) => Ok(Selected::No),
            Some(cluster) => Ok(self.selection.of(&key.namespace, cluster.labels())),
            None if self.hub.cluster_exists(&key.name).await? => Ok(Selected::Unknown),
            None => Ok(Selected::No),
        }
    }

    async fn write(&self, observed: &Observed, step: Step) -> Result<Option<Arc<ClusterProfile>>> {
        let api = self.api(&observed.namespace);
        let (profile, written) = match (step, observed.profile.as_ref()) {
            (Step::Create(new), _) => (None, self.create(&api, &new).await?),
            (Step::Label(new), Some(old)) => (Some(old.clone()), write::patch(&api, old, &new).await?),
            (Step::Delete, Some(old)) => {
                write::delete(&api, old.as_ref()).await?;
                info!(profile = %ObjectKey::of(old.as_ref()), "deleted a ClusterProfile");
                (None, None)
            }
            (Step::Report, Some(other)) => {
                self.report_taken(other).await;
                (None, None)
            }
            (Step::Keep, profile) => (profile.cloned(), None),
            (Step::None | Step::Label(_) | Step::Delete | Step::Report, _) => (None, None),
        };
        written.iter().for_each(|written| self.profiles.record_write(written.clone()));
        Ok(written.map(Arc::new).or(profile))
    }

    /// Creates a profile, unless its namespace is being deleted.
    async fn create(&self, api: &Api<ClusterProfile>, new: &ClusterProfile) -> Result<Option<ClusterProfile>> {
        let namespace = new.namespace().unwrap_or_default();
        match write::create(api, new).await {
            Ok(created) => Ok(Some(created)),
            Err(error) if matches!(error.code(), Some(403 | 404)) && self.is_leaving(&namespace).await? => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn is_leaving(&self, namespace: &str) -> Result<bool> {
        let api = Api::<k8s_openapi::api::core::v1::Namespace>::all(self.hub.client.clone());
        let namespace = write::get(&api, namespace).await?;
        Ok(namespace.is_none_or(|namespace| write::is_deleting(&namespace)))
    }

    /// Reports a profile of somebody else, once.
    async fn report_taken(&self, profile: &ClusterProfile) {
        let is_new = {
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            reported.insert(profile.uid().unwrap_or_default())
        };
        if !is_new {
            return;
        }
        let note = plan::name_taken(profile);
        warn!("{note}");
        let event = NewEvent { type_: "Warning", reason: NAME_TAKEN, note };
        let namespace = profile.namespace().unwrap_or_default();
        if let Err(error) = self.hub.recorder.record(&namespace, profile, event).await {
            warn!(error = %chain(&error), "failed to record an event");
        }
    }
}

impl Controller for ClusterProfileController {
    const NAME: &'static str = "cluster-profile";
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Step;
    type Applied = Option<Arc<ClusterProfile>>;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        builder.watches(&self.profiles, |change| Some(ObjectKey::of(change.object().as_ref())));
        let selection = self.selection.clone();
        builder.watches(&self.clusters, move |change| selection.of_cluster(change));
        let (selection, profiles) = (self.selection.clone(), self.profiles.clone());
        builder.watches(&self.selection.bindings, move |change| {
            let namespaces = selection.of_binding(change);
            selection.keys(&namespaces, &profiles)
        });
        let (selection, profiles) = (self.selection.clone(), self.profiles.clone());
        builder.watches(&self.selection.sets, move |change| {
            let namespaces = selection.of_set(change);
            selection.keys(&namespaces, &profiles)
        });
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>> {
        let (cluster, profile) = (self.clusters.named(&key.name), self.profiles.get(key));
        if cluster.is_none() && profile.is_none() {
            return Ok(None);
        }
        let selected = self.selected(key, cluster.as_deref()).await?;
        Ok(Some(Observed { cluster, profile, namespace: key.namespace.clone(), selected }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Step {
        plan::plan(observed)
    }

    async fn apply(&self, observed: &Observed, step: Step) -> Result<Option<Arc<ClusterProfile>>> {
        self.write(observed, step).await
    }

    async fn report(&self, observed: &Observed, profile: Self::Applied, now: Timestamp) -> Result<Requeue> {
        let (Some(cluster), Some(old)) = (&observed.cluster, profile) else { return Ok(Requeue::OnChange) };
        let mut new = ClusterProfile::clone(&old);
        new.status = Some(plan::status(&old, cluster, now));
        if let Some(written) = write::patch_status(&self.api(&observed.namespace), &old, &new).await? {
            self.profiles.record_write(written);
        }
        Ok(Requeue::OnChange)
    }
}
