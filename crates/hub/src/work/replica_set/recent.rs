//! What is kept of the last decision on each set: what the next one reuses, and how long to wait for the next one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ocm_runtime::ObjectKey;

use super::Observed;
use crate::{
    decisions::{PlacementDecisions, PlacementSnapshot},
    pace,
    work::decision::Followed,
};

/// The last decisions, by set. Cheap to clone; all clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentDecisions(Arc<Mutex<HashMap<ObjectKey, Recent>>>);

#[derive(Debug, Default)]
struct Recent {
    placements: Vec<Option<Followed>>,
    took: Duration,
}

impl RecentDecisions {
    /// A placement with its groups: those of the last decision if the placement has made no other decisions since.
    pub(super) fn followed(&self, set: &ObjectKey, index: usize, snapshot: PlacementSnapshot) -> Followed {
        let last = self.last(set, index).filter(|last| Arc::ptr_eq(&last.snapshot.decisions, &snapshot.decisions));
        match last {
            Some(last) => Followed { snapshot, ..last },
            None => grouped(snapshot),
        }
    }

    fn last(&self, set: &ObjectKey, index: usize) -> Option<Followed> {
        self.lock().get(set)?.placements.get(index)?.clone()
    }

    /// How long to wait for more changes before the next decision, at least `least`.
    pub(super) fn pause(&self, set: &ObjectKey, least: Duration) -> Duration {
        let took = self.lock().get(set).map(|recent| recent.took).unwrap_or_default();
        pace::pause_after(took, least)
    }

    /// Records a decision.
    pub(super) fn record(&self, Observed { inputs, since }: &Observed) {
        let recent = Recent { placements: inputs.placements.clone(), took: since.elapsed() };
        self.lock().insert(inputs.set.key.clone(), recent);
    }

    #[cfg(test)]
    pub(super) fn knows(&self, set: &ObjectKey) -> bool {
        self.lock().contains_key(set)
    }

    pub(super) fn forget(&self, set: &ObjectKey) {
        self.lock().remove(set);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Recent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A placement whose groups have no order is followed no further; its clusters are counted.
fn grouped(snapshot: PlacementSnapshot) -> Followed {
    let decisions: Arc<PlacementDecisions> = snapshot.decisions.clone();
    let (groups, problem) = match decisions.groups() {
        Ok(groups) => (groups, None),
        Err(error) => (decisions.as_one_group(), Some(error.to_string())),
    };
    Followed { snapshot, groups: Arc::new(groups), problem }
}
