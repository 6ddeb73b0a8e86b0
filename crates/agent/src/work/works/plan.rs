//! What to do about a work. Pure.

use kube::ResourceExt as _;
use ocm_api::{
    components, finalizers,
    work::v1::{
        AppliedManifestResourceMeta, AppliedManifestWork, AppliedManifestWorkSpec, DeleteOption, PropagationPolicy,
    },
};
use ocm_runtime::write::{has_finalizer, is_deleting};

use super::{
    super::{
        manifest::{self, Item},
        refusal,
    },
    Observed,
};

/// What to do about a work.
#[derive(Clone, Debug)]
pub(in crate::work) enum Plan {
    /// Nothing to do, or to wait for.
    Nothing,
    /// Say why it is not applied, and leave everything as it is.
    Refuse(String),
    /// Apply it.
    Apply(Box<ApplyPlan>),
    /// Delete the record, which deletes the objects. `release` are objects that are to stay.
    Delete { applied: Box<AppliedManifestWork>, release: Vec<AppliedManifestResourceMeta> },
    /// Deleting it would delete what its owner has asked to keep in a way that is not understood.
    Hold(String),
    /// Everything is gone: let the work go.
    LetGo,
}

/// What applying a work takes.
#[derive(Clone, Debug)]
pub(in crate::work) struct ApplyPlan {
    /// The record as it should be.
    pub record: AppliedManifestWork,
    /// The objects, in the order to apply them.
    pub items: Vec<Item>,
    /// What was recorded last time.
    pub recorded: Vec<AppliedManifestResourceMeta>,
}

pub(super) fn plan(observed: &Observed) -> Plan {
    if is_deleting(observed.work.as_ref()) {
        return plan_deletion(observed);
    }
    if observed.applied.as_deref().is_some_and(is_deleting) {
        // Somebody deletes the record: apply again when it is gone.
        return Plan::Nothing;
    }
    match refusal::reason(&observed.work.spec) {
        Some(reason) => Plan::Refuse(reason),
        None => Plan::Apply(Box::new(plan_apply(observed))),
    }
}

fn plan_apply(observed: &Observed) -> ApplyPlan {
    let mut items = manifest::read(&observed.work.spec.workload.manifests);
    items.sort_by_key(Item::rank);
    ApplyPlan { record: record(observed), items, recorded: recorded(observed.applied.as_deref()) }
}

fn recorded(applied: Option<&AppliedManifestWork>) -> Vec<AppliedManifestResourceMeta> {
    let status = applied.and_then(|applied| applied.status.as_ref());
    status.map(|status| status.applied_resources.clone()).unwrap_or_default()
}

/// The record as it should be: as it is, but with our spec and finalizer; or new, with the work's labels.
fn record(observed: &Observed) -> AppliedManifestWork {
    let settings = &observed.settings;
    let work = observed.work.name_any();
    let mut record = observed.applied.as_deref().cloned().unwrap_or_else(|| {
        let mut new = AppliedManifestWork::default();
        new.metadata.name = Some(components::applied_manifest_work_name(&settings.hub_hash, &work));
        new.metadata.labels.clone_from(&observed.work.metadata.labels);
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
    if !has_finalizer(observed.work.as_ref(), finalizers::MANIFEST_WORK) {
        return Plan::Nothing;
    }
    let Some(applied) = &observed.applied else { return Plan::LetGo };
    if is_deleting(applied.as_ref()) {
        return Plan::Nothing;
    }
    let option = observed.work.spec.delete_option.as_ref();
    if let Some(field) = option.and_then(refusal::unsupported_delete_option) {
        return Plan::Hold(format!(
            "Not deleted: this agent does not support {field} yet and would delete objects that are to stay. Set \
             spec.deleteOption.propagationPolicy to Foreground to delete them all or to Orphan to keep them all"
        ));
    }
    let release = if orphans(option) { recorded(Some(applied)) } else { Vec::new() };
    Plan::Delete { applied: Box::new(applied.as_ref().clone()), release }
}

fn orphans(option: Option<&DeleteOption>) -> bool {
    option.is_some_and(|option| option.propagation_policy == PropagationPolicy::Orphan)
}

#[cfg(test)]
mod tests;
