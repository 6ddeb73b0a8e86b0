//! The life of a ManifestWork on this cluster.
//!
//! A live work is refused, with a reason, or applied: first its finalizer, then the AppliedManifestWork that owns its
//! objects, then the objects, then one status. A deleted work keeps its finalizer until the AppliedManifestWork, and with
//! it every object, is gone. Both use one queue, so that a work is never applied and deleted at the same time.

mod apply;
mod observe;
mod plan;
mod report;
mod resolve;

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, ResourceExt as _};
use ocm_api::{
    components, finalizers,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_runtime::{
    Change, Controller, ControllerBuilder, Error, ObjectKey, Requeue,
    informer::View,
    write::{has_finalizer, is_deleting},
};

pub(super) use self::{
    apply::{Repaired, Report},
    observe::Observed,
    plan::Plan,
    resolve::Target,
};
use super::{Settings, Shared, conditions::is_complete, ownership};

/// The controller; its keys are names of ManifestWorks.
#[derive(Debug)]
pub(super) struct Works {
    shared: Shared,
    /// The records that this agent wrote under other addresses of the hub, until they are evicted.
    former: View<FormerRecord>,
}

#[derive(Clone, Debug)]
struct FormerRecord {
    work: String,
    owner: OwnerReference,
}

impl Works {
    pub(super) fn new(shared: Shared) -> Self {
        let settings = shared.settings.clone();
        let former = shared.applied_works.view(move |record| former_record(record, &settings));
        Self { shared, former }
    }

    /// Looks up what belongs to a copy of a work, which the hub cannot be asked about.
    pub(super) async fn observe_copy(&self, work: ManifestWork) -> Result<Option<Observed>, Error> {
        let name = work.name_any();
        observe::observe_work(self, &name, Arc::new(work)).await
    }

    /// Applies the objects of such a copy that the record lists, and nothing else.
    pub(super) async fn repair(&self, observed: &Observed, plan: &plan::ApplyPlan) -> Repaired {
        apply::repair(self, observed, plan).await
    }

    /// The references to former records of a work.
    fn former_owners(&self, work: &str) -> Vec<OwnerReference> {
        let owners = |records: &BTreeMap<ObjectKey, FormerRecord>| {
            let of_work = records.values().filter(|record| record.work == work);
            of_work.map(|record| record.owner.clone()).collect()
        };
        self.former.read(owners)
    }

    fn works(&self) -> Api<ManifestWork> {
        Api::namespaced(self.shared.hub.client().clone(), &self.shared.settings.cluster)
    }

    fn applied_works(&self) -> Api<AppliedManifestWork> {
        Api::all(self.shared.resources.client().clone())
    }
}

impl Controller for Works {
    const NAME: &'static str = "manifestwork";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Report;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let queue = builder.queue();
        self.shared.stuck.notify(queue.clone());
        self.shared.resources.objects().notify(queue.clone());
        self.shared.executors.notify(queue.clone());
        builder.watches(&self.shared.works, move |change| {
            let name = change.object().name_any();
            let concerns = concerns(change);
            if concerns {
                // A new spec must not wait for the back-off of the old one.
                queue.forget(&name);
            }
            concerns.then_some(name)
        });
        let prefix = components::applied_manifest_work_name(&self.shared.settings.hub_hash, "");
        builder.watches(&self.shared.applied_works, move |change| {
            let work = change.object().metadata.name.as_ref()?.strip_prefix(&prefix)?.to_owned();
            puts_objects_at_risk(change).then_some(work)
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>, Error> {
        observe::observe(self, key).await
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan::plan(observed)
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<Report, Error> {
        apply::apply(self, observed, plan).await
    }

    async fn report(&self, observed: &Observed, applied: Report, now: Timestamp) -> Result<Requeue, Error> {
        report::report(self, observed, applied, now).await
    }
}

fn former_record(record: &AppliedManifestWork, settings: &Settings) -> Option<FormerRecord> {
    let spec = &record.spec;
    let is_former = spec.agent_id == settings.agent_id && spec.hub_hash != settings.hub_hash;
    is_former.then(|| FormerRecord { work: spec.manifest_work_name.clone(), owner: ownership::reference(record) })
}

/// Whether a change of a work needs a reconcile: its status is written by this agent.
fn concerns(change: Change<'_, ManifestWork>) -> bool {
    match change {
        Change::Added(_) => true,
        Change::Updated { old, new } => {
            // Another work of the same name, whose creation the watch has missed.
            old.metadata.uid != new.metadata.uid
                || old.spec != new.spec
                || old.metadata.labels != new.metadata.labels
                || is_deleting(old.as_ref()) != is_deleting(new.as_ref())
                // A complete work was not applied, whatever its spec says.
                || (is_complete(old) && !is_complete(new))
                // This agent adds the finalizer. If another removes it, the objects could stay behind.
                || (has_finalizer(old.as_ref(), finalizers::MANIFEST_WORK)
                    && !has_finalizer(new.as_ref(), finalizers::MANIFEST_WORK))
        }
        Change::Deleted(_) => false,
    }
}

/// Whether a change of a record leaves the work's objects without an owner, or without the finalizer that waits for them.
fn puts_objects_at_risk(change: Change<'_, AppliedManifestWork>) -> bool {
    match change {
        Change::Added(_) => false,
        Change::Updated { old, new } => {
            let is_safe = |record: &AppliedManifestWork| has_finalizer(record, finalizers::APPLIED_MANIFEST_WORK);
            old.metadata.uid != new.metadata.uid || (is_safe(old) && !is_safe(new))
        }
        Change::Deleted(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_work_that_was_replaced_by_one_of_the_same_name_is_reconciled() {
        let work = |uid: &str| {
            let work = json!({"metadata": {"name": "w", "uid": uid, "finalizers": [finalizers::MANIFEST_WORK]}});
            Arc::new(serde_json::from_value::<ManifestWork>(work).unwrap())
        };
        let (old, new) = (work("1"), work("2"));
        assert!(concerns(Change::Updated { old: &old, new: &new }));
        assert!(!concerns(Change::Updated { old: &old, new: &old }));
    }
}
