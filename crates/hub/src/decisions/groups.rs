//! Decision groups: the chosen clusters of a placement, in the order in which a rollout reaches them.

use std::{collections::BTreeMap, sync::Arc};

/// The name of a cluster; clones share the text.
pub type ClusterName = Arc<str>;

/// Identifies a decision group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupKey {
    /// Its name; empty for clusters that no named group takes. Several groups may have the same name.
    pub name: Arc<str>,
    /// Its index, from 0.
    pub index: i32,
}

/// Clusters that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionGroup {
    /// What identifies it.
    pub key: GroupKey,
    /// Its clusters, by name.
    pub clusters: Vec<ClusterName>,
}

impl DecisionGroup {
    /// Whether the cluster belongs to it.
    #[must_use]
    pub fn contains(&self, cluster: &str) -> bool {
        self.clusters.binary_search_by(|known| (**known).cmp(cluster)).is_ok()
    }
}

/// The decision groups of a placement, by index. A cluster is in one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionGroups {
    groups: Vec<DecisionGroup>,
    /// The position of each cluster's group.
    group_of: BTreeMap<ClusterName, usize>,
}

impl DecisionGroups {
    /// Groups of these clusters. A cluster that is listed in several groups, as happens while it moves, belongs to the first.
    #[must_use]
    pub fn new(clusters: impl IntoIterator<Item = (GroupKey, ClusterName)>) -> Self {
        let mut sorted: BTreeMap<(i32, Arc<str>), Vec<ClusterName>> = BTreeMap::new();
        for (key, cluster) in clusters {
            sorted.entry((key.index, key.name)).or_default().push(cluster);
        }
        let mut all = Self::default();
        for ((index, name), mut clusters) in sorted {
            clusters.sort_unstable();
            clusters.dedup();
            clusters.retain(|cluster| !all.group_of.contains_key(cluster));
            all.group_of.extend(clusters.iter().map(|cluster| (cluster.clone(), all.groups.len())));
            all.groups.push(DecisionGroup { key: GroupKey { name, index }, clusters });
        }
        all
    }

    /// The groups, by index.
    pub fn iter(&self) -> impl Iterator<Item = &DecisionGroup> {
        self.groups.iter()
    }

    /// Every cluster, by name.
    pub fn clusters(&self) -> impl ExactSizeIterator<Item = &ClusterName> {
        self.group_of.keys()
    }

    /// Whether the cluster is in any group.
    #[must_use]
    pub fn contains(&self, cluster: &str) -> bool {
        self.group_of.contains_key(cluster)
    }

    /// The group of a cluster.
    #[must_use]
    pub fn group_of(&self, cluster: &str) -> Option<&GroupKey> {
        self.group_of.get(cluster).and_then(|group| self.groups.get(*group)).map(|group| &group.key)
    }

    /// The groups that `is_first` holds for, and the others.
    pub fn split(&self, is_first: impl Fn(&DecisionGroup) -> bool) -> (Vec<&DecisionGroup>, Vec<&DecisionGroup>) {
        self.groups.iter().partition(|group| is_first(group))
    }

    /// The groups with only those of their clusters that `keep` holds for.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&ClusterName) -> bool) -> Self {
        let all = self.groups.iter().flat_map(|group| group.clusters.iter().map(|cluster| (&group.key, cluster)));
        Self::new(all.filter(|(_, cluster)| keep(cluster)).map(|(key, cluster)| (key.clone(), cluster.clone())))
    }
}
