//! The works of each add-on.

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ocm_api::work::v1::ManifestWork;
use ocm_runtime::{Cache, Change, ObjectKey};

use crate::addon::facts::Work;

/// The works of each add-on, kept up to date by the informer of works. One namespace can have the works of a whole fleet: that
/// of a cluster that hosts the agents of others.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkIndex(Arc<Mutex<ByAddOn>>);

/// The works by their own keys, by the key of their ManagedClusterAddOn.
type ByAddOn = HashMap<ObjectKey, BTreeMap<ObjectKey, Work>>;

impl WorkIndex {
    /// An index that is up to date as long as it or a clone of it exists.
    pub(super) fn of(cache: &Cache<ManifestWork>) -> Self {
        let index = Self::default();
        let weak = Arc::downgrade(&index.0);
        cache.subscribe(move |change| {
            let Some(works) = weak.upgrade() else { return ControlFlow::Break(()) };
            Self(works).take(change);
            ControlFlow::Continue(())
        });
        index
    }

    /// The works of an add-on in these namespaces, by namespace and name.
    pub(super) fn of_addon(&self, addon: &ObjectKey, namespaces: &[&str]) -> Vec<Work> {
        let works = self.lock();
        let all = works.get(addon).into_iter().flatten();
        all.filter(|(key, _)| namespaces.contains(&&*key.namespace)).map(|(_, work)| work.clone()).collect()
    }

    fn take(&self, change: Change<'_, ManifestWork>) {
        let key = ObjectKey::of(change.object().as_ref());
        let mut works = self.lock();
        match change {
            Change::Added(_) => {}
            Change::Updated { old, .. } | Change::Deleted(old) => remove(&mut works, &key, old),
        }
        if !matches!(change, Change::Deleted(_))
            && let Some(work) = Work::of(change.object())
        {
            works.entry(work.addon.clone()).or_default().insert(key, work);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ByAddOn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remove(works: &mut ByAddOn, key: &ObjectKey, old: &ManifestWork) {
    let Some(addon) = Work::of(old).map(|work| work.addon) else { return };
    let Some(known) = works.get_mut(&addon) else { return };
    known.remove(key);
    if known.is_empty() {
        works.remove(&addon);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A work of add-on `a` of a cluster, in a namespace.
    fn work(namespace: &str, cluster: &str) -> Arc<ManifestWork> {
        let labels = json!({"open-cluster-management.io/addon-name": "a",
                            "open-cluster-management.io/addon-namespace": cluster});
        let metadata = json!({"namespace": namespace, "name": "w", "labels": labels});
        Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap())
    }

    #[test]
    fn a_work_is_found_by_its_addon_wherever_it_is_and_nothing_is_kept_of_deleted_ones() {
        let index = WorkIndex::default();
        let (hosted, other) = (work("host", "c1"), work("host", "c2"));
        index.take(Change::Added(&hosted));
        let found = |cluster, namespaces: &[&str]| index.of_addon(&ObjectKey::new(cluster, "a"), namespaces).len();
        assert_eq!((found("c1", &["c1", "host"]), found("c1", &["c1"]), found("host", &["host"])), (1, 0, 0));
        index.take(Change::Updated { old: &hosted, new: &other });
        assert_eq!((found("c1", &["host"]), found("c2", &["host"])), (0, 1), "its label changed");
        index.take(Change::Deleted(&other));
        assert!(index.lock().is_empty());
    }
}
