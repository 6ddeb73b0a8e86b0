//! Clusters, and the sets they belong to.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use ocm_api::cluster::{v1::ManagedCluster, v1beta2::ManagedClusterSet};
use ocm_runtime::error::chain;

use crate::{
    placement::facts::{Cluster, Clusters, Name},
    set_selector::SetSelector,
};

/// Every set, by name.
pub(crate) type Sets = BTreeMap<Name, Set>;

/// A set, and how many clusters it has.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    /// Which clusters belong to it, or why that is not known.
    selector: Result<Arc<SetSelector>, String>,
    /// How many clusters belong to it. Those being deleted do not count.
    pub(crate) members: usize,
}

impl Set {
    /// Why its clusters are not known.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.selector.as_ref().err().map(String::as_str)
    }

    fn includes(&self, cluster: &Cluster) -> bool {
        let includes = |selector: &Arc<SetSelector>| selector.includes(&cluster.labels);
        !cluster.is_deleting && self.selector.as_ref().is_ok_and(includes)
    }
}

/// Clusters, and the sets they belong to.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    pub(super) clusters: Arc<Clusters>,
    pub(super) sets: Arc<Sets>,
}

/// What has changed about a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetChange {
    /// Which clusters belong to it.
    Members,
    /// Whether the set exists.
    Existence,
}

/// A cluster before and after a change.
type BeforeAndAfter = (Option<Arc<Cluster>>, Option<Arc<Cluster>>);

impl Fleet {
    /// Stores a cluster, or removes it if `None`. Returns it before and after, or `None` if nothing relevant has changed.
    pub(super) fn update_cluster(
        &mut self,
        name: &str,
        cluster: Option<&ManagedCluster>,
        now: Timestamp,
    ) -> Option<BeforeAndAfter> {
        let old = self.clusters.get(name).cloned();
        let known = old.as_ref().map(|old| old.taints.as_slice()).unwrap_or_default();
        let new = cluster.map(|cluster| Arc::new(self.with_sets(Cluster::of(cluster, known, now))));
        if old == new {
            return None;
        }
        self.count(old.as_deref(), new.as_deref());
        let clusters = Arc::make_mut(&mut self.clusters);
        match &new {
            Some(cluster) => _ = clusters.insert(name.into(), cluster.clone()),
            None => _ = clusters.remove(name),
        }
        Some((old, new))
    }

    fn with_sets(&self, mut cluster: Cluster) -> Cluster {
        let its = self.sets.iter().filter(|(_, set)| set.includes(&cluster)).map(|(name, _)| name.clone());
        cluster.sets = its.collect();
        cluster
    }

    fn count(&mut self, old: Option<&Cluster>, new: Option<&Cluster>) {
        let sets = |cluster: Option<&Cluster>| cluster.map_or(Vec::new(), |cluster| cluster.sets.clone());
        let (left, joined) = (sets(old), sets(new));
        if left == joined {
            return;
        }
        let all = Arc::make_mut(&mut self.sets);
        for name in left {
            all.entry(name).and_modify(|set| set.members = set.members.saturating_sub(1));
        }
        for name in joined {
            all.entry(name).and_modify(|set| set.members += 1);
        }
    }

    /// Stores a set, or removes it if `None`. Returns what has changed, if anything relevant has.
    pub(super) fn update_set(&mut self, name: &str, set: Option<&ManagedClusterSet>) -> Option<SetChange> {
        let selector = set.map(|set| SetSelector::of(set).map(Arc::new).map_err(|error| chain(&error)));
        let known = self.sets.get(name).map(|set| &set.selector);
        if known == selector.as_ref() {
            return None;
        }
        let change = if known.is_some() && selector.is_some() { SetChange::Members } else { SetChange::Existence };
        let sets = Arc::make_mut(&mut self.sets);
        match selector {
            Some(selector) => _ = sets.insert(name.into(), Set { selector, members: 0 }),
            None => _ = sets.remove(name),
        }
        self.reassign(name);
        Some(change)
    }

    /// Determines again for each cluster whether it belongs to the set.
    fn reassign(&mut self, name: &str) {
        let sets = Arc::make_mut(&mut self.sets);
        let mut set = sets.get_mut(name);
        for cluster in Arc::make_mut(&mut self.clusters).values_mut() {
            let belongs = set.as_ref().is_some_and(|set| set.includes(cluster));
            let at = cluster.sets.binary_search_by(|known| (**known).cmp(name));
            match at {
                Ok(at) if !belongs => _ = Arc::make_mut(cluster).sets.remove(at),
                Err(at) if belongs => Arc::make_mut(cluster).sets.insert(at, name.into()),
                Ok(_) | Err(_) => {}
            }
            if let Some(set) = set.as_mut().filter(|_| belongs) {
                set.members += 1;
            }
        }
    }
}
