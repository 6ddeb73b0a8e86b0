//! Deletes works some time after they are complete, as `spec.deleteOption.ttlSecondsAfterFinished` says. Works of replica sets
//! stay: they would be created again.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Preconditions},
};
use ocm_api::{
    conditions::{status, work::COMPLETE},
    work::v1::ManifestWork,
};
use ocm_runtime::{
    Cache, Controller, ControllerBuilder, ObjectKey, Requeue, ResultExt as _, conditions, error::found, write,
};

use super::{kinds::FinishingWork, sources};
use crate::{
    context::HubContext,
    error::{Error, Result},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct CompletedWorkController {
    hub: HubContext,
    works: Cache<FinishingWork>,
}

/// When a work is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Not as it is now.
    Never,
    After(SignedDuration),
    Now,
}

impl CompletedWorkController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        Self { works: sources::other_works(&hub.informers), hub: hub.clone() }
    }

    /// Deletes exactly what was observed: if the work has changed, it may not be complete any more, or be kept longer.
    async fn delete(&self, work: &FinishingWork) -> Result<()> {
        let key = ObjectKey::of(work);
        let api: Api<ManifestWork> = Api::namespaced(self.hub.client.clone(), &key.namespace);
        let only_this = Preconditions { uid: work.uid(), resource_version: work.resource_version() };
        let params = DeleteParams { preconditions: Some(only_this), ..DeleteParams::default() };
        let deleted = api.delete(&key.name, &params).await;
        found(deleted.while_trying_to("delete", || format!("ManifestWork {key}")))?;
        Ok(())
    }
}

impl Controller for CompletedWorkController {
    const NAME: &'static str = "completed-work";
    type Key = ObjectKey;
    type Observed = Arc<FinishingWork>;
    type Plan = Plan;
    type Applied = Requeue;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        builder.watches(&self.works, |change| {
            let work = change.object();
            ends(work).map(|_| ObjectKey::of(work.as_ref()))
        });
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Arc<FinishingWork>>> {
        Ok(self.works.get(key))
    }

    fn plan(work: &Arc<FinishingWork>, now: Timestamp) -> Plan {
        let Some(end) = ends(work) else { return Plan::Never };
        let left = end.duration_since(now);
        if left.is_positive() { Plan::After(left) } else { Plan::Now }
    }

    async fn apply(&self, work: &Arc<FinishingWork>, plan: Plan) -> Result<Requeue> {
        match plan {
            Plan::Never => Ok(Requeue::OnChange),
            Plan::After(left) => Ok(Duration::try_from(left).map_or(Requeue::OnChange, Requeue::After)),
            Plan::Now => self.delete(work).await.map(|()| Requeue::OnChange),
        }
    }

    async fn report(&self, _: &Arc<FinishingWork>, requeue: Requeue, _: Timestamp) -> Result<Requeue> {
        Ok(requeue)
    }
}

/// When a work is to be deleted; `None` if it is not complete, has no end, or is being deleted.
fn ends(work: &FinishingWork) -> Option<Timestamp> {
    let seconds = work.spec.delete_option.as_ref()?.ttl_seconds_after_finished?;
    let complete = conditions::find(&work.status.conditions, COMPLETE).filter(|found| found.status == status::TRUE)?;
    let completed = complete.last_transition_time.0;
    let end = completed.saturating_add(SignedDuration::from_secs(seconds.max(0))).unwrap_or(Timestamp::MAX);
    (!write::is_deleting(work)).then_some(end)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::now;

    /// A work that was complete ten seconds before [`now`].
    fn plan(ttl: &Value, complete: &str, more: &Value) -> Plan {
        let completed = now() - SignedDuration::from_secs(10);
        let condition = json!({"type": "Complete", "status": complete, "reason": "r", "message": "",
            "lastTransitionTime": completed.to_string()});
        let mut metadata = json!({"name": "w", "namespace": "c1"});
        metadata.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        let spec = json!({"deleteOption": {"ttlSecondsAfterFinished": ttl}});
        let work = json!({"metadata": metadata, "spec": spec, "status": {"conditions": [condition]}});
        CompletedWorkController::plan(&Arc::new(serde_json::from_value(work).unwrap()), now())
    }

    #[test]
    fn a_complete_work_is_deleted_when_its_time_has_passed_and_not_a_second_earlier() {
        let seconds = SignedDuration::from_secs;
        let after = |ttl| plan(&json!(ttl), "True", &json!({}));
        assert_eq!(after(60), Plan::After(seconds(50)));
        assert_eq!(after(11), Plan::After(seconds(1)));
        assert_eq!([10, 0, -5].map(after), [Plan::Now; 3]);
        assert!(matches!(after(i64::MAX), Plan::After(_)));
    }

    #[test]
    fn a_work_without_an_end_and_one_that_is_not_complete_stay() {
        assert_eq!(plan(&Value::Null, "True", &json!({})), Plan::Never);
        for complete in ["False", "Unknown"] {
            assert_eq!(plan(&json!(0), complete, &json!({})), Plan::Never);
        }
        let deleting = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(plan(&json!(0), "True", &deleting), Plan::Never, "it is being deleted already");
    }
}
