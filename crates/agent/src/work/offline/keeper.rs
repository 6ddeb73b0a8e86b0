//! Brings the copies of works up to date whose objects became complete.
//!
//! A pass over a work brings its copy up to date before it applies an object; see [`Copies::keep`]. That an object is complete is
//! reported afterwards, and a complete work has no further pass.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use ocm_api::{
    components, finalizers,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_runtime::{Change, Controller, ControllerBuilder, ObjectKey, write};

use super::{
    copies::{self, Copies, CopyMeta, KeepError, Plan},
    copy,
};
use crate::work::{Shared, conditions::is_complete};

/// The controller; its keys are names of ManifestWorks.
#[derive(Debug)]
pub(super) struct Keeper {
    shared: Shared,
    copies: Copies,
}

/// A work with its record and its copy.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    work: Arc<ManifestWork>,
    record: Arc<AppliedManifestWork>,
    existing: Option<Arc<CopyMeta>>,
    namespace: String,
}

impl Keeper {
    pub(super) fn new(shared: Shared, copies: Copies) -> Self {
        Self { shared, copies }
    }

    /// The work, if it is applied.
    fn work(&self, name: &str) -> Option<Arc<ManifestWork>> {
        let work = self.shared.works.get(&ObjectKey::new(&self.shared.settings.cluster, name))?;
        let is_applied = write::has_finalizer(work.as_ref(), finalizers::MANIFEST_WORK);
        Some(work).filter(|work| is_applied && !write::is_deleting(work.as_ref()))
    }

    fn record(&self, name: &str) -> Option<Arc<AppliedManifestWork>> {
        let record = self.shared.applied_works.named(name);
        record.filter(|record| self.shared.settings.owns(record) && !write::is_deleting(record.as_ref()))
    }
}

impl Controller for Keeper {
    const NAME: &'static str = "offline-copies";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = ();
    type Error = KeepError;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.waits_for(&self.shared.applied_works);
        builder.waits_for(&self.copies.known);
        builder.watches(&self.shared.works, |change| concerns(change).then(|| change.object().name_any()));
    }

    /// The copy is looked up before the work. So if a pass replaces it meanwhile, this work is at least as new, or else
    /// writing is a conflict.
    async fn observe(&self, key: &String) -> Result<Option<Observed>, KeepError> {
        let name = components::applied_manifest_work_name(&self.shared.settings.hub_hash, key);
        let existing = self.copies.existing(&copy::name(&name)).await?;
        let (Some(record), Some(work)) = (self.record(&name), self.work(key)) else { return Ok(None) };
        Ok(Some(Observed { work, record, existing, namespace: self.copies.namespace.clone() }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        copies::plan(observed.existing.as_deref(), &observed.work, &observed.record, &observed.namespace)
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<(), KeepError> {
        self.copies.write(observed.existing.as_deref(), plan).await
    }
}

/// Whether what a work has completed may differ from what its copy says.
fn concerns(change: Change<'_, ManifestWork>) -> bool {
    match change {
        Change::Added(work) => is_complete(work),
        Change::Updated { old, new } => copy::completion(old) != copy::completion(new),
        Change::Deleted(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn work(job: &Value) -> Arc<ManifestWork> {
        let mut condition = json!({"type": "Complete", "status": "False", "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        ocm_apimachinery::merge::apply(&mut condition, job);
        let meta = json!({"ordinal": 0, "group": "batch", "version": "v1", "kind": "Job", "resource": "jobs", "name": "j", "namespace": "n"});
        let manifests = json!([{"resourceMeta": meta, "conditions": [condition]}]);
        let work = json!({"metadata": {"name": "w"}, "spec": {"workload": {"manifests": []}},
            "status": {"resourceStatus": {"manifests": manifests}}});
        Arc::new(serde_json::from_value(work).unwrap())
    }

    #[test]
    fn one_object_that_became_complete_concerns_the_copy_although_the_work_is_not_complete() {
        let (running, complete) = (work(&json!({})), work(&json!({"status": "True"})));
        let concerns = |old: &Arc<_>, new: &Arc<_>| super::concerns(Change::Updated { old, new });
        assert!(concerns(&running, &complete));
        assert!(concerns(&complete, &running));
        assert!(!concerns(&running, &work(&json!({"message": "still running"}))));
        assert!(!concerns(&complete, &work(&json!({"status": "True", "message": "done"}))));
        assert!(!super::concerns(Change::Added(&complete)), "the first pass over the work writes its copy");
    }
}
