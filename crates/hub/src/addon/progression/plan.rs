//! The status of an add-on: one entry per placement, in their order.

use jiff::Timestamp;
use ocm_api::{
    addon::v1alpha1::{ClusterManagementAddOn, InstallProgression},
    conditions::addon::PROGRESSING,
    reasons::addon::{COMPLETED, CONFIGURATION_UNSUPPORTED, PROGRESSING as UNDER_WAY},
};
use ocm_runtime::conditions::{self, NewCondition};

use crate::addon::{decision::Progress, refusal};

/// The add-on with its progress in the status.
pub(super) fn plan(
    management: &ClusterManagementAddOn,
    progress: &[Progress],
    now: Timestamp,
) -> ClusterManagementAddOn {
    let mut new = management.clone();
    let old = management.status.as_ref().map(|status| status.install_progressions.as_slice()).unwrap_or_default();
    let entries: Vec<_> = progress.iter().map(|progress| entry(old, progress, now)).collect();
    if entries != old {
        new.status.get_or_insert_default().install_progressions = entries;
    }
    if let Some(status) = new.status.as_mut().filter(|_| !refusal::has_default(management)) {
        // Another hub wrote them, for a default that no longer exists.
        status.default_config_references.clear();
    }
    new
}

fn entry(old: &[InstallProgression], progress: &Progress, now: Timestamp) -> InstallProgression {
    let (namespace, name) = (&progress.placement.namespace, &progress.placement.name);
    let old = old.iter().find(|entry| entry.namespace == *namespace && entry.name == *name);
    let mut entry = old.cloned().unwrap_or_else(|| InstallProgression {
        namespace: namespace.clone(),
        name: name.clone(),
        ..InstallProgression::default()
    });
    if progress.refusal.is_none() {
        entry.config_references.clear();
    }
    conditions::set(&mut entry.conditions, condition(progress), None, now);
    entry
}

fn condition(progress: &Progress) -> NewCondition {
    if let Some(refusal) = &progress.refusal {
        return NewCondition::is_false(PROGRESSING, CONFIGURATION_UNSUPPORTED, &**refusal);
    }
    let is_done = progress.selected > 0 && progress.configured == progress.selected;
    let message = message(progress);
    if is_done {
        NewCondition::is_false(PROGRESSING, COMPLETED, message)
    } else {
        NewCondition::is_true(PROGRESSING, UNDER_WAY, message)
    }
}

fn message(progress: &Progress) -> String {
    let placement = &progress.placement;
    if !progress.exists {
        return format!(
            "Placement {placement} does not exist, so it selects no cluster for the add-on: create it, or remove it from \
             spec.installStrategy.placements"
        );
    }
    let (selected, configured) = (progress.selected, progress.configured);
    let because = progress.problem.iter().map(|problem| format!(" ({problem})"));
    if selected == 0 {
        return [format!("Placement {placement} has chosen no cluster")].into_iter().chain(because).collect();
    }
    let counts = format!("The add-on is configured on {configured} of {selected} selected clusters");
    let failure = progress.failure.iter().map(|(cluster, reason)| match progress.failed {
        1 => format!("; it could not be installed on cluster {cluster}: {reason}"),
        failed => format!("; it could not be installed on {failed} clusters. On {cluster}: {reason}"),
    });
    [counts].into_iter().chain(failure).collect()
}

#[cfg(test)]
mod tests {
    use ocm_runtime::ObjectKey;
    use serde_json::json;

    use super::*;
    use crate::{addon::testing::management, testing::now};

    fn progress(selected: usize, configured: usize) -> Progress {
        Progress { placement: ObjectKey::new("n", "p"), exists: true, selected, configured, ..Progress::default() }
    }

    fn condition_of(progress: &Progress) -> (String, String, String) {
        let new = plan(&management("a", json!({})), std::slice::from_ref(progress), now());
        let entry = &new.status.unwrap().install_progressions[0];
        assert_eq!((entry.namespace.as_str(), entry.name.as_str()), ("n", "p"));
        let condition = &entry.conditions[0];
        assert_eq!(condition.type_, "Progressing");
        (condition.status.clone(), condition.reason.clone(), condition.message.clone())
    }

    #[test]
    fn it_is_completed_when_every_selected_cluster_is_configured() {
        let (status, reason, message) = condition_of(&progress(2, 1));
        assert_eq!((status.as_str(), reason.as_str()), ("True", "Progressing"));
        assert_eq!(message, "The add-on is configured on 1 of 2 selected clusters");
        let (status, reason, _) = condition_of(&progress(2, 2));
        assert_eq!((status.as_str(), reason.as_str()), ("False", "Completed"));
    }

    #[test]
    fn a_missing_placement_and_one_without_clusters_are_named() {
        let (status, reason, message) = condition_of(&Progress { exists: false, ..progress(0, 0) });
        assert_eq!((status.as_str(), reason.as_str()), ("True", "Progressing"));
        assert!(message.starts_with("Placement n/p does not exist"), "{message}");
        let problem = Some("NoManagedClusterSetBindings: bind one".to_owned());
        let (_, _, message) = condition_of(&Progress { problem, ..progress(0, 0) });
        assert_eq!(message, "Placement n/p has chosen no cluster (NoManagedClusterSetBindings: bind one)");
    }

    #[test]
    fn the_condition_names_what_this_hub_cannot_do_and_what_the_api_server_refuses() {
        let refused = Progress { refusal: Some("spec.x".into()), ..progress(2, 2) };
        assert_eq!(condition_of(&refused), ("False".into(), "ConfigurationUnsupported".into(), "spec.x".into()));
        let failure = Some(("c1".into(), "no".to_owned()));
        let (status, _, message) = condition_of(&Progress { failed: 1, failure, ..progress(2, 1) });
        assert_eq!(status, "True");
        assert!(message.ends_with("could not be installed on cluster c1: no"), "{message}");
        let failure = Some(("c1".into(), "no".to_owned()));
        let (_, _, message) = condition_of(&Progress { failed: 2, failure, ..progress(3, 1) });
        assert!(message.ends_with("could not be installed on 2 clusters. On c1: no"), "{message}");
    }

    #[test]
    fn without_placements_nothing_is_written_and_old_entries_go() {
        let plain = management("a", json!({}));
        assert_eq!(plan(&plain, &[], now()), plain);
        let installed = plan(&plain, &[progress(1, 1)], now());
        assert_eq!(plan(&installed, &[progress(1, 1)], now()), installed, "nothing new");
        assert!(plan(&installed, &[], now()).status.unwrap().install_progressions.is_empty());
    }

    #[test]
    fn configurations_of_another_hub_stay_while_they_are_asked_for() {
        let mut old = plan(&management("a", json!({})), &[progress(1, 1)], now());
        let entry = &mut old.status.as_mut().unwrap().install_progressions[0];
        entry.config_references = serde_json::from_value(json!([{"resource": "r"}])).unwrap();
        let status = old.status.as_mut().unwrap();
        status.default_config_references = serde_json::from_value(json!([{"resource": "r"}])).unwrap();
        let defaults = |old: &ClusterManagementAddOn| {
            plan(old, &[progress(1, 1)], now()).status.unwrap().default_config_references.len()
        };
        let mut asking = old.clone();
        asking.spec =
            management("a", json!({"supportedConfigs": [{"resource": "r", "defaultConfig": {"name": "x"}}]})).spec;
        assert_eq!((defaults(&asking), defaults(&old)), (1, 0));
        let refused = Progress { refusal: Some("spec.x".into()), ..progress(1, 1) };
        let references = |progress: Progress| {
            plan(&old, &[progress], now()).status.unwrap().install_progressions[0].config_references.len()
        };
        assert_eq!(references(refused), 1);
        assert_eq!(references(progress(1, 1)), 0);
    }
}
