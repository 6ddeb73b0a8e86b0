//! [`Trigger`]: reconciles an add-on after a change that the manager does not watch.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ocm_api::addon::v1alpha1::ManagedClusterAddOn;
use ocm_runtime::{Cache, ObjectKey, Queue};

/// Reconciles an add-on after a change that the manager does not watch. From
/// [`AddonManager::trigger`](crate::AddonManager::trigger) or [`SetupContext::trigger`](crate::SetupContext::trigger).
#[derive(Clone, Debug, Default)]
pub struct Trigger {
    addons: Arc<Mutex<BTreeMap<String, Connection>>>,
}

type Connection = (Queue<ObjectKey>, Cache<ManagedClusterAddOn>);

impl Trigger {
    /// Reconciles an add-on on a cluster as soon as a worker is free. No-op before the manager runs: it starts with every
    /// add-on on every cluster.
    pub fn reconcile(&self, cluster: &str, addon: &str) {
        if let Some((queue, _)) = self.lock().get(addon) {
            queue.add(ObjectKey::new(cluster, addon));
        }
    }

    /// Reconciles an add-on on all clusters that have it.
    pub fn reconcile_all(&self, addon: &str) {
        let Some((queue, addons)) = self.lock().get(addon).cloned() else { return };
        addons.keys().into_iter().for_each(|key| queue.add(key));
    }

    /// Connects it to the controller of an add-on.
    pub(crate) fn connect(&self, addon: &str, queue: Queue<ObjectKey>, addons: Cache<ManagedClusterAddOn>) {
        self.lock().insert(addon.to_owned(), (queue, addons));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Connection>> {
        self.addons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
