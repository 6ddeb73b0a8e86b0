//! Why objects of deleted AppliedManifestWorks cannot be deleted, for the status of their ManifestWorks.
//!
//! An AppliedManifestWork has no conditions, and one controller alone writes those of a ManifestWork: the one that deletes
//! leaves the reasons here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use ocm_runtime::Queue;

/// The reasons by AppliedManifestWork. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct StuckDeletions {
    failures: Arc<Mutex<HashMap<String, Vec<String>>>>,
    works: Arc<OnceLock<Queue<String>>>,
}

impl StuckDeletions {
    /// Has the names of ManifestWorks added to this queue when the reasons change.
    pub(super) fn notify(&self, works: Queue<String>) {
        let _ = self.works.set(works);
    }

    /// The current reasons; `None` if there has never been one.
    pub(super) fn get(&self, applied_work: &str) -> Option<Vec<String>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).get(applied_work).cloned()
    }

    /// Sets the reasons for the AppliedManifestWork of a ManifestWork.
    pub(super) fn set(&self, applied_work: &str, work: &str, new: Vec<String>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = match failures.get(applied_work) {
            None => !new.is_empty(),
            Some(old) => *old != new,
        };
        if is_news {
            failures.insert(applied_work.to_owned(), new);
            self.works.get().into_iter().for_each(|works| works.add(work.to_owned()));
        }
    }

    /// Forgets an AppliedManifestWork that is gone.
    pub(super) fn remove(&self, applied_work: &str) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(applied_work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_is_queued_when_its_reasons_change_and_not_while_all_goes_well() {
        let (stuck, works) = (StuckDeletions::default(), Queue::default());
        stuck.notify(works.clone());
        stuck.set("hub-a", "a", vec![]);
        assert_eq!((stuck.get("hub-a"), works.depth()), (None, 0));
        stuck.set("hub-b", "b", vec!["forbidden".into()]);
        stuck.set("hub-c", "c", vec!["forbidden".into()]);
        stuck.set("hub-c", "c", vec!["forbidden".into()]);
        assert_eq!(works.depth(), 2);
        stuck.set("hub-c", "c", vec![]);
        assert_eq!(stuck.get("hub-c"), Some(vec![]), "its status says otherwise until it is written again");
        stuck.remove("hub-c");
        assert_eq!(stuck.get("hub-c"), None);
    }
}
