//! Copies annotations of a cluster to its add-ons.
//!
//! An add-on that placements install is created with the cluster's annotations of the add-on group. When one of these
//! changes on the cluster, it changes on the add-ons too. Annotations that only the add-on has stay, while OCM removes even
//! those that people have set.
//!
//! The annotation in which version v1beta1 keeps a deprecated field of the add-on itself is not copied: those who may write
//! to the cluster, such as its agent, could otherwise write that field.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    annotations::{ADDON_CONFIGURATION, ADDON_INSTALL_NAMESPACE, ADDON_PREFIX},
    cluster::v1::ManagedCluster,
};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, error::all, write};

use super::{sources, store::AddOnStore};
use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
};

/// Annotations by key.
pub(crate) type Annotations = BTreeMap<String, String>;

/// The annotations of a cluster that its add-ons get too.
pub(crate) fn of_cluster(cluster: &ManagedCluster) -> Annotations {
    let is_copied = |key: &str| key.starts_with(ADDON_PREFIX) && key != ADDON_CONFIGURATION;
    let all = cluster.annotations().iter().filter(|(key, _)| is_copied(key));
    all.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Sets an annotation of an add-on, or removes it. The namespace of its agent is an annotation in version v1beta1, and
/// a field in the version that is written here.
pub(crate) fn set(addon: &mut ManagedClusterAddOn, key: &str, value: Option<&String>) {
    match value {
        _ if key == ADDON_INSTALL_NAMESPACE => addon.spec.install_namespace = value.cloned(),
        Some(value) => _ = addon.annotations_mut().insert(key.into(), value.clone()),
        None => _ = addon.annotations_mut().remove(key),
    }
}

/// An annotation of an add-on; the counterpart of [`set`].
fn get<'a>(addon: &'a ManagedClusterAddOn, key: &str) -> Option<&'a String> {
    if key == ADDON_INSTALL_NAMESPACE { addon.spec.install_namespace.as_ref() } else { addon.annotations().get(key) }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct AnnotationsController {
    hub: HubContext,
    store: AddOnStore,
    clusters: Cache<ManagedCluster>,
    addons: Cache<ManagedClusterAddOn>,
}

/// What has changed on a cluster, and its add-ons.
#[derive(Debug)]
pub(crate) struct Observed {
    cluster: String,
    before: Annotations,
    after: Annotations,
    addons: Vec<Arc<ManagedClusterAddOn>>,
}

/// An add-on as it is, and as it should be.
type Edit = (Arc<ManagedClusterAddOn>, ManagedClusterAddOn);

impl AnnotationsController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        Self {
            store: hub.addon_store(),
            clusters: caches::clusters(&hub.informers),
            addons: sources::addons(&hub.informers),
            hub: hub.clone(),
        }
    }

    async fn write(&self, (old, new): &Edit) -> Result<()> {
        let api: Api<ManagedClusterAddOn> =
            Api::namespaced(self.hub.client.clone(), &old.namespace().unwrap_or_default());
        let written = write::patch(&api, old, new).await?;
        written.into_iter().for_each(|addon| self.addons.record_write(addon));
        Ok(())
    }
}

impl Controller for AnnotationsController {
    const NAME: &'static str = "addon-annotations";
    type Key = String;
    type Observed = Observed;
    type Plan = Vec<Edit>;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let outstanding = self.hub.outstanding.clone();
        // An add-on that did not exist yet when its cluster changed.
        builder.watches(&self.addons, move |change| {
            change.object().namespace().filter(|cluster| outstanding.has(cluster))
        });
        let outstanding = self.hub.outstanding.clone();
        builder.watches(&self.clusters, move |change| {
            let (name, before) = changed(change)?;
            outstanding.begin(&name, before);
            Some(name)
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let Some(before) = self.hub.outstanding.take(key) else { return Ok(None) };
        let after = self.clusters.named(key).map(|cluster| of_cluster(&cluster)).unwrap_or_default();
        let followers = self.store.followers_on(key);
        let addons = followers.iter().filter_map(|key| self.addons.get(key)).collect();
        Ok(Some(Observed { cluster: key.clone(), before, after, addons }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Vec<Edit> {
        let stay = observed.addons.iter().filter(|addon| !write::is_deleting(addon.as_ref()));
        let edits = stay.map(|addon| (addon.clone(), edited(addon, &observed.before, &observed.after)));
        edits.filter(|(old, new)| **old != *new).collect()
    }

    async fn apply(&self, observed: &Observed, edits: Vec<Edit>) -> Result<()> {
        let mut results = Vec::new();
        for edit in &edits {
            results.push(self.write(edit).await);
        }
        let result = all(results);
        if result.is_err() {
            self.hub.outstanding.put_back(&observed.cluster, observed.before.clone());
        }
        result
    }
}

/// The cluster, and its annotations before the change, if any of these has changed.
fn changed(change: Change<'_, ManagedCluster>) -> Option<(String, Annotations)> {
    let Change::Updated { old, new } = change else { return None };
    let before = of_cluster(old);
    (before != of_cluster(new)).then(|| (new.name_any(), before))
}

/// The add-on with what has changed on the cluster. An annotation that was removed from the cluster stays on the add-on if
/// somebody has changed it there.
fn edited(addon: &ManagedClusterAddOn, before: &Annotations, after: &Annotations) -> ManagedClusterAddOn {
    let mut new = addon.clone();
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in keys.into_iter().filter(|key| before.get(*key) != after.get(*key)) {
        let is_as_given = get(addon, key) == before.get(key);
        if after.contains_key(key) || is_as_given {
            set(&mut new, key, after.get(key));
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::addon::testing;

    const VALUES: &str = "addon.open-cluster-management.io/values";
    const HOST: &str = "addon.open-cluster-management.io/hosting-cluster-name";

    fn annotations(all: &[(&str, &str)]) -> Annotations {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn after(own: &[(&str, &str)], before: &[(&str, &str)], after: &[(&str, &str)]) -> Annotations {
        let mut addon = testing::addon("c1", "a", json!({}));
        *addon.annotations_mut() = annotations(own);
        edited(&addon, &annotations(before), &annotations(after)).annotations().clone()
    }

    #[test]
    fn what_changes_on_the_cluster_changes_on_the_addon() {
        assert_eq!(after(&[], &[], &[(HOST, "h")]), annotations(&[(HOST, "h")]));
        assert_eq!(after(&[(HOST, "h")], &[(HOST, "h")], &[(HOST, "i")]), annotations(&[(HOST, "i")]));
        assert_eq!(after(&[(HOST, "h")], &[(HOST, "h")], &[]), annotations(&[]));
    }

    #[test]
    fn what_people_put_on_the_addon_stays() {
        let own = [(VALUES, "{}"), (HOST, "mine")];
        assert_eq!(after(&own, &[], &[("addon.open-cluster-management.io/x", "1")]).get(VALUES), Some(&"{}".into()));
        assert_eq!(after(&own, &[(HOST, "h")], &[]), annotations(&own), "not as the cluster had it");
    }

    #[test]
    fn the_install_namespace_is_a_field_here() {
        let mut addon = testing::addon("c1", "a", json!({}));
        set(&mut addon, ADDON_INSTALL_NAMESPACE, Some(&"ns".to_owned()));
        assert_eq!(addon.spec.install_namespace.as_deref(), Some("ns"));
        assert!(addon.annotations().is_empty());
    }

    #[test]
    fn only_annotations_of_the_addon_group_are_carried() {
        let mut cluster = ManagedCluster::default();
        *cluster.annotations_mut() = annotations(&[(HOST, "h"), ("example.com/x", "1"), (ADDON_CONFIGURATION, "{}")]);
        assert_eq!(of_cluster(&cluster), annotations(&[(HOST, "h")]));
    }
}
