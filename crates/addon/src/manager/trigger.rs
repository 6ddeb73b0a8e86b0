//! [`Trigger`]: looking at an add-on again because something changed that no watch sees.

use std::sync::{Arc, OnceLock};

use ocm_runtime::{ObjectKey, Queue};

/// Lets a manager look at an add-on on a cluster again, because something changed that it does not watch. From
/// [`AddonManager::trigger`](crate::AddonManager::trigger).
#[derive(Clone, Debug, Default)]
pub struct Trigger {
    queue: Arc<OnceLock<Queue<ObjectKey>>>,
}

impl Trigger {
    /// Asks for the manifests of an add-on on a cluster again, as soon as a worker is free. Before the manager runs this
    /// does nothing: it begins with every add-on on every cluster.
    pub fn look_again(&self, cluster: &str, addon: &str) {
        if let Some(queue) = self.queue.get() {
            queue.add(ObjectKey::new(cluster, addon));
        }
    }

    /// Connects it to a manager, once.
    pub(crate) fn connect(&self, queue: Queue<ObjectKey>) {
        _ = self.queue.set(queue);
    }
}
