//! Which changes of an add-on and of its works are worth looking at it again.
//!
//! An add-on's status is written by many: the cluster's agent, the hub, this manager itself. What no decision depends on
//! must not bring the add-on back, or an error of its author that says something else each time would be asked for, and
//! written, without a pause.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, conditions::addon::REGISTRATION_APPLIED, work::v1::ManifestWork};
use ocm_runtime::{Change, conditions};

use crate::manager::works::applied;

/// Everything but what its status says of how the add-on stands.
pub(super) fn of_addon(change: Change<'_, ManagedClusterAddOn>) -> bool {
    let Change::Updated { old, new } = change else { return true };
    is_other_metadata(&old.metadata, &new.metadata) || inputs(old) != inputs(new)
}

/// Everything but what the cluster's agent reports of single objects.
pub(super) fn of_work(change: Change<'_, ManifestWork>) -> bool {
    let Change::Updated { old, new } = change else { return true };
    let (before, after) = (&old.metadata, &new.metadata);
    old.spec != new.spec
        || applied(old) != applied(new)
        || before.labels != after.labels
        || before.owner_references != after.owner_references
        || before.deletion_timestamp != after.deletion_timestamp
}

fn is_other_metadata(before: &ObjectMeta, after: &ObjectMeta) -> bool {
    before.uid != after.uid
        || before.generation != after.generation
        || before.deletion_timestamp != after.deletion_timestamp
        || before.labels != after.labels
        || before.annotations != after.annotations
        || before.finalizers != after.finalizers
        || before.owner_references != after.owner_references
}

/// What of the status decisions depend on.
fn inputs(addon: &ManagedClusterAddOn) -> Option<impl PartialEq> {
    let status = addon.status.as_ref()?;
    let was_registered = conditions::find(&status.conditions, REGISTRATION_APPLIED).is_some();
    Some((&status.registrations, &status.kube_client_driver, &status.config_references, was_registered))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ocm_api::addon::v1alpha1::KubeClientDriver;
    use ocm_runtime::conditions::NewCondition;

    use super::{
        super::{
            apply::{Applied, Deployed},
            report,
            testing::{now, observed},
        },
        *,
    };

    fn is_news(old: &Arc<ManagedClusterAddOn>, new: &Arc<ManagedClusterAddOn>) -> bool {
        of_addon(Change::Updated { old, new })
    }

    #[test]
    fn an_error_that_is_worded_otherwise_each_time_and_what_others_report_is_no_news() {
        let failed = |cause: &str| Applied { deployed: Deployed::Failed(cause.into()), ..Applied::default() };
        let first = report::with_status(&observed(), failed("request 1 failed"), now());
        let (mut again, first) = (observed(), Arc::new(first));
        again.addon = first.clone();
        let second = Arc::new(report::with_status(&again, failed("request 2 failed"), now()));
        assert_ne!(first.status, second.status);
        assert!(!is_news(&first, &second));
        let available = again.with_status(|status| {
            status
                .conditions
                .push(NewCondition::is_true("Available", "ManagedClusterAddOnLeaseUpdated", "").at(now(), None));
        });
        assert!(!is_news(&second, &available.addon));
    }

    #[test]
    fn all_that_a_decision_depends_on_is_news() {
        let plain = observed().with_status(|_| {}).addon;
        let changed = [
            observed().with_status(|status| status.kube_client_driver = Some(KubeClientDriver::Token)),
            observed().with_status(|status| status.registrations.push(Default::default())),
            observed().with_status(|status| {
                status.conditions.push(NewCondition::is_false(REGISTRATION_APPLIED, "R", "").at(now(), None));
            }),
            observed().with_status(|_| {}).deleting(),
            observed().with_status(|_| {}).with_addon(|addon| addon.metadata.generation = Some(2)),
            observed().with_status(|_| {}).with_addon(|addon| addon.metadata.owner_references = None),
            observed().with_status(|_| {}).with_addon(|addon| addon.metadata.annotations = Some(Default::default())),
            observed().with_status(|_| {}).with_addon(|addon| addon.metadata.finalizers = Some(vec!["a".into()])),
        ];
        for (index, changed) in changed.iter().enumerate() {
            assert!(is_news(&plain, &changed.addon), "{index}");
        }
        assert!(of_addon(Change::Added(&plain)) && of_addon(Change::Deleted(&plain)));
    }
}
