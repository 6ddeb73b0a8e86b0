//! Predicates: which changes of an add-on and of its works are reconciled.
//!
//! An add-on's status has many writers: the cluster's agent, the hub, this manager itself. A change on which no decision
//! depends must not be reconciled, or an error of the author's code with another message each time would be requested, and
//! written, without a pause.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    conditions::{addon::REGISTRATION_APPLIED, status, work::APPLIED},
    work::v1::ManifestWork,
};
use ocm_runtime::{Change, conditions};

use crate::manager::works::applied;

/// All but the conditions in its status.
pub(super) fn addon_changed(change: Change<'_, ManagedClusterAddOn>) -> bool {
    let Change::Updated { old, new } = change else { return true };
    is_other_metadata(&old.metadata, &new.metadata) || inputs(old) != inputs(new)
}

/// All but the agent's report on single objects, unless the work as a whole is not applied: then objects may be about to
/// move to another work.
pub(super) fn work_changed(change: Change<'_, ManifestWork>) -> bool {
    let Change::Updated { old, new } = change else { return true };
    let (before, after) = (&old.metadata, &new.metadata);
    old.spec != new.spec
        || applied(old) != applied(new)
        || (applied(new).is_some_and(|applied| applied.status != status::TRUE)
            && applied_objects(old).ne(applied_objects(new)))
        || before.labels != after.labels
        || before.owner_references != after.owner_references
        || before.deletion_timestamp != after.deletion_timestamp
}

/// The status of condition `Applied` of each object.
fn applied_objects(work: &ManifestWork) -> impl Iterator<Item = Option<&str>> {
    let manifests = work.status.iter().flat_map(|status| &status.resource_status.manifests);
    manifests.map(|manifest| conditions::find(&manifest.conditions, APPLIED).map(|applied| applied.status.as_str()))
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

/// The parts of the status that decisions depend on.
fn inputs(addon: &ManagedClusterAddOn) -> Option<impl PartialEq> {
    let status = addon.status.as_ref()?;
    let was_registered = conditions::find(&status.conditions, REGISTRATION_APPLIED).is_some();
    Some((&status.registrations, &status.kube_client_driver, &status.config_references, was_registered))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ocm_api::{addon::v1alpha1::KubeClientDriver, work::v1::ManifestCondition};
    use ocm_runtime::conditions::NewCondition;

    use super::{
        super::{
            apply::{Applied, Deployed},
            report,
            testing::{now, observed, work},
        },
        *,
    };

    fn is_reconciled(old: &Arc<ManagedClusterAddOn>, new: &Arc<ManagedClusterAddOn>) -> bool {
        addon_changed(Change::Updated { old, new })
    }

    #[test]
    fn an_error_with_another_message_each_time_and_reports_of_others_are_not_reconciled() {
        let failed = |cause: &str| Applied { deployed: Deployed::Failed(cause.into()), ..Applied::default() };
        let first = report::with_status(&observed(), failed("request 1 failed"), now());
        let (mut again, first) = (observed(), Arc::new(first));
        again.addon = first.clone();
        let second = Arc::new(report::with_status(&again, failed("request 2 failed"), now()));
        assert_ne!(first.status, second.status);
        assert!(!is_reconciled(&first, &second));
        let available = again.with_status(|status| {
            status
                .conditions
                .push(NewCondition::is_true("Available", "ManagedClusterAddOnLeaseUpdated", "").at(now(), None));
        });
        assert!(!is_reconciled(&second, &available.addon));
    }

    #[test]
    fn all_that_a_decision_depends_on_is_reconciled() {
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
            assert!(is_reconciled(&plain, &changed.addon), "{index}");
        }
        assert!(addon_changed(Change::Added(&plain)) && addon_changed(Change::Deleted(&plain)));
    }

    #[test]
    fn an_object_that_is_applied_in_a_work_that_is_not_is_reconciled() {
        let with_object = |work_status: &'static str, status: &'static str| {
            let mut work = work(Some(work_status));
            let condition = NewCondition { type_: APPLIED, status, reason: "R", message: String::new() };
            let manifest = ManifestCondition { conditions: vec![condition.at(now(), None)], ..Default::default() };
            work.status.as_mut().unwrap().resource_status.manifests = vec![manifest];
            Arc::new(work)
        };
        let changed = |of: &'static str| {
            let (old, new) = (with_object(of, "False"), with_object(of, "True"));
            work_changed(Change::Updated { old: &old, new: &new })
        };
        assert!(changed("False") && !changed("True"));
    }
}
