//! What is known of one applied object.

use std::sync::Arc;

use jiff::Timestamp;
use kube::core::DynamicObject;
use ocm_api::work::v1::ResourceIdentifier;

use super::{
    super::{
        baseline::{Baseline, Verdict},
        damping::{Damping, History},
        fields::ChangedFields,
        report::Repair,
        seen::Seen,
    },
    Epoch,
};

#[derive(Debug, Default)]
pub(super) struct Tracked {
    pub(super) works: Vec<Arc<str>>,
    pub(super) baseline: Option<Baseline>,
    pub(super) seen: Option<(Epoch, Seen)>,
    pub(super) history: History,
    /// What was found since the last write.
    found: Option<Found>,
    /// Whether the write that follows is in the history.
    is_counted: bool,
    /// The fields that others keep changing.
    pub(super) contest: Option<Box<str>>,
}

/// An object that differs from how it was left.
#[derive(Debug)]
struct Found {
    version: Box<str>,
    changed: ChangedFields,
}

/// What to do about an object that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::work) enum Assessment {
    /// It is as it was left.
    Keep,
    /// It differs, and was written so often lately that it is left alone for a while.
    Hold,
    /// It is to be compared with its manifest, and written if it differs.
    Write,
}

impl Tracked {
    /// `None` where the object was not applied, or was not seen.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let (_, seen) = self.seen.as_ref()?;
        Some(self.baseline.as_ref()?.compare(seen))
    }

    pub(super) fn has_drifted(&self) -> bool {
        matches!(self.verdict(), Some(Verdict::Drifted(_)))
    }

    pub(super) fn assess(
        &mut self,
        (manifest, hash): (&DynamicObject, [u8; 32]),
        object: &DynamicObject,
        now: Timestamp,
        damping: Damping,
    ) -> Assessment {
        let has_drifted = self.has_drifted();
        let Some(baseline) = self.baseline.as_mut().filter(|baseline| baseline.is_of(hash)) else {
            return Assessment::Write;
        };
        let is_kept = baseline.is_kept_by(object);
        if is_kept {
            baseline.refresh(&object.metadata);
        } else if self.found.is_none() && !self.history.hold(now, damping).is_zero() {
            // Not after a write that failed: that is to be reported, and retried.
            return Assessment::Hold;
        }
        if has_drifted || !is_kept {
            self.history.count(now, damping);
        }
        self.found = (!is_kept).then(|| Found::of(object, manifest));
        if is_kept { Assessment::Keep } else { Assessment::Write }
    }

    /// What was deleted is written without being assessed, and so is an object of which only the metadata count.
    pub(super) fn count_write(&mut self, now: Timestamp, damping: Damping) {
        if self.has_drifted() && self.found.is_none() && !self.is_counted {
            self.history.count(now, damping);
        }
        self.is_counted = false;
    }

    /// Counts what follows, also if it fails.
    pub(super) fn attempt(&mut self, now: Timestamp, damping: Damping) {
        if self.has_drifted() {
            self.history.count(now, damping);
            self.is_counted = true;
        }
    }

    /// What to report, when the object was left so. The same object at the version that was read was not written.
    pub(super) fn repair(
        &mut self,
        id: &ResourceIdentifier,
        left: &Baseline,
        now: Timestamp,
        damping: Damping,
    ) -> Option<Repair> {
        let (found, former) = (self.found.take(), self.baseline.as_ref()?);
        let is_same_object = former.seen().uid == left.seen().uid;
        let is_written = found.as_ref().is_none_or(|found| found.version != left.seen().version);
        if !left.is_same_manifest(former) || !is_written || (found.is_none() && is_same_object) {
            return None;
        }
        let is_contested = self.history.is_contested(now, damping);
        if !is_contested {
            self.contest = None;
        }
        let is_news = self.history.is_first() || (is_contested && self.contest.is_none());
        if is_contested && self.contest.is_none() {
            self.contest =
                Some(found.as_ref().map_or_else(|| "it was deleted".into(), |found| found.changed.names().into()));
        }
        let cause = found.map(|found| found.changed.to_string());
        Some(Repair { id: id.clone(), works: self.works.clone(), cause, is_contested, is_news })
    }

    pub(super) fn can_drift(&self) -> bool {
        self.baseline.is_some() && !self.works.is_empty()
    }
}

impl Found {
    fn of(object: &DynamicObject, manifest: &DynamicObject) -> Self {
        let version = object.metadata.resource_version.as_deref().unwrap_or_default().into();
        Self { version, changed: ChangedFields::of(object, manifest) }
    }
}
