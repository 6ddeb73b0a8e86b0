//! Deletes the objects of an AppliedManifestWork that is being deleted, then removes its finalizer.
//!
//! What others have taken over, what was orphaned, and what is another object under the old name
//! stays. Only records that carry this agent's id are touched;
//! those of deleted works get it first, see `works`.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use ocm_api::{
    components, finalizers,
    work::v1::{AppliedManifestResourceMeta, AppliedManifestWork},
};
use ocm_runtime::{Controller, ControllerBuilder, Error, Requeue, Result, error::found, write};
use tracing::warn;

use super::{
    Settings, Shared, record,
    resources::{Deletion, Held},
};

/// The longest back-off while objects are being deleted.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How many objects of a record are deleted at a time.
const AT_A_TIME: usize = 8;

/// The controller; its keys are names of AppliedManifestWorks.
#[derive(Debug)]
pub(super) struct Finalizer {
    shared: Shared,
}

/// An object that still exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remaining {
    resource: AppliedManifestResourceMeta,
    /// What it waits for.
    state: Waiting,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Waiting {
    /// It is being deleted.
    Pending(Option<Held>),
    /// It could not be deleted, for this reason.
    Failed(String),
}

impl Remaining {
    fn of(resource: AppliedManifestResourceMeta, deletion: Deletion) -> Option<Self> {
        let state = match deletion {
            Deletion::Done => return None,
            Deletion::Pending(held) => Waiting::Pending(held),
            Deletion::Failed(cause) => Waiting::Failed(cause),
        };
        Some(Self { resource, state })
    }

    /// Why it is not gone, if that is worth telling.
    fn failure(&self, now: Timestamp) -> Option<String> {
        match &self.state {
            Waiting::Pending(held) => held.as_ref()?.explain(&self.resource, now),
            Waiting::Failed(cause) => Some(cause.clone()),
        }
    }
}

impl Finalizer {
    pub(super) fn new(shared: Shared) -> Self {
        Self { shared }
    }

    fn api(&self) -> Api<AppliedManifestWork> {
        Api::all(self.shared.resources.client().clone())
    }

    /// Reports in the status of the ManifestWork what cannot be deleted.
    fn publish(&self, record: &AppliedManifestWork, remaining: &[Remaining], now: Timestamp) {
        let failures: Vec<_> = remaining.iter().filter_map(|one| one.failure(now)).collect();
        let (name, work) = (record.name_any(), &record.spec.manifest_work_name);
        for failure in &failures {
            warn!(record = name, failure, "an object is not deleted yet, retrying");
        }
        if name == components::applied_manifest_work_name(&self.shared.settings.hub_hash, work) {
            self.shared.stuck.set(&name, work, failures);
        }
    }
}

impl Controller for Finalizer {
    const NAME: &'static str = "applied-manifestwork";
    type Key = String;
    type Observed = Arc<AppliedManifestWork>;
    type Plan = Vec<AppliedManifestResourceMeta>;
    type Applied = Vec<Remaining>;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let shared = self.shared.clone();
        builder.watches(&self.shared.applied_works, move |change| concerns(&shared, change.object()));
    }

    async fn observe(&self, key: &String) -> Result<Option<Arc<AppliedManifestWork>>> {
        // The key may come from an earlier record of this name, whose deletion is done.
        let record = self.shared.applied_works.named(key);
        let record = record.filter(|record| is_to_be_finalized(record, &self.shared.settings));
        if record.is_none() {
            // Somebody may have removed the finalizer of a record whose objects could not be deleted.
            self.shared.stuck.remove(key);
        }
        Ok(record)
    }

    fn plan(observed: &Arc<AppliedManifestWork>, _: Timestamp) -> Vec<AppliedManifestResourceMeta> {
        record::listed(observed)
    }

    async fn apply(
        &self,
        observed: &Arc<AppliedManifestWork>,
        plan: Vec<AppliedManifestResourceMeta>,
    ) -> Result<Vec<Remaining>> {
        let (uid, none) = (observed.uid().unwrap_or_default(), HashSet::new());
        let deletions = stream::iter(plan).map(|resource| async {
            let deletion = self.shared.resources.delete(&resource, &uid, &none).await;
            Remaining::of(resource, deletion)
        });
        Ok(deletions.buffered(AT_A_TIME).filter_map(|remaining| async { remaining }).collect().await)
    }

    async fn report(
        &self,
        observed: &Arc<AppliedManifestWork>,
        remaining: Vec<Remaining>,
        now: Timestamp,
    ) -> Result<Requeue> {
        if remaining.is_empty() {
            write::remove_finalizer(&self.api(), observed.as_ref(), finalizers::APPLIED_MANIFEST_WORK).await?;
            self.shared.stuck.remove(&observed.name_any());
            return Ok(Requeue::OnChange);
        }
        self.publish(observed, &remaining, now);
        // The status lists what still exists.
        let mut new = observed.as_ref().clone();
        new.status.get_or_insert_default().applied_resources = remaining.into_iter().map(|one| one.resource).collect();
        if let Some(Some(patched)) = found(write::patch_status(&self.api(), observed.as_ref(), &new).await)? {
            self.shared.applied_works.record_write(patched);
        }
        Ok(Requeue::BackOffWithin(LONGEST_WAIT))
    }
}

/// The key of a record that is to be finalized, or no longer while reasons are stored for it.
fn concerns(shared: &Shared, record: &AppliedManifestWork) -> Option<String> {
    let name = record.name_any();
    (is_to_be_finalized(record, &shared.settings) || shared.stuck.get(&name).is_some()).then_some(name)
}

/// Whether the record is being deleted, and this agent has to delete what it lists.
fn is_to_be_finalized(record: &AppliedManifestWork, settings: &Settings) -> bool {
    write::is_deleting(record)
        && write::has_finalizer(record, finalizers::APPLIED_MANIFEST_WORK)
        && settings.owns(record)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        testing::{Mock, not_found},
        work::testing,
    };

    fn record() -> Value {
        let resource = |name: &str| json!({"version": "v1", "resource": "configmaps", "name": name, "namespace": "ns"});
        let hash = Settings::new("c1", "https://hub", "").hub_hash;
        json!({
            "metadata": {"name": format!("{hash}-w"), "uid": "1", "resourceVersion": "1",
                "finalizers": [finalizers::APPLIED_MANIFEST_WORK], "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"hubHash": hash, "agentID": testing::AGENT, "manifestWorkName": "w"},
            "status": {"appliedResources": [resource("a"), resource("b"), resource("c")]}
        })
    }

    async fn controller(record: &Value, answers: Vec<(u16, Value)>) -> (Finalizer, Mock) {
        let managed = Mock::answering(answers).listing(testing::RECORDS, &json!([record]));
        (Finalizer::new(testing::shared(&Mock::default(), &managed).await), managed)
    }

    /// Whether the controller acts on a key when this is the record of that name.
    async fn acts_on(change: Value) -> bool {
        let mut record = record();
        ocm_apimachinery::merge::apply(&mut record, &change);
        let key = record["metadata"]["name"].as_str().unwrap().to_owned();
        let (controller, _) = controller(&record, vec![]).await;
        controller.observe(&key).await.unwrap().is_some()
    }

    #[tokio::test]
    async fn only_a_record_of_this_agent_that_is_being_deleted_has_its_objects_deleted() {
        assert!(acts_on(json!({})).await);
        let live = json!({"metadata": {"uid": "2", "deletionTimestamp": null}});
        assert!(!acts_on(live).await, "the key is left over from an earlier record of that name");
        assert!(!acts_on(json!({"spec": {"agentID": "another"}})).await);
        assert!(!acts_on(json!({"metadata": {"finalizers": []}})).await);
    }

    #[tokio::test]
    async fn the_reasons_of_a_record_go_with_it_even_if_somebody_removed_its_finalizer() {
        let (controller, _) = controller(&record(), vec![]).await;
        let mut forced: AppliedManifestWork = serde_json::from_value(record()).unwrap();
        forced.metadata.finalizers = None;
        forced.metadata.name = Some("forced".into());
        assert_eq!(concerns(&controller.shared, &forced), None);
        controller.shared.stuck.set("forced", "w", vec!["forbidden".into()]);
        let key = concerns(&controller.shared, &forced).unwrap();
        assert!(controller.observe(&key).await.unwrap().is_none());
        assert_eq!(controller.shared.stuck.get("forced"), None);
    }

    #[tokio::test]
    async fn an_object_that_cannot_be_deleted_neither_stops_the_others_nor_is_hidden() {
        let owner = json!([{"apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
            "name": "hub-w", "uid": "1"}]);
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x", "uid": "9", "resourceVersion": "5", "ownerReferences": owner}});
        let message = "configmaps \"a\" is forbidden: User \"agent\" cannot delete resource \"configmaps\"";
        let denied =
            json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": message});
        let patched = record();
        // One object after the other, as far as the answers tell: reads come first, in order, since all are made at once.
        let answers = vec![
            (200, object.clone()),
            (200, object.clone()),
            not_found(),
            (403, denied),
            (200, json!({"kind": "Status", "status": "Success"})),
            (200, patched.clone()),
        ];
        let (controller, managed) = controller(&patched, answers).await;
        let observed: Arc<AppliedManifestWork> = Arc::new(serde_json::from_value(patched).unwrap());
        let plan = Finalizer::plan(&observed, Timestamp::UNIX_EPOCH);
        let remaining = controller.apply(&observed, plan).await.unwrap();
        assert_eq!(remaining.len(), 1);
        let failure = remaining[0].failure(Timestamp::UNIX_EPOCH).unwrap_or_default();
        assert!(failure.contains("configmaps ns/") && failure.contains("cannot delete"), "{failure}");
        let requeue = controller.report(&observed, remaining, Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!(requeue, Requeue::BackOffWithin(LONGEST_WAIT));
        assert_eq!(controller.shared.stuck.get(&observed.name_any()), Some(vec![failure]));
        let patch = managed.asked().pop().unwrap();
        assert!(patch.starts_with("PATCH") && patch.ends_with("/status"), "the finalizer stays: {patch}");
    }
}
