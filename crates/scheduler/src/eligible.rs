//! Which sets, and so which clusters, a placement may select from.

use crate::{facts::Name, schedule::Candidate, snapshot::Snapshot};

/// The sets that a placement may select from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Eligible {
    /// Whether any set is bound to the placement's namespace.
    pub any_bound: bool,
    /// Those it may select from, by name.
    pub sets: Vec<Name>,
    /// Why the clusters of one of them are not known.
    pub problem: Option<String>,
}

impl Eligible {
    /// Sets that exist, are bound to the namespace by a binding of the same name, and that the placement selects.
    #[must_use]
    pub fn of(snapshot: &Snapshot) -> Self {
        let bound = snapshot.bound.iter().filter_map(|name| snapshot.sets.get_key_value(name.as_str()));
        let mut eligible = Self::default();
        for (name, set) in bound {
            eligible.any_bound = true;
            if snapshot.rules.selects_from(name) {
                eligible.sets.push(name.clone());
                eligible.problem = eligible.problem.or_else(|| set.problem().map(ToString::to_string));
            }
        }
        eligible
    }

    /// Whether a cluster of these sets is a candidate.
    pub(crate) fn includes(&self, sets: &[Name]) -> bool {
        sets.iter().any(|set| self.sets.binary_search(set).is_ok())
    }

    /// The clusters of these sets, by name. Clusters that are being deleted belong to none.
    #[must_use]
    pub fn candidates<'a>(&self, snapshot: &'a Snapshot) -> Vec<Candidate<'a>> {
        let all = snapshot.clusters.iter().filter(|(_, facts)| self.includes(&facts.sets));
        all.map(|(name, facts)| Candidate { name, facts }).collect()
    }
}
