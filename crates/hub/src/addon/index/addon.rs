//! The installations of one add-on.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::addon::facts::Management;

/// An add-on: what is said about it, and each cluster on which it is or should be.
#[derive(Debug, Default)]
pub(super) struct AddOn {
    /// `None` when it is none of this hub's business.
    pub(super) management: Option<Management>,
    pub(super) installations: BTreeMap<String, Installation>,
    /// How many installations are wanted and not configured.
    pending: usize,
}

/// An add-on on one cluster, or the want of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Installation {
    /// How many placements of the add-on have chosen the cluster.
    wanted: usize,
    /// Since when none has, when it is installed all the same.
    pub(super) unwanted_since: Option<Timestamp>,
    /// Whether it is configured; `None` when it is not installed.
    pub(super) configured: Option<bool>,
    /// Why it could not be installed.
    pub(super) failure: Option<String>,
}

impl Installation {
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted > 0
    }

    fn is_pending(&self) -> bool {
        self.is_wanted() && self.configured != Some(true)
    }

    fn is_empty(&self) -> bool {
        !self.is_wanted() && self.configured.is_none()
    }

    /// Keeps what follows from the rest.
    fn tidy(&mut self, now: Timestamp) {
        let is_left_over = !self.is_wanted() && self.configured.is_some();
        self.unwanted_since = is_left_over.then(|| self.unwanted_since.unwrap_or(now));
        if self.is_empty() || self.configured.is_some() {
            self.failure = None;
        }
    }
}

impl AddOn {
    /// Whether it is installed wherever it belongs.
    pub(super) fn is_settled(&self) -> bool {
        self.pending == 0
    }

    /// Whether nothing is known of it.
    pub(super) fn is_empty(&self) -> bool {
        self.management.is_none() && self.installations.is_empty()
    }

    /// One more placement has chosen the cluster.
    pub(super) fn want(&mut self, cluster: &str, now: Timestamp) {
        self.alter(cluster, now, |installation| installation.wanted += 1);
    }

    /// One placement less has chosen the cluster.
    pub(super) fn unwant(&mut self, cluster: &str, now: Timestamp) {
        self.alter(cluster, now, |installation| installation.wanted = installation.wanted.saturating_sub(1));
    }

    /// Whoever decides where it belongs has only just begun to: what is left over is so since now.
    pub(super) fn begin_anew(&mut self, now: Timestamp) {
        let left_over = self.installations.values_mut().filter(|installation| installation.unwanted_since.is_some());
        left_over.for_each(|installation| installation.unwanted_since = Some(now));
    }

    /// Changes what is known of a cluster; says whether that made a difference to the progress.
    pub(super) fn alter(&mut self, cluster: &str, now: Timestamp, alter: impl FnOnce(&mut Installation)) -> bool {
        let mut installation = self.installations.remove(cluster).unwrap_or_default();
        let before = (installation.is_wanted(), installation.configured, installation.failure.clone());
        self.pending -= usize::from(installation.is_pending());
        alter(&mut installation);
        installation.tidy(now);
        self.pending += usize::from(installation.is_pending());
        let differs = before != (installation.is_wanted(), installation.configured, installation.failure.clone());
        if !installation.is_empty() {
            self.installations.insert(cluster.to_owned(), installation);
        }
        differs
    }
}
