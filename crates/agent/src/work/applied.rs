//! A deleted AppliedManifestWork: deletes the objects it recorded, then lets the record go.
//!
//! What others have taken over, what was orphaned, and what is another object under the old name
//! stays. Only records that carry this agent's id are touched.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use ocm_api::{
    finalizers,
    work::v1::{AppliedManifestResourceMeta, AppliedManifestWork},
};
use ocm_runtime::{Controller, ControllerBuilder, Error, Requeue, Result, error::found, write};

use super::{Settings, Shared, resources::Removal};

/// The longest wait between two looks at objects that are being deleted.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How many objects of a record are deleted at a time.
const AT_A_TIME: usize = 8;

/// The controller; its keys are names of AppliedManifestWorks.
#[derive(Debug)]
pub(super) struct Applied {
    shared: Shared,
}

impl Applied {
    pub(super) fn new(shared: Shared) -> Self {
        Self { shared }
    }

    fn api(&self) -> Api<AppliedManifestWork> {
        Api::all(self.shared.resources.client().clone())
    }
}

impl Controller for Applied {
    const NAME: &'static str = "applied-manifestwork";
    type Key = String;
    type Observed = Arc<AppliedManifestWork>;
    type Plan = Vec<AppliedManifestResourceMeta>;
    /// What is not gone yet.
    type Applied = Vec<AppliedManifestResourceMeta>;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let settings = self.shared.settings.clone();
        builder.watches(&self.shared.applied, move |change| {
            let record = change.object();
            is_to_be_finalized(record, &settings).then(|| record.name_any())
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Arc<AppliedManifestWork>>> {
        // The key may come from an earlier record of this name, whose deletion is done.
        let record = self.shared.applied.named(key);
        Ok(record.filter(|record| is_to_be_finalized(record, &self.shared.settings)))
    }

    fn plan(observed: &Arc<AppliedManifestWork>, _: Timestamp) -> Vec<AppliedManifestResourceMeta> {
        recorded(observed)
    }

    async fn apply(
        &self,
        observed: &Arc<AppliedManifestWork>,
        plan: Vec<AppliedManifestResourceMeta>,
    ) -> Result<Vec<AppliedManifestResourceMeta>> {
        let uid = observed.uid().unwrap_or_default();
        let removals = stream::iter(plan).map(|resource| {
            let uid = &uid;
            async move {
                let removal = self.shared.resources.remove(&resource, uid).await?;
                Ok::<_, Error>((removal == Removal::Pending).then_some(resource))
            }
        });
        removals.buffered(AT_A_TIME).try_filter_map(|pending| async move { Ok(pending) }).try_collect().await
    }

    async fn report(
        &self,
        observed: &Arc<AppliedManifestWork>,
        pending: Vec<AppliedManifestResourceMeta>,
        _: Timestamp,
    ) -> Result<Requeue> {
        let api = self.api();
        if pending.is_empty() {
            write::remove_finalizer(&api, observed.as_ref(), finalizers::APPLIED_MANIFEST_WORK).await?;
            return Ok(Requeue::OnChange);
        }
        // What is still there is for people to see.
        let mut new = observed.as_ref().clone();
        new.status.get_or_insert_default().applied_resources = pending;
        if let Some(Some(patched)) = found(write::patch_status(&api, observed.as_ref(), &new).await)? {
            self.shared.applied.record_write(patched);
        }
        Ok(Requeue::BackOffWithin(LONGEST_WAIT))
    }
}

/// Whether the record is being deleted, and this agent has to delete what it lists.
fn is_to_be_finalized(record: &AppliedManifestWork, settings: &Settings) -> bool {
    write::is_deleting(record)
        && write::has_finalizer(record, finalizers::APPLIED_MANIFEST_WORK)
        && settings.owns(record)
}

fn recorded(record: &AppliedManifestWork) -> Vec<AppliedManifestResourceMeta> {
    record.status.as_ref().map(|status| status.applied_resources.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{testing::Mock, work::testing};

    /// Whether the controller acts on a key when this is the record of that name.
    async fn acts_on(change: Value) -> bool {
        let mut record = json!({
            "metadata": {"name": "hub-w", "uid": "1", "finalizers": [finalizers::APPLIED_MANIFEST_WORK],
                "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"hubHash": "hub", "agentID": testing::AGENT, "manifestWorkName": "w"}
        });
        ocm_apimachinery::merge::apply(&mut record, &change);
        let managed = Mock::default().listing(testing::RECORDS, &json!([record]));
        let controller = Applied::new(testing::shared(&Mock::default(), &managed).await);
        controller.observe(&"hub-w".to_owned()).await.unwrap().is_some()
    }

    #[tokio::test]
    async fn only_a_record_of_this_agent_that_is_being_deleted_has_its_objects_deleted() {
        assert!(acts_on(json!({})).await);
        let live = json!({"metadata": {"uid": "2", "deletionTimestamp": null}});
        assert!(!acts_on(live).await, "the key is left over from an earlier record of that name");
        assert!(!acts_on(json!({"spec": {"agentID": "another"}})).await);
        assert!(!acts_on(json!({"metadata": {"finalizers": []}})).await);
    }
}
