//! What the decision on a set depends on.

use ocm_runtime::ObjectKey;

use super::ReplicaSetController;
use crate::work::decision::Inputs;

impl ReplicaSetController {
    /// `None` if there is no such set.
    pub(super) fn inputs(&self, key: &ObjectKey) -> Option<Inputs> {
        let (set, tracker) = (self.store.set(key)?, self.store.tracker());
        let placements = set.placements.iter().enumerate().map(|(index, reference)| {
            let snapshot = tracker.placement(&ObjectKey::new(key.namespace.clone(), reference.name.to_string()))?;
            Some(self.recent.followed(key, index, snapshot))
        });
        Some(Inputs {
            placements: placements.collect(),
            has_unreadable: tracker.unreadable_in(&key.namespace).is_some(),
            works: self.store.works(key),
            failures: self.store.failures(key),
            before: self.store.decision(key),
            set,
        })
    }
}
