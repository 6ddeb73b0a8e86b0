//! Works that ask for what this agent does not do yet.
//!
//! Such a work is not applied at all: a ReadOnly manifest that is treated as Update would empty its object.

use ocm_api::work::v1::{DeleteOption, FeedbackScrapeType, ManifestConfigOption, ManifestWorkSpec, PropagationPolicy};

/// The fields of a spec that ask for what is not built, with their values where that helps.
pub(super) fn unsupported(spec: &ManifestWorkSpec) -> Vec<String> {
    let mut fields = Vec::new();
    fields.extend(spec.delete_option.as_ref().and_then(unsupported_delete_option));
    for (index, config) in spec.manifest_configs.iter().enumerate() {
        let path = format!("spec.manifestConfigs[{index}]");
        fields.extend(unsupported_config(config).into_iter().map(|field| format!("{path}.{field}")));
    }
    fields
}

/// The field of a delete option with a policy of a later version, which may say that objects are to stay.
pub(super) fn unsupported_delete_option(option: &DeleteOption) -> Option<String> {
    match &option.propagation_policy {
        PropagationPolicy::Other(policy) => Some(format!("spec.deleteOption.propagationPolicy ({policy})")),
        _ => None,
    }
}

fn unsupported_config(config: &ManifestConfigOption) -> Vec<String> {
    let mut fields = Vec::new();
    if let Some(FeedbackScrapeType::Other(other)) = &config.feedback_scrape_type {
        fields.push(format!("feedbackScrapeType ({other})"));
    }
    fields
}

/// Why a work is refused, for its owner; `None` if it is not.
pub(super) fn reason(spec: &ManifestWorkSpec) -> Option<String> {
    let fields = unsupported(spec);
    if !fields.is_empty() {
        return Some(format!(
            "Not applied: this agent does not support {} yet. What an earlier version of this work applied is kept \
             as it is. Remove the field to have the work applied",
            fields.join(", ")
        ));
    }
    let empty = spec.workload.manifests.is_empty();
    empty.then(|| {
        "Not applied: spec.workload.manifests is empty. Add the objects to apply, or delete the work to remove what \
         it applied earlier"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use ocm_api::work::v1::ManifestWorkSpec;
    use serde_json::{Value, json};

    use super::*;

    fn spec(mut value: Value) -> ManifestWorkSpec {
        value["workload"] = json!({"manifests": [{"kind": "ConfigMap"}]});
        serde_json::from_value(value).unwrap()
    }

    fn refused(value: Value) -> Vec<String> {
        unsupported(&spec(value))
    }

    #[test]
    fn what_is_not_built_is_refused_by_the_name_of_its_field() {
        let id = json!({"resource": "configmaps", "name": "a"});
        assert_eq!(
            refused(json!({"deleteOption": {"propagationPolicy": "FromTheFuture"}})),
            ["spec.deleteOption.propagationPolicy (FromTheFuture)"]
        );
        assert_eq!(
            refused(json!({"manifestConfigs": [
                {"resourceIdentifier": id, "feedbackRules": [{"type": "WellKnownStatus"}], "feedbackScrapeType": "Guess"},
                {"resourceIdentifier": id, "conditionRules": [{"type": "WellKnownConditions", "condition": "Complete"}]}
            ]})),
            ["spec.manifestConfigs[0].feedbackScrapeType (Guess)"]
        );
    }

    #[test]
    fn what_is_built_is_not_refused() {
        let id = json!({"resource": "configmaps", "name": "a"});
        assert_eq!(reason(&spec(json!({}))), None);
        for policy in ["Foreground", "Orphan", "SelectivelyOrphan"] {
            assert_eq!(reason(&spec(json!({"deleteOption": {"propagationPolicy": policy}}))), None);
        }
        let rules = json!([{"type": "WellKnownStatus"}]);
        for scrape_type in ["Poll", "Watch"] {
            let config = json!({"resourceIdentifier": id, "feedbackScrapeType": scrape_type, "feedbackRules": rules,
                "updateStrategy": {"type": "ServerSideApply"}});
            assert_eq!(reason(&spec(json!({"manifestConfigs": [config]}))), None);
        }
    }

    #[test]
    fn an_empty_work_is_refused_with_the_next_step() {
        let reason = reason(&ManifestWorkSpec::default()).unwrap();
        assert!(reason.contains("spec.workload.manifests is empty"), "{reason}");
    }
}
