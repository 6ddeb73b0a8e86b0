//! Keeps a copy of each work on the managed cluster, while the hub is there.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
    core::PartialObjectMeta,
};
use ocm_api::{
    annotations::OFFLINE_COPY_DIGEST,
    components, finalizers,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_runtime::{Change, Controller, ControllerBuilder, Error, ObjectKey, Requeue, Result, ResultExt as _, write};
use serde_json::json;
use tracing::warn;

use super::{
    Copies,
    copy::{self, CopyError},
};
use crate::work::Shared;

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
    existing: Option<Arc<PartialObjectMeta<Secret>>>,
    namespace: String,
}

/// What to write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plan {
    Nothing,
    Create(Box<Secret>),
    Replace(Box<Secret>),
    /// There can be no copy.
    Impossible(CopyError),
}

impl Keeper {
    pub(super) fn new(shared: Shared, copies: Copies) -> Self {
        Self { shared, copies }
    }

    /// Replaces exactly the copy that was observed.
    async fn replace(&self, existing: &PartialObjectMeta<Secret>, new: Secret) -> Result<()> {
        let meta = json!({"uid": existing.metadata.uid, "resourceVersion": existing.metadata.resource_version,
            "labels": new.metadata.labels, "annotations": new.metadata.annotations,
            "ownerReferences": new.metadata.owner_references});
        let (api, name) = (&self.copies.secrets, new.name_any());
        let patch = Patch::Merge(json!({"metadata": meta, "data": new.data}));
        let patched = api.patch_metadata(&name, &PatchParams::default(), &patch).await;
        let patched = patched.while_trying_to("patch", || format!("Secret {name}"))?;
        self.copies.known.record_write(patched);
        Ok(())
    }
}

impl Controller for Keeper {
    const NAME: &'static str = "offline-copies";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let prefix = components::applied_manifest_work_name(&self.shared.settings.hub_hash, "");
        builder.watches(&self.shared.works, |change| concerns(change).then(|| change.object().name_any()));
        let of_record = prefix.clone();
        builder.watches(&self.shared.applied_works, move |change| {
            let is_new = !matches!(change, Change::Updated { old, new } if old.metadata.uid == new.metadata.uid);
            let name = change.object().name_any();
            is_new.then(|| name.strip_prefix(&of_record).map(str::to_owned)).flatten()
        });
        // Somebody may delete or change a copy.
        builder.watches(&self.copies.known, move |change| super::work_of(change.object(), &prefix));
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let settings = &self.shared.settings;
        let Some(work) = self.shared.works.get(&ObjectKey::new(&settings.cluster, key)) else { return Ok(None) };
        let name = components::applied_manifest_work_name(&settings.hub_hash, key);
        let record = self.shared.applied_works.named(&name);
        let record = record.filter(|record| settings.owns(record) && !write::is_deleting(record.as_ref()));
        let is_applied =
            write::has_finalizer(work.as_ref(), finalizers::MANIFEST_WORK) && !write::is_deleting(work.as_ref());
        let Some(record) = record.filter(|_| is_applied) else { return Ok(None) };
        let namespace = self.copies.namespace.clone();
        let existing = self.copies.known.get(&ObjectKey::new(&namespace, copy::name(&name)));
        Ok(Some(Observed { work, record, existing, namespace }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        let desired = match copy::desired(&observed.work, &observed.record, &observed.namespace) {
            Ok(desired) => desired,
            Err(error) => return Plan::Impossible(error),
        };
        match &observed.existing {
            None => Plan::Create(Box::new(desired)),
            Some(existing) if digest(existing.as_ref()) == digest(&desired) => Plan::Nothing,
            Some(_) => Plan::Replace(Box::new(desired)),
        }
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<()> {
        match (plan, &observed.existing) {
            (Plan::Create(copy), _) => write::create(&self.copies.secrets, &copy).await.map(|_| ()),
            (Plan::Replace(copy), Some(existing)) => self.replace(existing, *copy).await,
            (Plan::Impossible(error), _) => {
                let work = observed.work.name_any();
                warn!(work, %error, "this work is not repaired if the agent restarts while the hub is away");
                Ok(())
            }
            (Plan::Nothing | Plan::Replace(_), _) => Ok(()),
        }
    }

    async fn report(&self, _: &Observed, (): (), _: Timestamp) -> Result<Requeue> {
        Ok(Requeue::OnChange)
    }
}

fn digest(copy: &impl ResourceExt) -> Option<&String> {
    copy.annotations().get(OFFLINE_COPY_DIGEST)
}

/// Whether a change of a work may change its copy.
fn concerns(change: Change<'_, ManifestWork>) -> bool {
    match change {
        Change::Added(_) => true,
        Change::Updated { old, new } => {
            let owned = |work: &ManifestWork| write::has_finalizer(work, finalizers::MANIFEST_WORK);
            old.metadata.generation != new.metadata.generation
                || old.metadata.uid != new.metadata.uid
                || old.metadata.labels != new.metadata.labels
                || owned(old) != owned(new)
                || copy::is_completed(old) != copy::is_completed(new)
        }
        Change::Deleted(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(existing: Option<&Secret>) -> Observed {
        let work = json!({"metadata": {"name": "w", "namespace": "c1", "generation": 3}, "spec": {"workload": {"manifests": []}}});
        let existing = existing.map(|copy| {
            let metadata = copy.metadata.clone();
            Arc::new(PartialObjectMeta { metadata, types: None, _phantom: std::marker::PhantomData })
        });
        let (record, namespace) = (Arc::default(), "agents".to_owned());
        Observed { work: Arc::new(serde_json::from_value(work).unwrap()), record, existing, namespace }
    }

    #[test]
    fn a_copy_is_written_when_it_is_missing_or_out_of_date_and_not_again() {
        let Plan::Create(copy) = Keeper::plan(&observed(None), Timestamp::UNIX_EPOCH) else { panic!() };
        assert_eq!(Keeper::plan(&observed(Some(&copy)), Timestamp::UNIX_EPOCH), Plan::Nothing);
        let mut older = copy.as_ref().clone();
        older.annotations_mut().insert(OFFLINE_COPY_DIGEST.into(), "another".into());
        assert_eq!(Keeper::plan(&observed(Some(&older)), Timestamp::UNIX_EPOCH), Plan::Replace(copy));
    }
}
