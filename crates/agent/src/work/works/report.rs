//! Writing the status of a work, and its record.

use std::time::Duration;

use jiff::Timestamp;
use ocm_api::work::v1::{AppliedManifestWork, ManifestWork};
use ocm_runtime::{
    Requeue, Result,
    conditions::{self, NewCondition},
    error::found,
    write,
};

use super::{
    super::{conditions::aggregate, record, status},
    Observed, Works,
    apply::{self, Pass, Report},
};

pub(super) async fn report(controller: &Works, observed: &Observed, report: Report, now: Timestamp) -> Result<Requeue> {
    match report {
        Report::Nothing => Ok(Requeue::OnChange),
        Report::Continue => Ok(Requeue::After(Duration::ZERO)),
        Report::Condition { condition, requeue } => {
            let new = with_condition(&observed.work, condition, now);
            patch_work(controller, &observed.work, &new, requeue).await
        }
        Report::Pass(pass) => report_pass(controller, &pass, now).await,
    }
}

/// The record comes first: what the status on the hub lists as applied is recorded, even if the agent is stopped between the two.
async fn report_pass(controller: &Works, pass: &Pass, now: Timestamp) -> Result<Requeue> {
    let recorded = record::with_listed(&pass.applied_work, pass.resources.clone());
    let (new, requeue) = match patch_record(controller, &pass.applied_work, &recorded).await {
        Ok(_) => (with_status(pass, now), pass.retry.requeue(&controller.shared.settings)),
        Err(error) => {
            let (condition, requeue) = apply::denied(controller, error, status::refused)?;
            (with_condition(&pass.work, condition, now), requeue)
        }
    };
    patch_work(controller, &pass.work, &new, requeue).await
}

fn with_condition(work: &ManifestWork, condition: NewCondition, now: Timestamp) -> ManifestWork {
    let mut new = work.clone();
    let generation = new.metadata.generation;
    conditions::set(&mut new.status.get_or_insert_default().conditions, condition, generation, now);
    new
}

/// The work with the status that follows from a pass.
fn with_status(pass: &Pass, now: Timestamp) -> ManifestWork {
    let mut work = pass.work.clone();
    let generation = work.metadata.generation;
    let new = work.status.get_or_insert_default();
    new.resource_status.manifests = status::manifests(&new.resource_status.manifests, &pass.outcomes, generation, now);
    let manifests = &new.resource_status.manifests;
    let found = [Some(status::applied(manifests, &pass.undeleted)), status::available(manifests)];
    for condition in found.into_iter().flatten() {
        conditions::set(&mut new.conditions, condition, generation, now);
    }
    aggregate(&mut new.conditions, manifests, now);
    work
}

/// Returns when to reconcile the work again: one that is gone only when the informer has delivered that.
async fn patch_work(controller: &Works, old: &ManifestWork, new: &ManifestWork, requeue: Requeue) -> Result<Requeue> {
    let Some(patched) = found(write::patch_status(&controller.works(), old, new).await)? else {
        return Ok(Requeue::OnChange);
    };
    if let Some(patched) = patched {
        controller.shared.works.record_write(patched);
    }
    Ok(requeue)
}

/// Returns the record as it is then.
pub(super) async fn patch_record(
    controller: &Works,
    old: &AppliedManifestWork,
    new: &AppliedManifestWork,
) -> Result<AppliedManifestWork> {
    let Some(patched) = write::patch_status(&controller.applied_works(), old, new).await? else {
        return Ok(old.clone());
    };
    controller.shared.applied_works.record_write(patched.clone());
    Ok(patched)
}

#[cfg(test)]
mod tests {
    use ocm_api::work::v1::AppliedManifestResourceMeta;
    use ocm_runtime::conditions::find;
    use serde_json::json;

    use super::*;
    use crate::work::{
        retry::Retry,
        status::{ApplyResult, ObjectState, Outcome},
    };

    fn pass(names: &[&str], undeleted: &[&str]) -> Pass {
        let resource = |name: &&str| AppliedManifestResourceMeta {
            version: "v1".into(),
            resource: "configmaps".into(),
            name: (*name).into(),
            ..AppliedManifestResourceMeta::default()
        };
        let object = ObjectState::of(Ok(Some(kube::core::ObjectMeta::default())));
        Pass {
            work: serde_json::from_value(json!({"metadata": {"name": "w", "generation": 3}})).unwrap(),
            applied_work: AppliedManifestWork::default(),
            outcomes: vec![Outcome {
                meta: Default::default(),
                applied: ApplyResult::Applied,
                object,
                evaluation: None,
            }],
            resources: names.iter().map(resource).collect(),
            undeleted: undeleted.iter().map(|cause| (*cause).to_owned()).collect(),
            retry: Retry::AtRegularPass,
        }
    }

    #[test]
    fn a_pass_is_reported_for_the_generation_that_was_applied() {
        let status = with_status(&pass(&["a"], &["secrets ns/s: forbidden"]), Timestamp::UNIX_EPOCH).status.unwrap();
        for type_ in ["Applied", "Available"] {
            let condition = find(&status.conditions, type_).unwrap();
            assert_eq!((condition.status.as_str(), condition.observed_generation), ("True", Some(3)), "{type_}");
        }
        assert!(find(&status.conditions, "Applied").unwrap().message.contains("secrets ns/s: forbidden"));
    }
}
