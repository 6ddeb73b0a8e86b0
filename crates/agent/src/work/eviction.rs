//! Deletes AppliedManifestWorks whose ManifestWork no longer exists on this hub.
//!
//! The ManifestWork may have been removed by force, or the agent may have moved to another hub. The record is kept for a grace
//! period first, since a hub that lost its works may get them back. The period is measured by the time in the record, and by
//! the monotonic clock of this process: a wall clock that jumps ends no grace period. If the hub seems to have lost its works,
//! the record is kept until somebody confirms that they are gone; see [`super::safety`].
//!
//! Records that carry the id this agent had before get its present one, so that they are still found when the hub's address
//! changes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, ResourceExt as _};
use ocm_api::{
    annotations, components,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_runtime::{
    Change, Controller, ControllerBuilder, Error, ObjectKey, Requeue, Result, error::ResultExt as _, write,
};
use tokio::time::Instant;
use tracing::{error, warn};

use super::{Shared, record, safety::Verdict};

/// A grace period of this length or more means: never.
pub(super) const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The controller; its keys are names of AppliedManifestWorks.
#[derive(Debug)]
pub(super) struct Eviction {
    shared: Shared,
    /// The records whose works are missing: their uid, and since when this process knows.
    missing: Mutex<HashMap<String, (Option<String>, Instant)>>,
}

/// A record, and whether its ManifestWork exists on this hub.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    record: Arc<AppliedManifestWork>,
    has_work: bool,
    /// Whether it may be deleted; not asked while its work exists.
    verdict: Verdict,
    adopts: bool,
    grace: Duration,
    /// For how long this process has known that the work is missing.
    missing_for: Duration,
}

/// What to do about a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// It carries the agent's former id: give it the present one.
    Adopt,
    /// Its work exists: remove the start of an eviction.
    Keep,
    /// Its work has not existed since this time: check again after this long.
    Wait { since: Timestamp, left: Duration },
    /// Its work may be missing by mistake: keep it until somebody confirms. `is_new` if the record does not say so yet.
    Hold { is_new: bool },
    /// The grace period is over, or somebody confirmed that the work is gone.
    Evict,
}

impl Eviction {
    pub(super) fn new(shared: Shared) -> Self {
        Self { shared, missing: Mutex::default() }
    }

    /// For how long the grace period of a record has lasted in this process. It ends with `false`.
    fn missing_for(&self, key: &str, uid: Option<String>, is_missing: bool) -> Duration {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_missing {
            missing.remove(key);
            return Duration::ZERO;
        }
        let since = missing.entry(key.to_owned()).or_insert_with(|| (uid.clone(), Instant::now()));
        if since.0 != uid {
            // Another record of that name.
            *since = (uid, Instant::now());
        }
        since.1.elapsed()
    }

    fn has_work(&self, record: &AppliedManifestWork) -> bool {
        self.is_of_this_hub(record) && self.work_is_cached(record)
    }

    fn work_is_cached(&self, record: &AppliedManifestWork) -> bool {
        let key = ObjectKey::new(&self.shared.settings.cluster, &record.spec.manifest_work_name);
        self.shared.works.get(&key).is_some()
    }

    fn is_of_this_hub(&self, record: &AppliedManifestWork) -> bool {
        record.name_any() == self.present_name(record)
    }

    /// The name that the record of the work has on this hub.
    fn present_name(&self, record: &AppliedManifestWork) -> String {
        components::applied_manifest_work_name(&self.shared.settings.hub_hash, &record.spec.manifest_work_name)
    }

    /// Whether a work of this hub still relies on a record from a former address of the hub: it exists and was not applied
    /// under the present address, since it is complete or is refused.
    fn is_relied_on(&self, record: &AppliedManifestWork) -> bool {
        let has_present_record = self.shared.applied_works.named(&self.present_name(record)).is_some();
        !self.is_of_this_hub(record) && self.work_is_cached(record) && !has_present_record
    }

    /// Whether the record may be deleted. Not asked where it is not deleted anyway.
    async fn verdict(&self, record: &AppliedManifestWork, has_work: bool) -> Result<Verdict> {
        match has_work || self.shared.settings.eviction_grace >= NEVER || self.shared.settings.adopts(record) {
            true => Ok(Verdict::AfterGrace),
            false => self.shared.guard.judge(record).await,
        }
    }

    /// Writes into the record whether a restore of the hub lost its work: after a restart, that can no longer be found.
    async fn mark(&self, record: &AppliedManifestWork, is_lost: bool) -> Result<Option<AppliedManifestWork>> {
        let (mut new, key) = (record.clone(), annotations::EVICTION_HELD.to_owned());
        match is_lost {
            true => _ = new.annotations_mut().insert(key, annotations::EVICTION_HELD_HUB_RESTORED.into()),
            false if !record.annotations().contains_key(&key) => return Ok(None),
            false => _ = new.annotations_mut().remove(&key),
        }
        self.patch(record, &new).await
    }

    async fn patch(&self, old: &AppliedManifestWork, new: &AppliedManifestWork) -> Result<Option<AppliedManifestWork>> {
        let api = Api::<AppliedManifestWork>::all(self.shared.resources.client().clone());
        let patched = write::patch(&api, old, new).await?;
        patched.iter().for_each(|patched| self.shared.applied_works.record_write(patched.clone()));
        Ok(patched)
    }

    async fn adopt(&self, record: &AppliedManifestWork) -> Result<()> {
        let mut new = record.clone();
        new.spec.agent_id.clone_from(&self.shared.settings.agent_id);
        self.patch(record, &new).await.map(|_| ())
    }

    /// Deletes the record, unless its work exists after all.
    async fn evict(&self, record: &AppliedManifestWork) -> Result<Plan> {
        let work = &record.spec.manifest_work_name;
        if self.is_relied_on(record) {
            warn!(work, "this ManifestWork was applied under a former address of the hub only, keeping its objects");
            return Ok(Plan::Keep);
        }
        if !self.is_gone(record).await? {
            error!(work, "this ManifestWork exists on the hub and cannot be read, keeping what was applied of it");
            return Ok(Plan::Keep);
        }
        warn!(work, "this ManifestWork no longer exists on this hub, deleting what was applied of it");
        let api = Api::<AppliedManifestWork>::all(self.shared.resources.client().clone());
        write::delete(&api, record).await?;
        Ok(Plan::Evict)
    }

    /// Whether the work does not exist, by a live request: the cache also lacks works that cannot be read.
    async fn is_gone(&self, record: &AppliedManifestWork) -> Result<bool> {
        if !self.is_of_this_hub(record) {
            return Ok(true);
        }
        let works = Api::<ManifestWork>::namespaced(self.shared.hub.client().clone(), &self.shared.settings.cluster);
        let work = &record.spec.manifest_work_name;
        let found = works.get_metadata_opt(work).await;
        Ok(found.while_trying_to("get", || format!("ManifestWork {work}"))?.is_none())
    }
}

impl Controller for Eviction {
    const NAME: &'static str = "applied-manifestwork-eviction";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Plan;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let settings = self.shared.settings.clone();
        self.shared.guard.notify(builder.queue());
        builder.watches(&self.shared.applied_works, move |change| {
            let record = change.object();
            settings.owns(record).then(|| record.name_any())
        });
        let hub = self.shared.settings.hub_hash.clone();
        builder.watches(&self.shared.works, move |change| {
            let comes_or_goes = !matches!(change, Change::Updated { .. });
            comes_or_goes.then(|| components::applied_manifest_work_name(&hub, &change.object().name_any()))
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let settings = &self.shared.settings;
        let record = self.shared.applied_works.named(key);
        let record = record.filter(|record| !write::is_deleting(record.as_ref()) && settings.owns(record));
        let Some(record) = record else {
            self.missing_for(key, None, false);
            return Ok(None);
        };
        let (has_work, adopts) = (self.has_work(&record), settings.adopts(&record));
        let verdict = self.verdict(&record, has_work).await?;
        let missing_for = self.missing_for(key, record.uid(), !has_work && verdict == Verdict::AfterGrace);
        Ok(Some(Observed { record, has_work, verdict, adopts, grace: settings.eviction_grace, missing_for }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        if observed.adopts {
            return Plan::Adopt;
        }
        if observed.has_work || observed.grace >= NEVER {
            return Plan::Keep;
        }
        match observed.verdict {
            Verdict::AfterGrace => {}
            Verdict::Confirmed => return Plan::Evict,
            Verdict::Held => return Plan::Hold { is_new: false },
            Verdict::Lost => return Plan::Hold { is_new: true },
        }
        let status = observed.record.status.as_ref();
        let since = status.and_then(|status| status.eviction_start_time.as_ref()).map_or(now, |time| time.0);
        // A start in the future is that of a clock that was ahead.
        let since = since.min(now);
        let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default().min(observed.missing_for);
        match observed.grace.saturating_sub(passed) {
            Duration::ZERO => Plan::Evict,
            left => Plan::Wait { since, left },
        }
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<Plan> {
        let record = &observed.record;
        match plan {
            Plan::Adopt => self.adopt(record).await?,
            Plan::Hold { is_new: true } => _ = self.mark(record, true).await?,
            Plan::Keep if observed.has_work => _ = self.mark(record, false).await?,
            Plan::Evict => return self.evict(record).await,
            Plan::Keep | Plan::Hold { .. } | Plan::Wait { .. } => {}
        }
        Ok(plan)
    }

    async fn report(&self, observed: &Observed, plan: Plan, _: Timestamp) -> Result<Requeue> {
        let since = match plan {
            // The grace period begins when the hold ends.
            Plan::Keep | Plan::Hold { .. } => None,
            Plan::Wait { since, .. } => Some(Time(since)),
            Plan::Adopt => return Ok(Requeue::After(Duration::ZERO)),
            Plan::Evict => return Ok(Requeue::OnChange),
        };
        let new = with_start(observed.record.as_ref(), since);
        let api = Api::<AppliedManifestWork>::all(self.shared.resources.client().clone());
        if let Some(patched) = write::patch_status(&api, observed.record.as_ref(), &new).await? {
            self.shared.applied_works.record_write(patched);
        }
        match plan {
            Plan::Wait { left, .. } => Ok(Requeue::After(left)),
            // The work exists, but cannot be read or was not applied under the present address of the hub: the watches may not
            // report a change of that.
            Plan::Keep if !observed.has_work && observed.grace < NEVER => Ok(Requeue::After(observed.grace)),
            Plan::Adopt | Plan::Keep | Plan::Hold { .. } | Plan::Evict => Ok(Requeue::OnChange),
        }
    }
}

/// The record with the start of its grace period.
fn with_start(record: &AppliedManifestWork, since: Option<Time>) -> AppliedManifestWork {
    let mut new = record.clone();
    if since.is_some() || new.status.is_some() {
        // The annotation that lists the objects of a first pass counts only while there is no status.
        let listed = record::listed(record);
        let status = new.status.get_or_insert_default();
        (status.applied_resources, status.eviction_start_time) = (listed, since);
    }
    new
}

#[cfg(test)]
mod tests;
