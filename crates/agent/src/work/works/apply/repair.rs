//! Applying the copy of a work while the hub is away.
//!
//! A copy does not say whether it is the newest version of its work. The record (AppliedManifestWork) does say what the agent
//! has applied and not deleted, so only objects that it lists are applied. What it does not list was taken out of the work and
//! deleted, or was never created: it waits for the hub. So repairing adds no object to those that the record lists, and when
//! the hub is back each of them is applied as it is now in the work, or deleted if it is no longer in the work.
//!
//! An object that was deleted and is created again has a new uid, and a listed object with another uid than the listed one is
//! never deleted. So an entry loses its uid before its object is created, and gets the new one afterwards.

use std::collections::{HashMap, HashSet};

use futures::{StreamExt as _, stream};
use ocm_api::work::v1::{AppliedManifestWork, ResourceIdentifier};
use ocm_runtime::{Result, write};

use super::{AT_A_TIME, ApplyPlan, Observed, Outcome, Works, apply_objects};
use crate::work::{
    identifier,
    options::ManifestOptions,
    resources::Resources,
    status::{self, ObjectState},
    works::resolve::ResolvedManifest,
};

/// The uids to record; `None` for objects that do not exist.
type Uids = HashMap<ResourceIdentifier, Option<String>>;

/// What came of applying a copy.
#[derive(Debug, Default)]
pub(in crate::work) struct Repaired {
    /// What happened to each object that was applied.
    pub outcomes: Vec<Outcome>,
    /// The number of objects that the record does not list.
    pub left_out: usize,
}

/// Applies the objects of a copy that the record lists. Nothing is deleted or reported.
pub(in crate::work::works) async fn repair(
    controller: &Works,
    observed: &Observed,
    plan: &ApplyPlan,
) -> Result<Repaired> {
    let Some(record) = observed.applied_work.as_deref() else { return Ok(Repaired::default()) };
    let order = listed(observed, plan);
    let missing = missing(&controller.shared.resources, observed, &order).await;
    let record = record_uids(controller, record.clone(), &missing).await?;
    let outcomes = apply_objects(controller, observed, &record, &order, &plan.recorded).await;
    record_uids(controller, record, &existing(&outcomes)).await?;
    Ok(Repaired { outcomes, left_out: plan.order.len() - order.len() })
}

/// The manifests to apply. Those that cannot be resolved are among them: nothing is written for them, and their outcome says
/// when to retry.
fn listed(observed: &Observed, plan: &ApplyPlan) -> Vec<usize> {
    let recorded: HashSet<_> = plan.recorded.iter().map(identifier::of_recorded).collect();
    let is_listed = |manifest: &ResolvedManifest| manifest.target.is_err() || recorded.contains(&manifest.identifier());
    let of_plan = plan.order.iter().copied();
    of_plan.filter(|index| observed.manifests.get(*index).is_some_and(is_listed)).collect()
}

/// Which of the objects do not exist.
async fn missing(resources: &Resources, observed: &Observed, order: &[usize]) -> Uids {
    let manifests = order.iter().filter_map(|index| observed.manifests.get(*index));
    let metas = manifests.filter(|manifest| manifest.can_be_applied()).map(|manifest| manifest.meta.clone());
    let states = stream::iter(metas.collect::<Vec<_>>()).map(|meta| async move {
        let state = resources.observe(&meta, &ManifestOptions::default()).await;
        (state == ObjectState::NotFound).then(|| (identifier::of_manifest(&meta), None))
    });
    states.buffered(AT_A_TIME).filter_map(|missing| async { missing }).collect().await
}

fn existing(outcomes: &[Outcome]) -> Uids {
    let existing = status::existing(outcomes).into_iter();
    existing.map(|resource| (identifier::of_recorded(&resource), resource.uid)).collect()
}

/// Writes the uids to the entries of the record, and returns it as it is then.
async fn record_uids(controller: &Works, record: AppliedManifestWork, uids: &Uids) -> Result<AppliedManifestWork> {
    let new = with_uids(&record, uids);
    let patched = write::patch_status(&controller.applied_works(), &record, &new).await?;
    let Some(patched) = patched else { return Ok(record) };
    controller.shared.applied_works.record_write(patched.clone());
    Ok(patched)
}

/// The record with these uids in its entries. No entry is added or removed.
fn with_uids(record: &AppliedManifestWork, uids: &Uids) -> AppliedManifestWork {
    let mut new = record.clone();
    for resource in new.status.iter_mut().flat_map(|status| &mut status.applied_resources) {
        if let Some(uid) = uids.get(&identifier::of_recorded(resource)) {
            resource.uid.clone_from(uid);
        }
    }
    new
}
