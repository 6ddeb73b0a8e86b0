//! What is kept of the last decision on each add-on: what the next one reuses, and how long to wait for the next one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::chosen::Chosen;
use crate::{decisions::PlacementSnapshot, pace};

/// The last decisions, by add-on. Cheap to clone; all clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentDecisions(Arc<Mutex<HashMap<String, Recent>>>);

#[derive(Debug, Default)]
struct Recent {
    chosen: Arc<Chosen>,
    took: Duration,
}

impl RecentDecisions {
    /// The clusters of the placements: those of the last decision if the placements have made no other decisions since.
    pub(super) fn chosen(&self, addon: &str, placements: &[Option<PlacementSnapshot>]) -> Arc<Chosen> {
        let last = self.lock().get(addon).map(|recent| recent.chosen.clone());
        last.filter(|last| last.is_of(placements)).unwrap_or_else(|| Arc::new(Chosen::of(placements)))
    }

    /// How long to wait for more changes before the next decision, at least `least`.
    pub(super) fn pause(&self, addon: &str, least: Duration) -> Duration {
        let took = self.lock().get(addon).map(|recent| recent.took).unwrap_or_default();
        pace::pause_after(took, least)
    }

    /// Records a decision.
    pub(super) fn record(&self, addon: &str, chosen: &Arc<Chosen>, took: Duration) {
        self.lock().insert(addon.to_owned(), Recent { chosen: chosen.clone(), took });
    }

    /// Forgets an add-on that the hub no longer manages.
    pub(super) fn forget(&self, addon: &str) {
        self.lock().remove(addon);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Recent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decisions::testing::chosen;

    #[test]
    fn the_groups_are_computed_again_only_after_other_decisions_of_a_placement() {
        let recent = RecentDecisions::default();
        let placements = vec![Some(chosen(&["c1", "c2"])), None];
        let first = recent.chosen("a", &placements);
        recent.record("a", &first, Duration::ZERO);
        let is_reused = |placements: &[_]| Arc::ptr_eq(&first, &recent.chosen("a", placements));
        assert!(is_reused(&placements));
        assert!(!is_reused(&[Some(chosen(&["c1", "c2"])), None]), "the placement decided again");
        assert!(!is_reused(&placements[..1]), "the add-on follows fewer placements");
        assert!(!is_reused(&[None, placements[0].clone()]), "in another order");
        recent.forget("a");
        assert!(!is_reused(&placements));
    }

    #[test]
    fn the_next_decision_waits_twenty_times_as_long_as_the_last_one_took() {
        let recent = RecentDecisions::default();
        let (least, second) = (Duration::from_millis(100), Duration::from_secs(1));
        assert_eq!(recent.pause("a", least), least, "there was none");
        for (took, pause) in [(Duration::from_millis(1), least), (second / 20, second)] {
            recent.record("a", &Arc::default(), took);
            assert_eq!(recent.pause("a", least), pause);
        }
        assert_eq!(recent.pause("b", least), least);
    }
}
