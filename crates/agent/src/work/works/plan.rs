//! What to do about a work. Pure.

use std::time::Duration;

use kube::ResourceExt as _;
use ocm_api::{
    annotations::HUB_REVISION,
    components, conditions, finalizers,
    work::v1::{AppliedManifestResourceMeta, AppliedManifestWork, AppliedManifestWorkSpec},
};
use ocm_runtime::{
    Requeue,
    conditions::{NewCondition, is_true},
    write::{has_finalizer, is_deleting},
};

use super::{
    super::{identifier, ownership, record, refusal, resources::ApplyError, retry::Retry, status},
    Observed,
    resolve::ResolvedManifest,
};

/// What to do about a work.
#[derive(Clone, Debug)]
pub(in crate::work) enum Plan {
    /// Nothing to do, or to wait for a change.
    Nothing,
    /// Set a condition of the work and leave everything else as it is.
    SetCondition { condition: NewCondition, requeue: Requeue },
    /// Apply it.
    Apply(Box<ApplyPlan>),
    /// The record carries an id that is not known here: give it ours, so that its deletion is finished.
    Adopt(Box<AppliedManifestWork>),
    /// Delete the record, which deletes the objects that it lists.
    Delete(Box<DeletePlan>),
    /// All objects are gone: remove the finalizer of the work.
    RemoveFinalizer,
}

/// What applying a work takes.
#[derive(Clone, Debug)]
pub(in crate::work) struct ApplyPlan {
    /// The record as it should be.
    pub applied_work: AppliedManifestWork,
    /// Indices of the manifests, in the order to apply them.
    pub order: Vec<usize>,
    /// What was recorded last time.
    pub recorded: Vec<AppliedManifestResourceMeta>,
    /// What the record is to list before it is created.
    pub planned: Vec<AppliedManifestResourceMeta>,
}

/// What deleting the objects of a work takes.
#[derive(Clone, Debug)]
pub(in crate::work) struct DeletePlan {
    /// The record as it is.
    pub applied_work: AppliedManifestWork,
    /// Objects that are to stay.
    pub release: Vec<AppliedManifestResourceMeta>,
    /// Objects of the spec that the record does not list: they were applied if the record owns them.
    pub unrecorded: Vec<AppliedManifestResourceMeta>,
}

pub(super) fn plan(observed: &Observed) -> Plan {
    if is_deleting(observed.work.as_ref()) {
        return plan_deletion(observed);
    }
    if let Some(applied_work) = observed.applied_work.as_deref().filter(|record| is_deleting(*record)) {
        // Somebody deletes the record: apply again when it is gone.
        return while_record_is_deleted(observed, applied_work, status::blocked);
    }
    match refusal::reason(&observed.work.spec) {
        Some(reason) => Plan::SetCondition { condition: status::refused(reason), requeue: Requeue::OnChange },
        None => Plan::Apply(Box::new(plan_apply(observed))),
    }
}

fn plan_apply(observed: &Observed) -> ApplyPlan {
    let mut order: Vec<_> = (0..observed.manifests.len()).collect();
    order.sort_by_key(|index| observed.manifests.get(*index).map(|manifest| manifest.rank));
    let planned = planned(observed);
    let recorded = recorded(observed.applied_work.as_deref());
    ApplyPlan { applied_work: record(observed, &planned), order, recorded, planned }
}

/// The objects of the spec that are deleted with the work. What is to stay is not lost if it is not recorded.
fn planned(observed: &Observed) -> Vec<AppliedManifestResourceMeta> {
    let mut planned = of_spec(observed);
    planned.retain(|resource| is_owned(observed, resource));
    planned
}

fn recorded(applied_work: Option<&AppliedManifestWork>) -> Vec<AppliedManifestResourceMeta> {
    applied_work.map(record::listed).unwrap_or_default()
}

/// The record as it should be: as it is, but with our spec and finalizer; or new, with the work's labels.
fn record(observed: &Observed, planned: &[AppliedManifestResourceMeta]) -> AppliedManifestWork {
    let settings = &observed.settings;
    let work = observed.work.name_any();
    let mut record = observed.applied_work.as_deref().cloned().unwrap_or_else(|| {
        let mut new = AppliedManifestWork::default();
        new.metadata.name = Some(components::applied_manifest_work_name(&settings.hub_hash, &work));
        new.metadata.labels.clone_from(&observed.work.metadata.labels);
        new.metadata.annotations =
            observed.work.resource_version().map(|version| [(HUB_REVISION.into(), version)].into());
        record::list_first(&mut new, planned);
        new
    });
    if !has_finalizer(&record, finalizers::APPLIED_MANIFEST_WORK) {
        record.metadata.finalizers.get_or_insert_default().push(finalizers::APPLIED_MANIFEST_WORK.into());
    }
    record.spec = AppliedManifestWorkSpec {
        hub_hash: settings.hub_hash.clone(),
        agent_id: settings.agent_id.clone(),
        manifest_work_name: work,
    };
    record
}

fn plan_deletion(observed: &Observed) -> Plan {
    let work = observed.work.as_ref();
    if !has_finalizer(work, finalizers::MANIFEST_WORK) {
        return Plan::Nothing;
    }
    let Some(applied_work) = observed.applied_work.as_deref() else { return Plan::RemoveFinalizer };
    if is_deleting(applied_work) || !observed.settings.owns(applied_work) {
        return while_record_is_deleted(observed, applied_work, status::deleting);
    }
    if let Some(field) = work.spec.delete_option.as_ref().and_then(refusal::unsupported_delete_option) {
        return Plan::SetCondition { condition: status::held(&field), requeue: Requeue::OnChange };
    }
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    if !is_true(conditions, conditions::work::DELETING) {
        // Reported before anything is deleted. If that cannot be written, nothing is deleted.
        return Plan::SetCondition { condition: status::deleting(&[]), requeue: Requeue::After(Duration::ZERO) };
    }
    match to_release(observed) {
        Ok(release) => Plan::Delete(Box::new(DeletePlan {
            applied_work: applied_work.clone(),
            release,
            unrecorded: unrecorded(observed),
        })),
        Err(failures) => {
            let requeue = Retry::BackOff.requeue(&observed.settings);
            Plan::SetCondition { condition: status::deleting(&failures), requeue }
        }
    }
}

/// Writes only when something went wrong, or no longer does. A record with another id is adopted: its name says that it is
/// of this work, the agent may have lost its id with its secret, and a record with another id is never finalized. (That of
/// a live work gets the present id with the next pass.)
fn while_record_is_deleted(
    observed: &Observed,
    applied_work: &AppliedManifestWork,
    condition: impl FnOnce(&[String]) -> NewCondition,
) -> Plan {
    if !observed.settings.owns(applied_work) {
        return Plan::Adopt(Box::new(applied_work.clone()));
    }
    let Some(failures) = &observed.stuck else { return Plan::Nothing };
    Plan::SetCondition { condition: condition(failures), requeue: Requeue::OnChange }
}

/// The objects that stay when the work is deleted. What was applied may not be recorded yet, so all objects of the spec
/// count as well. Fails while it is not known whether a manifest is one of them: it would be deleted with the record.
fn to_release(observed: &Observed) -> Result<Vec<AppliedManifestResourceMeta>, Vec<String>> {
    let spec = &observed.work.spec;
    let may_stay = observed.manifests.iter().filter(|manifest| ownership::may_stay(spec, &manifest.meta));
    let failures: Vec<_> = may_stay.filter_map(unmapped).collect();
    if !failures.is_empty() {
        return Err(failures);
    }
    let mut staying = [recorded(observed.applied_work.as_deref()), not_recorded(observed)].concat();
    staying.retain(|resource| !is_owned(observed, resource));
    Ok(staying)
}

/// The objects of the spec that are to be deleted with the work and are not recorded: the agent may have been stopped
/// after it applied them.
fn unrecorded(observed: &Observed) -> Vec<AppliedManifestResourceMeta> {
    let mut unrecorded = not_recorded(observed);
    unrecorded.retain(|resource| is_owned(observed, resource));
    unrecorded
}

fn is_owned(observed: &Observed, resource: &AppliedManifestResourceMeta) -> bool {
    ownership::is_owned(&observed.work.spec, &identifier::of_recorded(resource))
}

fn not_recorded(observed: &Observed) -> Vec<AppliedManifestResourceMeta> {
    record::not_among(&of_spec(observed), &recorded(observed.applied_work.as_deref()))
}

fn of_spec(observed: &Observed) -> Vec<AppliedManifestResourceMeta> {
    let manifests = observed.manifests.iter().filter(|manifest| manifest.can_be_applied());
    manifests.map(|manifest| identifier::recorded(&manifest.meta, None)).collect()
}

/// Why the resource of a manifest's kind could not be looked up. What is invalid was never applied, and of a kind that the
/// cluster does not serve there are no objects.
pub(super) fn unmapped(manifest: &ResolvedManifest) -> Option<String> {
    match &manifest.target {
        Err(error @ ApplyError::Request(_)) => Some(format!("{}: {}", status::name(&manifest.meta), error.explain())),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
