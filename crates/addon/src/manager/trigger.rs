//! [`Trigger`]: looking at an add-on again because something changed that no watch sees.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ocm_runtime::{ObjectKey, Queue};

/// Lets a manager look at an add-on on a cluster again, because something changed that it does not watch. From
/// [`AddonManager::trigger`](crate::AddonManager::trigger).
#[derive(Clone, Debug, Default)]
pub struct Trigger {
    queues: Arc<Mutex<BTreeMap<String, Queue<ObjectKey>>>>,
}

impl Trigger {
    /// Asks for the manifests of an add-on on a cluster again, as soon as a worker is free. Before the manager runs this
    /// does nothing: it begins with every add-on on every cluster.
    pub fn look_again(&self, cluster: &str, addon: &str) {
        if let Some(queue) = self.lock().get(addon) {
            queue.add(ObjectKey::new(cluster, addon));
        }
    }

    /// Connects it to the controller of an add-on.
    pub(crate) fn connect(&self, addon: &str, queue: Queue<ObjectKey>) {
        self.lock().insert(addon.to_owned(), queue);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Queue<ObjectKey>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
