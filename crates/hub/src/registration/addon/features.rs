//! Labels clusters with the state of their add-ons, so that placements can select by it.
//!
//! The add-ons in a cluster's namespace and their condition `Available` → labels
//! `feature.open-cluster-management.io/addon-<name>` of the cluster. An add-on that is being deleted has no label.
//! A cluster without condition `Available` gets no labels.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use jiff::Timestamp;
use kube::ResourceExt as _;
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    cluster::v1::ManagedCluster,
    conditions::{addon, cluster::AVAILABLE, status},
    labels::{ADDON_AVAILABLE, ADDON_FEATURE_PREFIX, ADDON_UNHEALTHY, ADDON_UNREACHABLE},
};
use ocm_apimachinery::labels::is_key;
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, ObjectKey, conditions, informer::View, write};

use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
    registration::status::condition,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct AddonFeaturesController {
    hub: HubContext,
    clusters: Cache<ManagedCluster>,
    addons: Cache<ManagedClusterAddOn>,
    /// The state of each add-on, as the value of its label.
    features: View<&'static str>,
}

/// A cluster that has condition Available, and the labels of its add-ons.
#[derive(Debug)]
pub(crate) struct Observed {
    cluster: Arc<ManagedCluster>,
    features: BTreeMap<String, &'static str>,
}

impl AddonFeaturesController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let addons = caches::addons(&hub.informers);
        let features = addons.view(feature);
        Self { clusters: caches::clusters(&hub.informers), addons, features, hub: hub.clone() }
    }

    fn features_in(&self, cluster: &str) -> BTreeMap<String, &'static str> {
        let first = ObjectKey::new(cluster, "");
        self.features.read(|features| {
            let here = features.range((Bound::Included(first), Bound::Unbounded));
            let here = here.take_while(|(key, _)| key.namespace == cluster);
            here.filter_map(|(key, value)| Some((label(&key.name)?, *value))).collect()
        })
    }
}

impl Controller for AddonFeaturesController {
    const NAME: &'static str = "addon-features";
    type Key = String;
    type Observed = Observed;
    type Plan = Option<Box<ManagedCluster>>;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.watches(&self.clusters, |change| concerns(change).then(|| change.object().name_any()));
        builder.watches(&self.addons, |change| is_relevant(change).then(|| change.object().namespace()).flatten());
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let known = self.clusters.named(key).filter(|cluster| condition(cluster, AVAILABLE).is_some());
        let cluster = known.filter(|cluster| !write::is_deleting(cluster.as_ref()));
        Ok(cluster.map(|cluster| Observed { cluster, features: self.features_in(key) }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Option<Box<ManagedCluster>> {
        let features = observed.features.iter().map(|(key, value)| (key.clone(), (*value).to_owned()));
        let mut labels = observed.cluster.labels().clone();
        labels.retain(|key, _| !key.starts_with(ADDON_FEATURE_PREFIX));
        labels.extend(features);
        (labels != *observed.cluster.labels()).then(|| {
            let mut new = ManagedCluster::clone(&observed.cluster);
            *new.labels_mut() = labels;
            Box::new(new)
        })
    }

    async fn apply(&self, observed: &Observed, plan: Option<Box<ManagedCluster>>) -> Result<()> {
        if let Some(new) = plan {
            self.hub.writer().patch(&observed.cluster, &new).await?;
        }
        Ok(())
    }
}

fn concerns(change: Change<'_, ManagedCluster>) -> bool {
    let is_known = |cluster: &ManagedCluster| condition(cluster, AVAILABLE).is_some();
    match change {
        Change::Added(_) => true,
        Change::Updated { old, new } => is_known(old) != is_known(new) || old.labels() != new.labels(),
        Change::Deleted(_) => false,
    }
}

fn is_relevant(change: Change<'_, ManagedClusterAddOn>) -> bool {
    match change {
        Change::Updated { old, new } => feature(old) != feature(new),
        Change::Added(_) | Change::Deleted(_) => true,
    }
}

/// The state of an add-on; `None` if it is being deleted.
fn feature(addon: &ManagedClusterAddOn) -> Option<&'static str> {
    let conditions = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let available = conditions::find(conditions, addon::AVAILABLE).map(|condition| condition.status.as_str());
    let value = match available {
        Some(status::TRUE) => ADDON_AVAILABLE,
        Some(status::FALSE) => ADDON_UNHEALTHY,
        _ => ADDON_UNREACHABLE,
    };
    (!write::is_deleting(addon)).then_some(value)
}

/// The key of an add-on's label. A name can be longer than a label's: with such a key the API server would refuse all
/// labels of the cluster, so the add-on gets none.
fn label(addon: &str) -> Option<String> {
    let key = format!("{ADDON_FEATURE_PREFIX}{addon}");
    is_key(&key).then_some(key)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        addon::testing::addon,
        testing::{cluster, now},
    };

    fn planned(own: &[(&str, &str)], features: &[(&str, &'static str)]) -> Option<BTreeMap<String, String>> {
        let mut cluster = cluster("c1");
        cluster.labels_mut().extend(own.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let features = features.iter().map(|(name, value)| (label(name).unwrap(), *value)).collect();
        let observed = Observed { cluster: Arc::new(cluster), features };
        AddonFeaturesController::plan(&observed, now()).map(|new| new.labels().clone())
    }

    fn with_available(status: Option<&'static str>) -> ManagedClusterAddOn {
        let mut addon = addon("c1", "a", json!({}));
        let finding =
            |status| conditions::NewCondition { type_: "Available", status, reason: "R", message: String::new() };
        let conditions = status.map(|status| finding(status).at(now(), None)).into_iter().collect();
        addon.status.get_or_insert_default().conditions = conditions;
        addon
    }

    #[test]
    fn the_label_follows_the_condition_and_a_deleted_addon_has_none() {
        for (status, expected) in [
            (Some("True"), "available"),
            (Some("False"), "unhealthy"),
            (Some("Unknown"), "unreachable"),
            (None, "unreachable"),
        ] {
            assert_eq!(feature(&with_available(status)), Some(expected), "{status:?}");
        }
        let mut deleting = with_available(Some("True"));
        deleting.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
        assert_eq!(feature(&deleting), None);
    }

    #[test]
    fn labels_come_change_and_go_and_those_of_others_stay() {
        let key = "feature.open-cluster-management.io/addon-a";
        let labels = planned(&[("env", "prod")], &[("a", "available")]).unwrap();
        assert_eq!(labels, BTreeMap::from([("env".into(), "prod".into()), (key.into(), "available".into())]));
        assert_eq!(planned(&[(key, "available")], &[("a", "unhealthy")]).unwrap()[key], "unhealthy");
        assert_eq!(planned(&[("env", "prod"), (key, "x")], &[]).unwrap().len(), 1);
        assert_eq!(planned(&[(key, "available")], &[("a", "available")]), None);
    }

    #[test]
    fn an_addon_whose_name_does_not_fit_into_a_label_gets_none() {
        assert!(label(&"a".repeat(57)).is_some());
        assert_eq!(label(&"a".repeat(58)), None);
    }
}
