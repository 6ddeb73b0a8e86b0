//! Which sets, and so which clusters, a placement may choose from.

use super::{facts::Name, index::Snapshot, schedule::Candidate};

/// The sets that a placement may choose from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Eligible {
    /// Whether any set is bound to the placement's namespace.
    pub(crate) any_bound: bool,
    /// Those it may choose from, by name.
    pub(crate) sets: Vec<Name>,
    /// Why the clusters of one of them are not known.
    pub(crate) problem: Option<String>,
}

impl Eligible {
    /// Sets that exist, are bound to the namespace by a binding of the same name, and that the placement selects.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let bound = snapshot.bound.iter().filter_map(|name| snapshot.sets.get_key_value(name.as_str()));
        let mut eligible = Self::default();
        for (name, set) in bound {
            eligible.any_bound = true;
            if snapshot.rules.selects_from(name) {
                eligible.sets.push(name.clone());
                eligible.problem = eligible.problem.or_else(|| set.problem().map(str::to_owned));
            }
        }
        eligible
    }

    /// The clusters of these sets, by name. Clusters that are being deleted belong to none.
    pub(crate) fn candidates<'a>(&self, snapshot: &'a Snapshot) -> Vec<Candidate<'a>> {
        let all = snapshot
            .clusters
            .iter()
            .filter(|(_, facts)| facts.sets.iter().any(|set| self.sets.binary_search(set).is_ok()));
        all.map(|(name, facts)| Candidate { name, facts }).collect()
    }
}
