//! What should be installed where: one decision per add-on, over all its clusters.
//!
//! [`decide`] is pure. It gets what the add-on asks for, what its placements have chosen, where it is installed, what was
//! decided before, and the time; it answers what is desired on each cluster and how far each placement has come. The
//! installation controller writes what is desired, cluster by cluster, and decides nothing itself.

mod chosen;
pub(crate) mod controller;
mod progress;
mod recent;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use self::chosen::Chosen;
pub(crate) use self::progress::Progress;
use super::facts::{FollowedPlacement, Management, Strategy};
use crate::{
    decisions::{self, ClusterName, DecisionGroups, PlacementSnapshot},
    rollout::{self, ClusterStatus, Status},
};

/// Where an add-on is installed: whether it is configured, by cluster.
pub(crate) type Installed = BTreeMap<ClusterName, bool>;
/// Why an add-on could not be installed, by cluster.
pub(crate) type Failures = BTreeMap<ClusterName, String>;

/// Everything that the decision on an add-on depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    /// `None` if the hub does not manage the add-on.
    pub(crate) management: Option<Arc<Management>>,
    /// The placements that the add-on follows, in their order; `None` for one that does not exist.
    pub(crate) placements: Vec<Option<PlacementSnapshot>>,
    /// The clusters of these placements.
    pub(crate) chosen: Arc<Chosen>,
    /// Whether there are placements or decisions that cannot be read and may choose more clusters.
    pub(crate) has_unreadable: bool,
    pub(crate) installed: Arc<Installed>,
    pub(crate) failures: Failures,
    pub(crate) before: Arc<Decision>,
}

/// What is decided on an add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    /// What is desired on each cluster. Nothing is done on others.
    pub(crate) desired: BTreeMap<ClusterName, Desired>,
    /// How far each placement has come, in the order of placements; `None` if the hub does not manage the add-on.
    pub(crate) progress: Option<Vec<Progress>>,
    /// When to decide again even if nothing changes.
    pub(crate) recheck_after: Option<SignedDuration>,
}

/// What is desired of an add-on on one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Desired {
    /// The uid of the ClusterManagementAddOn, which owns the installation.
    pub(crate) owner: Arc<str>,
    pub(crate) state: DesiredState,
    /// What is asked for there and this hub does not support.
    pub(crate) refusal: Option<Arc<str>>,
}

/// Whether an add-on should be installed on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DesiredState {
    /// It is created if it does not exist.
    Installed,
    /// It is kept if it exists.
    Kept,
    /// No placement chooses the cluster any more; it is left alone for now.
    Leaving {
        /// Since when.
        since: Timestamp,
    },
    /// It is deleted.
    Absent {
        /// Since when no placement chooses the cluster.
        since: Timestamp,
    },
}

impl Decision {
    /// Whether the add-on is installed and configured on every cluster that a placement has chosen.
    pub(crate) fn is_settled(&self) -> bool {
        self.progress.iter().flatten().all(|progress| progress.configured == progress.selected)
    }
}

impl Desired {
    fn unwanted_since(&self, owner: &str) -> Option<Timestamp> {
        match self.state {
            // Decisions for a former ClusterManagementAddOn of this name do not count.
            DesiredState::Leaving { since } | DesiredState::Absent { since } if *self.owner == *owner => Some(since),
            _ => None,
        }
    }
}

/// Decides.
pub(crate) fn decide(inputs: &Inputs, now: Timestamp) -> Decision {
    let Some(management) = &inputs.management else { return Decision::default() };
    match &management.strategy {
        Strategy::Manual => manual(inputs, management),
        Strategy::Placements(followed) => by_placements(inputs, management, followed, now),
    }
}

/// Where somebody installs it, it is kept.
fn manual(inputs: &Inputs, management: &Management) -> Decision {
    let keep = |cluster: &ClusterName| (cluster.clone(), management.desired(DesiredState::Kept, None));
    let desired = inputs.installed.keys().map(keep).collect();
    Decision { desired, progress: Some(Vec::new()), recheck_after: None }
}

/// It is installed where placements choose, and nowhere else.
fn by_placements(inputs: &Inputs, management: &Management, followed: &[FollowedPlacement], now: Timestamp) -> Decision {
    let no_groups = DecisionGroups::default();
    let mut decision = Decision { progress: Some(Vec::new()), ..unwanted(inputs, management, now) };
    for (index, followed) in followed.iter().enumerate() {
        let snapshot = inputs.placements.get(index).and_then(Option::as_ref);
        let groups = inputs.chosen.groups(index).unwrap_or(&no_groups);
        let rollout = rollout::plan(&followed.rollout, groups, &statuses(inputs, groups), now);
        let refusal = management.refusal.as_ref().or(followed.refusal.as_ref());
        let begun: BTreeSet<_> = rollout.clusters.iter().map(|status| &status.cluster).collect();
        for cluster in groups.clusters() {
            let has_begun = begun.contains(cluster) || inputs.installed.get(cluster) == Some(&true);
            let may_install = refusal.is_none() && has_begun;
            let state = if may_install { DesiredState::Installed } else { DesiredState::Kept };
            decision.desired.insert(cluster.clone(), management.desired(state, refusal));
        }
        let progress = Progress::of(followed, refusal, snapshot, groups, inputs);
        decision.progress.get_or_insert_default().push(progress);
        decision.recheck_after = earlier(decision.recheck_after, rollout.recheck_after);
    }
    decision
}

/// How far the installation has come on each cluster where it has begun.
fn statuses(inputs: &Inputs, groups: &DecisionGroups) -> Vec<ClusterStatus> {
    let here = groups.clusters().filter_map(|cluster| Some((cluster, inputs.installed.get(cluster)?)));
    here.map(|(cluster, is_configured)| ClusterStatus {
        cluster: cluster.clone(),
        group: None,
        status: if *is_configured { Status::Succeeded } else { Status::ToApply },
        last_transition: None,
    })
    .collect()
}

/// Where it is installed and no placement chooses.
fn unwanted(inputs: &Inputs, management: &Management, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    for cluster in inputs.installed.keys().filter(|cluster| !inputs.chosen.contains(cluster)) {
        let before = inputs.before.desired.get(cluster);
        let since = before.and_then(|before| before.unwanted_since(&management.uid)).unwrap_or(now);
        let recheck_after = decisions::time_left(since, inputs.has_unreadable, now);
        let is_over = recheck_after.is_none();
        let state = if is_over { DesiredState::Absent { since } } else { DesiredState::Leaving { since } };
        decision.desired.insert(cluster.clone(), management.desired(state, None));
        decision.recheck_after = earlier(decision.recheck_after, recheck_after);
    }
    decision
}

impl Management {
    fn desired(&self, state: DesiredState, refusal: Option<&Arc<str>>) -> Desired {
        let refusal = refusal.or(self.refusal.as_ref()).cloned();
        Desired { owner: self.uid.clone(), state, refusal }
    }
}

fn earlier(one: Option<SignedDuration>, other: Option<SignedDuration>) -> Option<SignedDuration> {
    [one, other].into_iter().flatten().min()
}
