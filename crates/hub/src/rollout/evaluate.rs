//! What the status of each cluster means at one moment.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{ClusterStatus, Limits, Status};
use crate::decisions::ClusterName;

/// How a cluster counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It has no status.
    Unknown,
    /// It waits for the change, or nothing is known of the change yet.
    Waiting,
    /// It is in progress, or has succeeded a short time ago.
    Active,
    /// It has failed and may still succeed.
    Failing,
    /// Its time is over.
    TimedOut,
    /// It is done, or left out.
    Done,
}

impl Progress {
    pub(super) fn is_waiting(self) -> bool {
        matches!(self, Self::Unknown | Self::Waiting)
    }

    pub(super) fn is_active(self) -> bool {
        self == Self::Active
    }

    pub(super) fn is_failure(self) -> bool {
        matches!(self, Self::Failing | Self::TimedOut)
    }

    pub(super) fn is_unfinished(self) -> bool {
        self != Self::Done
    }

    fn has_begun(self) -> bool {
        matches!(self, Self::Active | Self::Failing)
    }
}

/// Every cluster with a status, by name.
pub(super) struct Evaluated(BTreeMap<ClusterName, Cluster>);

struct Cluster {
    status: ClusterStatus,
    progress: Progress,
    /// When it becomes another one by itself.
    ends: Option<Timestamp>,
    /// Whether its time has ended just now.
    is_late: bool,
}

impl Evaluated {
    pub(super) fn of(current: Vec<ClusterStatus>, limits: &Limits, now: Timestamp) -> Self {
        Self(current.into_iter().map(|status| (status.cluster.clone(), Cluster::of(status, limits, now))).collect())
    }

    pub(super) fn of_cluster(&self, cluster: &ClusterName) -> Progress {
        self.0.get(cluster).map_or(Progress::Unknown, |cluster| cluster.progress)
    }

    /// The clusters that have begun and are not done.
    pub(super) fn begun(&self) -> Vec<ClusterStatus> {
        self.all(|cluster| cluster.progress.has_begun())
    }

    /// The clusters whose time has ended.
    pub(super) fn timed_out(&self) -> Vec<ClusterStatus> {
        self.all(|cluster| cluster.is_late)
    }

    pub(super) fn failures(&self) -> usize {
        self.0.values().filter(|cluster| cluster.progress.is_failure()).count()
    }

    pub(super) fn any(&self, counts: impl Fn(&ClusterName) -> bool, is_so: fn(Progress) -> bool) -> bool {
        self.0.iter().any(|(name, cluster)| counts(name) && is_so(cluster.progress))
    }

    pub(super) fn recheck_after(&self, now: Timestamp) -> Option<SignedDuration> {
        let ends = self.0.values().filter_map(|cluster| cluster.ends).min()?;
        Some(ends.duration_since(now))
    }

    fn all(&self, is_so: impl Fn(&Cluster) -> bool) -> Vec<ClusterStatus> {
        self.0.values().filter(|cluster| is_so(cluster)).map(|cluster| cluster.status.clone()).collect()
    }
}

impl Cluster {
    fn of(status: ClusterStatus, limits: &Limits, now: Timestamp) -> Self {
        let end = |limit: SignedDuration| {
            status.last_transition.unwrap_or(now).saturating_add(limit).unwrap_or(Timestamp::MAX)
        };
        let as_is = |progress| (progress, None, false);
        let (progress, ends, is_late) = match (status.status, limits.progress_deadline.map(end)) {
            (Status::ToApply, _) => as_is(Progress::Waiting),
            (Status::TimeOut, _) => as_is(Progress::TimedOut),
            (Status::Skip, _) => as_is(Progress::Done),
            (Status::Succeeded, _) => {
                let end = end(limits.min_success_time);
                if now < end { (Progress::Active, Some(end), false) } else { as_is(Progress::Done) }
            }
            (Status::Progressing | Status::Failed, Some(end)) if end <= now => (Progress::TimedOut, None, true),
            (Status::Failed, end) => (Progress::Failing, end, false),
            (Status::Progressing, end) => (Progress::Active, end, false),
        };
        let status = if is_late { ClusterStatus { status: Status::TimeOut, ..status } } else { status };
        Self { status, progress, ends, is_late }
    }
}
