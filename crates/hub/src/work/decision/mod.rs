//! Which works a replica set has: one decision per set, over all its clusters and placements.
//!
//! [`decide`] is pure. It gets what the set asks for, what its placements have chosen, the works there are, what was decided
//! before, and the time; it answers what is desired of each work and how far each placement has come. [`super::replica`] writes
//! the works, one by one, and decides nothing itself.
//!
//! A work that has the spec of the template takes part in the rollout by its conditions; any other one counts as if it did not
//! exist. What was desired before and is not written yet takes part too, so that a rollout keeps its limits whatever happens to
//! a write.

mod progress;
#[cfg(test)]
mod properties;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use ocm_runtime::ObjectKey;

pub(crate) use self::progress::{Counts, PlacementProgress, Progress};
use super::facts::{PlacementRef, ReplicaSet, Template, Work};
use crate::{
    decisions::{self, ClusterName, DecisionGroups, PlacementSnapshot},
    rollout::{self, ClusterStatus, Status},
};

/// A cluster and the placement that has chosen it.
pub(crate) type Desired = (ClusterName, Arc<str>);
/// The works of a set.
pub(crate) type Works = BTreeMap<ObjectKey, Arc<Work>>;
/// Why works could not be written.
pub(crate) type Failures = BTreeMap<Desired, String>;

/// Everything that the decision on a set depends on.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    pub(crate) set: Arc<ReplicaSet>,
    /// The placements that it follows, in their order; `None` for one that does not exist.
    pub(crate) placements: Vec<Option<Followed>>,
    /// Whether there are placements or decisions that cannot be read and may choose more clusters.
    pub(crate) has_unreadable: bool,
    pub(crate) works: Arc<Works>,
    pub(crate) failures: Arc<Failures>,
    pub(crate) before: Arc<Decision>,
}

/// A placement, and its clusters.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    pub(crate) snapshot: PlacementSnapshot,
    pub(crate) groups: Arc<DecisionGroups>,
    /// Why the groups are not known.
    pub(crate) problem: Option<String>,
}

/// What is decided on a set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Decision {
    /// `None` if nothing is decided.
    pub(crate) template: Option<Arc<Template>>,
    /// What is desired of each work. Nothing is done to others.
    pub(crate) desired: BTreeMap<Desired, State>,
    pub(crate) progress: Progress,
    /// When to decide again even if nothing changes.
    pub(crate) recheck_after: Option<SignedDuration>,
}

/// What is desired of a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It exists, with the spec of the template.
    Current,
    /// It stays as it is until its turn comes.
    Kept,
    /// The placement no longer chooses the cluster; the work stays for now.
    Leaving {
        /// Since when.
        since: Timestamp,
    },
    /// It is deleted.
    Absent {
        /// Since when nothing wants it.
        since: Timestamp,
    },
}

impl State {
    fn unwanted_since(self) -> Option<Timestamp> {
        match self {
            Self::Leaving { since } | Self::Absent { since } => Some(since),
            Self::Current | Self::Kept => None,
        }
    }
}

impl Decision {
    fn of(inputs: &Inputs) -> Self {
        Self { template: Some(inputs.set.template.clone()), progress: Progress::of(inputs), ..Self::default() }
    }

    /// Whether it needs works to be created or changed.
    pub(crate) fn has_pending(&self) -> bool {
        self.progress.total().pending > 0
    }

    /// Whether that work was to be written from the same template before.
    fn has_begun(&self, desired: &Desired, template: &Template) -> bool {
        let is_same = self.template.as_ref().is_some_and(|before| before.digest == template.digest);
        is_same && self.desired.get(desired) == Some(&State::Current)
    }

    fn unwanted_since(&self, desired: &Desired) -> Option<Timestamp> {
        self.desired.get(desired)?.unwanted_since()
    }

    fn recheck(&mut self, after: Option<SignedDuration>) {
        self.recheck_after = [self.recheck_after, after].into_iter().flatten().min();
    }
}

/// Of each placement, the work of each cluster that counts: of several the oldest.
type Keepers<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a Work>>;

fn keepers(works: &Works) -> Keepers<'_> {
    let mut keepers = Keepers::new();
    for work in works.values().map(Arc::as_ref) {
        let of_placement = keepers.entry(&work.placement).or_default();
        let kept = of_placement.entry(&work.key.namespace).or_insert(work);
        if work.seniority() < kept.seniority() {
            *kept = work;
        }
    }
    keepers
}

/// Decides on a set that is not being deleted.
pub(crate) fn decide(inputs: &Inputs, now: Timestamp) -> Decision {
    let keepers = keepers(&inputs.works);
    let mut decision = Decision::of(inputs);
    let is_unreferenced = |work: &&Arc<Work>| !inputs.set.refers_to(&work.placement);
    remove(inputs.works.values().filter(is_unreferenced), inputs, now, &mut decision);
    for (index, reference) in inputs.set.placements.iter().enumerate() {
        if reference.is_repeated {
            decision.progress.problems.extend(reference.problem.clone());
            continue;
        }
        let Some(followed) = inputs.placements.get(index).and_then(Option::as_ref) else {
            decision.progress.missing = Some(reference.name.clone());
            break;
        };
        let none = BTreeMap::new();
        let keepers = keepers.get(&*reference.name).unwrap_or(&none);
        let placement = OnPlacement { inputs, reference, followed, keepers };
        placement.decide(now, &mut decision);
    }
    decision
}

/// Decides on a set that is being deleted: so are all its works.
pub(crate) fn remove_all(inputs: &Inputs, now: Timestamp) -> Decision {
    let mut decision = Decision::of(inputs);
    remove(inputs.works.values(), inputs, now, &mut decision);
    decision
}

fn remove<'a>(works: impl Iterator<Item = &'a Arc<Work>>, inputs: &Inputs, now: Timestamp, decision: &mut Decision) {
    for work in works {
        let desired = (work.key.namespace.as_str().into(), work.placement.clone());
        let since = inputs.before.unwanted_since(&desired).unwrap_or(now);
        decision.desired.insert(desired, State::Absent { since });
    }
}

/// What the decision on the works of one placement depends on.
struct OnPlacement<'a> {
    inputs: &'a Inputs,
    reference: &'a PlacementRef,
    followed: &'a Followed,
    keepers: &'a BTreeMap<&'a str, &'a Work>,
}

impl OnPlacement<'_> {
    fn decide(&self, now: Timestamp, decision: &mut Decision) {
        match self.reference.problem.as_ref().or(self.followed.problem.as_ref()) {
            Some(problem) => decision.progress.problems.push(problem.clone()),
            None => {
                self.roll_out(now, decision);
                self.remove_others(now, decision);
            }
        }
        decision.progress.placements.push(self.progress(&decision.desired));
    }

    fn roll_out(&self, now: Timestamp, decision: &mut Decision) {
        let groups = &self.followed.groups;
        let statuses: Vec<_> = groups.clusters().filter_map(|cluster| self.status(cluster)).collect();
        let rollout = rollout::plan(&self.reference.strategy, groups, &statuses, now);
        let begins: BTreeSet<_> = rollout.to_apply().map(|status| &status.cluster).collect();
        for cluster in groups.clusters() {
            let keeper = self.keepers.get(&**cluster);
            let state = match keeper {
                _ if begins.contains(cluster) || self.current(cluster).is_some() => State::Current,
                Some(_) => State::Kept,
                None => continue,
            };
            decision.desired.insert(self.desired(cluster), state);
        }
        decision.recheck(rollout.recheck_after);
    }

    /// Where there are works and the placement no longer chooses the cluster.
    fn remove_others(&self, now: Timestamp, decision: &mut Decision) {
        for cluster in self.keepers.keys().filter(|cluster| !self.followed.groups.contains(cluster)) {
            let desired = self.desired(&(*cluster).into());
            let since = self.inputs.before.unwanted_since(&desired).unwrap_or(now);
            let left = decisions::time_left(since, self.inputs.has_unreadable, now);
            let state = if left.is_some() { State::Leaving { since } } else { State::Absent { since } };
            decision.desired.insert(desired, state);
            decision.recheck(left);
        }
    }

    fn desired(&self, cluster: &ClusterName) -> Desired {
        (cluster.clone(), self.reference.name.clone())
    }

    /// The work of a cluster, if it has the spec of the template.
    fn current(&self, cluster: &ClusterName) -> Option<&Work> {
        self.keepers.get(&**cluster).copied().filter(|work| work.is_of(&self.inputs.set.template))
    }

    fn status(&self, cluster: &ClusterName) -> Option<ClusterStatus> {
        let (status, last_transition) = match self.current(cluster) {
            Some(work) => work.rollout_status(),
            None if self.has_begun(cluster) => (Status::ToApply, None),
            None => return None,
        };
        Some(ClusterStatus { cluster: cluster.clone(), group: None, status, last_transition })
    }

    fn has_begun(&self, cluster: &ClusterName) -> bool {
        self.inputs.before.has_begun(&self.desired(cluster), &self.inputs.set.template)
    }

    fn progress(&self, desired: &BTreeMap<Desired, State>) -> PlacementProgress {
        let snapshot = &self.followed.snapshot;
        let mut counts = Counts { chosen: self.followed.groups.clusters().len(), ..Counts::default() };
        for cluster in self.followed.groups.clusters() {
            match self.current(cluster) {
                Some(work) => counts.count(work),
                None if desired.get(&self.desired(cluster)) == Some(&State::Current) => counts.pending += 1,
                None => {}
            }
        }
        PlacementProgress {
            name: self.reference.name.clone(),
            groups: snapshot.decision_groups,
            selected: snapshot.selected,
            counts,
        }
    }
}
