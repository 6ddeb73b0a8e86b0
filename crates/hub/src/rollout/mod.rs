//! Which clusters of a placement get a change now: all at once, some at a time, or one decision group after the other.
//!
//! [`plan`] is a pure function of the decision groups, the strategy, what is known of each cluster, and the time. It
//! remembers nothing: a controller that restarts continues where it stopped. The controller passes of each cluster in which
//! [`Status`] the change is, applies the change to the clusters that `plan` answers with status [`Status::ToApply`], and asks
//! again when a cluster's status changes or [`Rollout::recheck_after`] has passed.
//!
//! The rules are those of OCM's rollout library (`cluster/v1alpha1` in its sdk-go). Six rules are stricter or complete
//! something, so that a rollout never exceeds its limits and never stops for no reason:
//!
//! - Clusters that have begun come before those that wait, regardless of their names: a cluster that waits never takes the slot of
//!   one that is in progress, and none begins when the number of failures is exceeded by a cluster later in the alphabet.
//! - None begins while more clusters of a group have failed than are tolerated, in any group.
//! - A cluster that timed out is not counted twice, so a group is finished before the next one begins.
//! - A tolerated failure in a later group does not keep the groups before it from ending.
//! - Only clusters of mandatory groups decide whether these are done. Failures elsewhere that `maxFailures` tolerates do not
//!   stop the rollout, and a failure in a mandatory group does, also when it is known as [`Status::TimeOut`].
//! - A gap in the indexes of decision groups does not drop the groups after it.

mod evaluate;
#[cfg(test)]
mod properties;
mod strategy;
#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
pub use ocm_apimachinery::amount::Amount;

use self::evaluate::{Evaluated, Progress};
pub use self::strategy::{Limits, MandatoryGroup, Strategy, StrategyError, StrategyKind};
use crate::decisions::{ClusterName, DecisionGroup, DecisionGroups, GroupKey};

/// How far a change has come on one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// The cluster does not have the change.
    ToApply,
    /// The change is being applied.
    Progressing,
    /// The change is applied.
    Succeeded,
    /// The change failed.
    Failed,
    /// The change did not succeed before the progress deadline.
    TimeOut,
    /// The cluster is left out.
    Skip,
}

/// What is known of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterStatus {
    /// The cluster.
    pub cluster: ClusterName,
    /// Its decision group, if known.
    pub group: Option<GroupKey>,
    /// How far the change has come.
    pub status: Status,
    /// Since when. Without it, the time does not run: neither the progress deadline nor the minimum success time ends.
    pub last_transition: Option<Timestamp>,
}

/// What to do now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[doc(alias = "RolloutResult")]
pub struct Rollout {
    /// The clusters that are part of the rollout now: those that have begun and are not done, and, with status
    /// [`Status::ToApply`], those that are to begin.
    #[doc(alias = "ClustersToRollout")]
    pub clusters: Vec<ClusterStatus>,
    /// The clusters that exceeded the progress deadline.
    #[doc(alias = "ClustersTimeOut")]
    pub timed_out: Vec<ClusterStatus>,
    /// The clusters that the placement no longer chooses.
    #[doc(alias = "ClustersRemoved")]
    pub removed: Vec<ClusterStatus>,
    /// Whether more clusters failed than are tolerated, so that no further cluster begins.
    #[doc(alias = "MaxFailureBreach")]
    pub is_stopped: bool,
    /// When to plan again even if nothing changes.
    pub recheck_after: Option<SignedDuration>,
}

impl Rollout {
    /// The clusters to which the change is to be applied now.
    pub fn to_apply(&self) -> impl Iterator<Item = &ClusterStatus> {
        self.clusters.iter().filter(|cluster| cluster.status == Status::ToApply)
    }
}

/// Plans a rollout. `existing` is what is known of clusters; those that are missing there do not have the change.
#[must_use]
pub fn plan(strategy: &Strategy, groups: &DecisionGroups, existing: &[ClusterStatus], now: Timestamp) -> Rollout {
    let (current, removed) = split(groups, existing);
    let evaluated = Evaluated::of(current, &strategy.limits, now);
    let (mandatory, rest) = groups.split(|group| strategy.mandatory.iter().any(|one| one.is(&group.key)));
    let step = mandatory_groups(&mandatory, &evaluated).unwrap_or_else(|| match strategy.kind {
        StrategyKind::PerGroup => group_by_group(&rest, strategy.limits.max_failures, &evaluated, None),
        StrategyKind::PerCluster { max_concurrency } => {
            let max_failures = strategy.limits.max_failures.of(groups.clusters().count(), 0);
            some_at_a_time(&rest, max_concurrency, max_failures, &evaluated)
        }
        StrategyKind::All => some_at_a_time(&rest, Amount::ALL, usize::MAX, &evaluated),
    });
    Rollout {
        recheck_after: evaluated.recheck_after(now),
        timed_out: evaluated.timed_out(),
        clusters: [step.begun, step.begin].concat(),
        is_stopped: step.is_stopped,
        removed,
    }
}

/// The clusters that go on, and those that begin.
struct Step {
    begun: Vec<ClusterStatus>,
    begin: Vec<ClusterStatus>,
    is_stopped: bool,
}

/// What is known of clusters of the placement, and of others.
fn split(groups: &DecisionGroups, existing: &[ClusterStatus]) -> (Vec<ClusterStatus>, Vec<ClusterStatus>) {
    let named = existing.iter().filter(|status| !status.cluster.is_empty()).cloned();
    let (mut current, removed): (Vec<_>, Vec<_>) = named.partition(|status| groups.contains(&status.cluster));
    for status in &mut current {
        status.group = groups.group_of(&status.cluster).cloned();
    }
    (current, removed)
}

/// Mandatory groups come first and tolerate no failure; `None` when they are done.
fn mandatory_groups(groups: &[&DecisionGroup], evaluated: &Evaluated) -> Option<Step> {
    let is_member = |cluster: &ClusterName| groups.iter().any(|group| group.contains(cluster));
    let step = group_by_group(groups, Amount::NONE, evaluated, Some(&is_member));
    let is_done = step.begin.is_empty() && !step.is_stopped && !evaluated.any(is_member, Progress::is_unfinished);
    (!is_done).then_some(step)
}

/// One group after the other: the clusters of a group begin when none of those before is in progress. Only clusters that
/// `counts` holds for keep others waiting.
fn group_by_group(
    groups: &[&DecisionGroup],
    max_failures: Amount,
    evaluated: &Evaluated,
    counts: Option<&dyn Fn(&ClusterName) -> bool>,
) -> Step {
    let counts = |cluster: &ClusterName| counts.is_none_or(|counts| counts(cluster));
    let is_busy = evaluated.any(counts, Progress::is_active);
    let failures = |group: &DecisionGroup| {
        group.clusters.iter().filter(|cluster| evaluated.of_cluster(cluster).is_failure()).count()
    };
    let is_stopped = groups.iter().any(|group| failures(group) > max_failures.of(group.clusters.len(), 0));
    let mut begin = Vec::new();
    for group in groups.iter().filter(|_| !is_stopped) {
        let waiting = group.clusters.iter().filter(|cluster| evaluated.of_cluster(cluster).is_waiting());
        begin.extend(waiting.map(|cluster| to_apply(cluster, group)));
        if is_busy || !begin.is_empty() {
            break;
        }
    }
    Step { begun: evaluated.begun(), begin, is_stopped }
}

/// As many clusters at a time as `max_concurrency` allows, by name, until more than `max_failures` have failed.
fn some_at_a_time(
    groups: &[&DecisionGroup],
    max_concurrency: Amount,
    max_failures: usize,
    evaluated: &Evaluated,
) -> Step {
    let mut members: Vec<_> =
        groups.iter().flat_map(|group| group.clusters.iter().map(move |cluster| (cluster, *group))).collect();
    members.sort_unstable_by_key(|(cluster, _)| *cluster);
    let size = max_concurrency.of(members.len(), members.len());
    let mut begun = evaluated.begun();
    begun.truncate(size);
    let is_stopped = evaluated.failures() > max_failures;
    let free = if is_stopped { 0 } else { size - begun.len() };
    // Those that are known come first: the change may have been applied, with its status not known yet.
    let (known, unknown): (Vec<_>, Vec<_>) = members
        .into_iter()
        .filter(|(cluster, _)| evaluated.of_cluster(cluster).is_waiting())
        .partition(|(cluster, _)| evaluated.of_cluster(cluster) == Progress::Waiting);
    let begin = known.into_iter().chain(unknown).take(free).map(|(cluster, group)| to_apply(cluster, group)).collect();
    Step { begun, begin, is_stopped }
}

fn to_apply(cluster: &ClusterName, group: &DecisionGroup) -> ClusterStatus {
    let (cluster, group) = (cluster.clone(), Some(group.key.clone()));
    ClusterStatus { cluster, group, status: Status::ToApply, last_transition: None }
}
