//! Clusters, and the sets they belong to.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use ocm_api::cluster::{v1::ManagedCluster, v1alpha1::AddOnPlacementScore, v1beta2::ManagedClusterSet};
use ocm_scheduler::{AddOnScores, Cluster, Clusters, Document, Scores, Set, Sets, sets_of};

use super::JsonOf;

/// Clusters, and the sets they belong to.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    pub(super) clusters: Arc<Clusters>,
    pub(super) sets: Arc<Sets>,
    /// The scores of add-ons by the name of the cluster, which need not exist.
    scores: HashMap<String, Scores>,
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
        json: Option<Arc<[u8]>>,
        now: Timestamp,
    ) -> Option<BeforeAndAfter> {
        let old = self.clusters.get(name).cloned();
        let known = old.as_ref().map(|old| old.taints.as_slice()).unwrap_or_default();
        let new = cluster.map(|cluster| self.with_sets(Cluster::of(cluster, known, now)));
        let new = new.map(|cluster| Arc::new(self.with_scores(name, cluster, json)));
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

    fn with_scores(&self, name: &str, mut cluster: Cluster, json: Option<Arc<[u8]>>) -> Cluster {
        cluster.scores = self.scores.get(name).cloned().unwrap_or_default();
        cluster.document = json.map(|json| Arc::new(Document::new(json, cluster.scores.clone())));
        cluster
    }

    /// Stores scores that an add-on gives a cluster, or removes them if `None`. Returns the cluster before and after, or `None`
    /// if it does not exist, or nothing relevant has changed.
    pub(super) fn update_scores(
        &mut self,
        cluster: &str,
        name: &str,
        new: Option<&AddOnPlacementScore>,
    ) -> Option<BeforeAndAfter> {
        let scores = self.scores.entry(cluster.to_owned()).or_default();
        match new {
            Some(new) => _ = scores.insert(name.to_owned(), Arc::new(AddOnScores::of(new))),
            None => _ = scores.remove(name),
        }
        let scores = scores.clone();
        if scores.is_empty() {
            self.scores.remove(cluster);
        }
        let old = self.clusters.get(cluster).filter(|old| old.scores != scores)?.clone();
        let mut new = Cluster::clone(&old);
        new.document = old.document.as_ref().map(|document| Arc::new(document.with_scores(scores.clone())));
        new.scores = scores;
        let new = Arc::new(new);
        Arc::make_mut(&mut self.clusters).insert(cluster.into(), new.clone());
        Some((Some(old), Some(new)))
    }

    /// Adds the document to each cluster, or removes it.
    pub(super) fn set_documents(&mut self, json: Option<&JsonOf>) {
        for (name, cluster) in Arc::make_mut(&mut self.clusters) {
            let json = json.and_then(|json| json(name));
            let document = json.map(|json| Arc::new(Document::new(json, cluster.scores.clone())));
            Arc::make_mut(cluster).document = document;
        }
    }

    fn with_sets(&self, mut cluster: Cluster) -> Cluster {
        cluster.sets = sets_of(&cluster, &self.sets);
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
        let (known, new) = (self.sets.get(name), set.map(Set::of));
        if known.map(|set| &set.selector) == new.as_ref().map(|set| &set.selector) {
            return None;
        }
        let change = if known.is_some() && new.is_some() { SetChange::Members } else { SetChange::Existence };
        let sets = Arc::make_mut(&mut self.sets);
        match new {
            Some(set) => _ = sets.insert(name.into(), set),
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
