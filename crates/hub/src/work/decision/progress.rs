//! How far a replica set has come on the clusters of its placements.

use std::{ops::AddAssign, sync::Arc};

use super::Inputs;
use crate::{decisions::ClusterName, rollout::Status, work::facts::Work};

/// How far a set has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// In the order of the placements.
    pub(crate) placements: Vec<PlacementProgress>,
    /// The first placement that does not exist; nothing is known of those after it.
    pub(crate) missing: Option<Arc<str>>,
    /// Why placements cannot be followed.
    pub(crate) problems: Vec<String>,
    /// How many works could not be written.
    pub(crate) failed: usize,
    /// The cluster of the first of them, and why.
    pub(crate) failure: Option<(ClusterName, String)>,
    /// Whether agents report when they are done.
    pub(crate) reports_progress: bool,
}

/// How far a set has come on the clusters of one placement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlacementProgress {
    pub(crate) name: Arc<str>,
    /// How many decision groups the placement has, and how many clusters it has chosen, by its status.
    pub(crate) groups: usize,
    pub(crate) selected: i32,
    pub(crate) counts: Counts,
}

/// Works and clusters, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Clusters that the placement has chosen.
    pub(crate) chosen: usize,
    /// Works that have the spec of the template.
    pub(crate) total: usize,
    /// Those of them whose condition is True, without those that are being deleted.
    pub(crate) applied: usize,
    pub(crate) available: usize,
    pub(crate) progressing: usize,
    pub(crate) degraded: usize,
    /// Works whose rollout has succeeded.
    pub(crate) succeeded: usize,
    /// Works that are to have the spec of the template now, and do not.
    pub(crate) pending: usize,
}

impl Progress {
    pub(super) fn of(inputs: &Inputs) -> Self {
        let failure = inputs.failures.iter().next().map(|((cluster, _), failure)| (cluster.clone(), failure.clone()));
        let reports_progress = inputs.set.template.reports_progress();
        Self { failed: inputs.failures.len(), failure, reports_progress, ..Self::default() }
    }

    /// Over all placements.
    pub(crate) fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.placements.iter().for_each(|placement| total += placement.counts);
        total
    }

    /// How many clusters the placements have chosen, by their status.
    pub(crate) fn selected(&self) -> i64 {
        self.placements.iter().map(|placement| i64::from(placement.selected)).sum()
    }
}

impl Counts {
    /// Counts a work that has the spec of the template.
    pub(super) fn count(&mut self, work: &Work) {
        self.total += 1;
        self.succeeded += usize::from(work.rollout_status().0 == Status::Succeeded);
        if work.is_deleting {
            return;
        }
        let conditions = [
            (&mut self.applied, work.applied),
            (&mut self.available, work.available),
            (&mut self.progressing, work.progressing),
            (&mut self.degraded, work.degraded),
        ];
        for (count, condition) in conditions {
            *count += usize::from(condition.is_some_and(|condition| condition.holds == Some(true)));
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.chosen += other.chosen;
        self.total += other.total;
        self.applied += other.applied;
        self.available += other.available;
        self.progressing += other.progressing;
        self.degraded += other.degraded;
        self.succeeded += other.succeeded;
        self.pending += other.pending;
    }
}
