//! Sets `Available` of the add-ons of a cluster to Unknown if that of the cluster is.
//!
//! Condition `ManagedClusterConditionAvailable` is Unknown → the same status, reason and message as condition `Available`
//! of every add-on in the cluster's namespace. Only the agent sets it to True again.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{Api, ResourceExt as _};
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    cluster::v1::ManagedCluster,
    conditions::{addon, cluster::AVAILABLE, status},
};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, conditions, error::all, write};

use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
    registration::status::condition,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct AddonHealthController {
    hub: HubContext,
    clusters: Cache<ManagedCluster>,
    addons: Cache<ManagedClusterAddOn>,
}

/// The condition of a cluster that is Unknown, and its add-ons.
#[derive(Debug)]
pub(crate) struct Observed {
    unknown: Condition,
    addons: Vec<Arc<ManagedClusterAddOn>>,
}

/// An add-on as it is, and as it should be.
type Edit = (Arc<ManagedClusterAddOn>, ManagedClusterAddOn);

impl AddonHealthController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let addons = caches::addons(&hub.informers);
        Self { clusters: caches::clusters(&hub.informers), addons, hub: hub.clone() }
    }

    async fn write(&self, (old, new): &Edit) -> Result<()> {
        let api: Api<ManagedClusterAddOn> =
            Api::namespaced(self.hub.client.clone(), &old.namespace().unwrap_or_default());
        let written = write::patch_status(&api, old, new).await?;
        written.into_iter().for_each(|addon| self.addons.record_write(addon));
        Ok(())
    }
}

impl Controller for AddonHealthController {
    const NAME: &'static str = "addon-health";
    type Key = String;
    type Observed = Observed;
    type Plan = Vec<Edit>;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.watches(&self.clusters, |change| is_relevant(change).then(|| change.object().name_any()));
        builder.watches(&self.addons, |change| match change {
            Change::Added(addon) => addon.namespace(),
            Change::Updated { .. } | Change::Deleted(_) => None,
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let Some(unknown) = self.clusters.named(key).as_deref().and_then(unknown).cloned() else { return Ok(None) };
        Ok(Some(Observed { unknown, addons: self.addons.in_namespace(key) }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Vec<Edit> {
        let edits = observed
            .addons
            .iter()
            .map(|addon| (addon.clone(), with_condition_of_cluster(addon, &observed.unknown, now)));
        edits.filter(|(old, new)| **old != *new).collect()
    }

    async fn apply(&self, _: &Observed, edits: Vec<Edit>) -> Result<()> {
        let mut results = Vec::new();
        for edit in &edits {
            results.push(self.write(edit).await);
        }
        all(results)
    }
}

/// The condition Available of a cluster, if it is Unknown.
fn unknown(cluster: &ManagedCluster) -> Option<&Condition> {
    condition(cluster, AVAILABLE).filter(|condition| condition.status == status::UNKNOWN)
}

fn is_relevant(change: Change<'_, ManagedCluster>) -> bool {
    match change {
        Change::Added(new) => unknown(new).is_some(),
        Change::Updated { old, new } => unknown(new).is_some() && unknown(old) != unknown(new),
        Change::Deleted(_) => false,
    }
}

/// The add-on with the cluster's condition.
fn with_condition_of_cluster(addon: &ManagedClusterAddOn, unknown: &Condition, now: Timestamp) -> ManagedClusterAddOn {
    let mut new = addon.clone();
    let mut copied = unknown.clone();
    copied.type_ = addon::AVAILABLE.into();
    copied.last_transition_time = Time(now);
    copied.observed_generation = None;
    conditions::put(&mut new.status.get_or_insert_default().conditions, copied);
    new
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        addon::testing::addon,
        testing::{cluster, now, with_condition},
    };

    fn unknown_cluster() -> ManagedCluster {
        with_condition(&cluster("c1"), AVAILABLE, "Unknown", "LeaseStopped")
    }

    fn plan(addons: Vec<ManagedClusterAddOn>) -> Vec<ManagedClusterAddOn> {
        let unknown = unknown(&unknown_cluster()).unwrap().clone();
        let observed = Observed { unknown, addons: addons.into_iter().map(Arc::new).collect() };
        AddonHealthController::plan(&observed, now()).into_iter().map(|(_, new)| new).collect()
    }

    #[test]
    fn every_addon_gets_status_reason_and_message_of_the_cluster_and_keeps_its_other_conditions() {
        let mut addon_a = addon("c1", "a", json!({}));
        let other = conditions::NewCondition::is_true("Configured", "R", "m").at(now(), None);
        addon_a.status.get_or_insert_default().conditions.push(other.clone());
        let planned = plan(vec![addon_a, addon("c1", "b", json!({}))]);
        assert_eq!(planned.len(), 2);
        let conditions = &planned[0].status.as_ref().unwrap().conditions;
        assert_eq!(conditions[0], other);
        let copied = &conditions[1];
        assert_eq!((copied.type_.as_str(), copied.status.as_str()), ("Available", "Unknown"));
        assert_eq!((copied.reason.as_str(), copied.message.as_str()), ("LeaseStopped", "m"));
        assert!(plan(planned).is_empty(), "it is written once");
    }

    #[test]
    fn only_a_cluster_that_becomes_unknown_is_relevant() {
        let (well, lost) = (Arc::new(cluster("c1")), Arc::new(unknown_cluster()));
        assert!(is_relevant(Change::Added(&lost)) && !is_relevant(Change::Added(&well)));
        assert!(is_relevant(Change::Updated { old: &well, new: &lost }));
        assert!(!is_relevant(Change::Updated { old: &lost, new: &lost }));
        assert!(!is_relevant(Change::Updated { old: &lost, new: &well }));
    }
}
