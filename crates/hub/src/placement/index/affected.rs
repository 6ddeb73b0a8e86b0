//! Which placements a change can affect.

use std::ops::Bound;

use jiff::Timestamp;
use ocm_api::cluster::v1::TaintEffect;
use ocm_runtime::ObjectKey;

use super::{Entry, State, clusters::SetChange};
use ocm_scheduler::{Cluster, Name, Rules, fits};

impl State {
    /// The placements of every namespace that a set is bound to: those that select from it or, if the set was created or
    /// deleted, all of them, since their status reports whether any set is bound.
    pub(super) fn affected_by_set(&self, set: &str, change: SetChange) -> Vec<ObjectKey> {
        let namespaces = self.bindings.namespaces.get(set).into_iter().flatten();
        let all = namespaces.flat_map(|namespace| self.of_namespace(namespace));
        let affected = all.filter(|(_, entry)| change == SetChange::Existence || entry.rules.selects_from(set));
        affected.map(|(key, _)| key.clone()).collect()
    }

    /// The placements of a namespace.
    pub(super) fn placements_in(&self, namespace: &str) -> Vec<ObjectKey> {
        self.of_namespace(namespace).map(|(key, _)| key.clone()).collect()
    }

    fn of_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a ObjectKey, &'a Entry)> {
        let first = ObjectKey::new(namespace, "");
        let from_first = self.placements.range((Bound::Included(first), Bound::Unbounded));
        from_first.take_while(move |(key, _)| key.namespace == namespace)
    }

    /// The placements whose decision can change because a cluster did.
    pub(super) fn affected_by_cluster(
        &self,
        name: &str,
        old: Option<&Cluster>,
        new: Option<&Cluster>,
    ) -> Vec<ObjectKey> {
        let sets = [old, new].into_iter().flatten().flat_map(|cluster| &cluster.sets);
        let mut namespaces: Vec<&String> =
            sets.filter_map(|set| self.bindings.namespaces.get(&**set)).flatten().collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        let all = namespaces.into_iter().flat_map(|namespace| self.of_namespace(namespace));
        // Only CEL selectors depend on what else has changed.
        let is_noise = matches!((old, new), (Some(old), Some(new)) if old.is_same_but_for_document(new));
        let relevant = all.filter(|(_, entry)| !is_noise || entry.rules.use_cel());
        relevant
            .filter(|(key, entry)| self.is_affected(key, &entry.rules, name, old, new))
            .map(|(key, _)| key.clone())
            .collect()
    }

    fn is_affected(
        &self,
        key: &ObjectKey,
        rules: &Rules,
        name: &str,
        old: Option<&Cluster>,
        new: Option<&Cluster>,
    ) -> bool {
        let is_candidate = |cluster: &&Cluster| self.takes_any(&key.namespace, rules, &cluster.sets);
        let (old, new) = (old.filter(is_candidate), new.filter(is_candidate));
        let has_taint_for_new =
            |cluster: &Cluster| cluster.taints.iter().any(|taint| taint.effect == TaintEffect::NoSelectIfNew);
        let is_decided = [old, new].into_iter().flatten().any(has_taint_for_new) && self.decisions.lists(key, name);
        // When a toleration ends, the placement is planned anyway.
        let fits = |cluster: &Cluster| fits(rules, cluster, is_decided, Timestamp::MIN);
        match (old, new) {
            (None, None) => false,
            (Some(old), Some(new)) => rules.can_change_decision(old, new, (fits(old), fits(new))),
            (Some(one), None) | (None, Some(one)) => fits(one) != Some(false) || self.has_few_candidates(key, rules),
        }
    }

    fn takes_any(&self, namespace: &str, rules: &Rules, sets: &[Name]) -> bool {
        sets.iter().any(|set| rules.selects_from(set) && self.bindings.has(namespace, set))
    }

    /// Whether one candidate more or less may be the difference between some and none, which the status reports.
    fn has_few_candidates(&self, key: &ObjectKey, rules: &Rules) -> bool {
        let bound = self.bindings.by_namespace.get(&key.namespace).into_iter().flat_map(|names| names.iter());
        let mut taken =
            bound.filter(|name| rules.selects_from(name)).filter_map(|name| self.fleet.sets.get(name.as_str()));
        taken.all(|set| set.members <= 1)
    }
}
