//! Which changes of clusters' annotations have not reached their add-ons yet.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::annotations::Annotations;

/// Annotations of clusters as they were before the first change that has not reached the add-ons yet. Cheap to clone; all
/// clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outstanding(Arc<Mutex<BTreeMap<String, Annotations>>>);

impl Outstanding {
    /// An add-on has been created with these annotations of its cluster, or the cluster has had them until now.
    pub(crate) fn begin(&self, cluster: &str, before: Annotations) {
        self.lock().entry(cluster.to_owned()).or_insert(before);
    }

    /// The next try begins where this one did.
    pub(crate) fn put_back(&self, cluster: &str, before: Annotations) {
        self.lock().insert(cluster.to_owned(), before);
    }

    /// Takes what is outstanding of a cluster.
    pub(crate) fn take(&self, cluster: &str) -> Option<Annotations> {
        self.lock().remove(cluster)
    }

    /// Whether anything is outstanding of a cluster.
    pub(crate) fn has(&self, cluster: &str) -> bool {
        self.lock().contains_key(cluster)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Annotations>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotation(value: &str) -> Annotations {
        [("addon.open-cluster-management.io/x".to_owned(), value.to_owned())].into()
    }

    #[test]
    fn what_is_outstanding_begins_with_the_first_change_and_with_it_again_after_a_failure() {
        let outstanding = Outstanding::default();
        outstanding.begin("c1", annotation("1"));
        outstanding.begin("c1", annotation("2"));
        assert!(outstanding.has("c1") && !outstanding.has("c2"));
        let before = outstanding.take("c1").unwrap();
        assert_eq!(before, annotation("1"));
        outstanding.begin("c1", annotation("3"));
        outstanding.put_back("c1", before.clone());
        assert_eq!((outstanding.take("c1"), outstanding.take("c1")), (Some(before), None));
    }
}
