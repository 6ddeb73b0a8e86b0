//! The conditions of a work that follow from those of its objects.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use ocm_api::{
    conditions::{status, work},
    reasons,
    work::v1::ManifestCondition,
};
use ocm_runtime::conditions;

use super::is_from_rules;

/// Sets the conditions of a work that follow from those of rules of its objects, and removes those that no longer do.
/// Objects without a condition do not count for it.
pub(in crate::work) fn aggregate(list: &mut Vec<Condition>, manifests: &[ManifestCondition], now: Timestamp) {
    let types = by_type(manifests);
    list.retain(|old| !is_from_rules(old) || types.contains_key(old.type_.as_str()));
    for (type_, found) in types {
        let condition = Condition {
            type_: type_.into(),
            status: aggregated(type_, &found).into(),
            reason: reasons::work::CONDITION_RULES_AGGREGATED.into(),
            message: message(&found),
            // An object that cannot be read keeps conditions of the generation before: the work is no further than that.
            observed_generation: found.iter().map(|condition| condition.observed_generation).min().flatten(),
            last_transition_time: Time(now),
        };
        conditions::put(list, condition);
    }
}

/// Whether the conditions of a work follow from those of its objects already.
pub(in crate::work) fn is_aggregated(list: &[Condition], manifests: &[ManifestCondition]) -> bool {
    let mut new = list.to_vec();
    aggregate(&mut new, manifests, Timestamp::UNIX_EPOCH);
    new == list
}

fn by_type(manifests: &[ManifestCondition]) -> BTreeMap<&str, Vec<&Condition>> {
    let mut types: BTreeMap<&str, Vec<&Condition>> = BTreeMap::new();
    for condition in manifests.iter().flat_map(|manifest| &manifest.conditions).filter(|found| is_from_rules(found)) {
        types.entry(condition.type_.as_str()).or_default().push(condition);
    }
    types
}

/// A work makes progress if any object does; anything else is true if it is true for all.
fn aggregated(type_: &str, found: &[&Condition]) -> &'static str {
    let has = |wanted: &str| found.iter().any(|condition| condition.status == wanted);
    let has_unknown = found.iter().any(|condition| ![status::TRUE, status::FALSE].contains(&condition.status.as_str()));
    match type_ {
        work::PROGRESSING if has(status::TRUE) => status::TRUE,
        work::PROGRESSING if has_unknown => status::UNKNOWN,
        work::PROGRESSING => status::FALSE,
        _ if has(status::FALSE) => status::FALSE,
        _ if has_unknown => status::UNKNOWN,
        _ => status::TRUE,
    }
}

fn message(found: &[&Condition]) -> String {
    match found {
        [only] => only.message.clone(),
        _ => format!("Aggregated from {} objects", found.len()),
    }
}

#[cfg(test)]
mod tests {
    use ocm_runtime::conditions::find;
    use proptest::prelude::*;

    use super::*;

    fn condition(type_: &str, status: &str, reason: &str) -> Condition {
        let last_transition_time = Time(Timestamp::UNIX_EPOCH);
        let (type_, status, reason, message) =
            (type_.into(), status.into(), reason.into(), format!("{type_} {status}"));
        Condition { type_, status, reason, message, observed_generation: Some(1), last_transition_time }
    }

    fn manifests(type_: &str, statuses: &[&str]) -> Vec<ManifestCondition> {
        let entry = |status: &&str| ManifestCondition {
            conditions: vec![
                condition("Applied", "False", "AppliedManifestFailed"),
                condition(type_, status, "ConditionRuleEvaluated"),
            ],
            ..ManifestCondition::default()
        };
        statuses.iter().map(entry).collect()
    }

    fn of(type_: &str, statuses: &[&str]) -> Vec<Condition> {
        let mut list = Vec::new();
        aggregate(&mut list, &manifests(type_, statuses), Timestamp::UNIX_EPOCH);
        list
    }

    #[test]
    fn a_work_is_no_further_than_the_object_whose_condition_is_oldest() {
        let mut two = manifests("Progressing", &["False", "False"]);
        let generation = |manifests: &[ManifestCondition]| {
            let mut list = Vec::new();
            aggregate(&mut list, manifests, Timestamp::UNIX_EPOCH);
            list[0].observed_generation
        };
        two[0].conditions[1].observed_generation = Some(2);
        assert_eq!(generation(&two), Some(1));
        two[1].conditions[1].observed_generation = Some(2);
        assert_eq!(generation(&two), Some(2));
    }

    #[test]
    fn a_condition_is_true_if_it_is_true_for_all_objects_but_for_progressing() {
        let (t, f, u) = ("True", "False", "Unknown");
        let cases: [(&[&str], &str, &str); 8] = [
            (&[t], t, t),
            (&[f], f, f),
            (&[u], u, u),
            (&[t, t], t, t),
            (&[t, f], f, t),
            (&[t, u], u, t),
            (&[f, u], f, u),
            (&[t, f, u], f, t),
        ];
        for (statuses, expected, progressing) in cases {
            for type_ in ["Complete", "Degraded", "example.com/Custom"] {
                assert_eq!(of(type_, statuses)[0].status, expected, "{type_} {statuses:?}");
            }
            assert_eq!(of("Progressing", statuses)[0].status, progressing, "Progressing {statuses:?}");
        }
    }

    #[test]
    fn the_message_is_that_of_the_only_object_with_the_condition() {
        let found = of("Complete", &["False"]).remove(0);
        let expected = ("Complete False", "ConditionRulesAggregated", Some(1));
        assert_eq!((found.message.as_str(), found.reason.as_str(), found.observed_generation), expected);
        assert_eq!(of("Complete", &["True", "True"])[0].message, "Aggregated from 2 objects");
    }

    #[test]
    fn objects_without_the_condition_do_not_count() {
        let mut manifests = manifests("Complete", &["True"]);
        manifests.push(ManifestCondition::default());
        let mut list = Vec::new();
        aggregate(&mut list, &manifests, Timestamp::UNIX_EPOCH);
        assert_eq!((list.len(), list[0].status.as_str()), (1, "True"));
    }

    #[test]
    fn a_condition_that_no_rule_yields_any_longer_is_removed() {
        let own = condition("Available", "True", "ResourcesAvailable");
        let mut list = vec![own.clone(), condition("Complete", "True", "ConditionRulesAggregated")];
        assert!(!is_aggregated(&list, &[]));
        aggregate(&mut list, &[], Timestamp::UNIX_EPOCH);
        assert_eq!(list, [own]);
        assert!(is_aggregated(&list, &[]));
    }

    const TYPES: [&str; 4] = ["Complete", "Progressing", "Degraded", "Custom"];
    const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

    prop_compose! {
        fn entries()(conditions in prop::collection::vec(prop::collection::vec((0..4_usize, 0..3_usize), 0..4), 0..6)) -> Vec<ManifestCondition> {
            let one = |(type_, status): &(usize, usize)| condition(TYPES[*type_], STATUSES[*status], "ConditionRuleEvaluated");
            conditions.iter().map(|list| {
                let mut conditions: Vec<Condition> = Vec::new();
                list.iter().map(one).for_each(|new| conditions::put(&mut conditions, new));
                ManifestCondition { conditions, ..ManifestCondition::default() }
            }).collect()
        }
    }

    proptest! {
        #[test]
        fn aggregating_twice_changes_nothing_and_the_order_of_objects_does_not_matter(first in entries(), second in entries()) {
            let mut list = Vec::new();
            aggregate(&mut list, &first, Timestamp::UNIX_EPOCH);
            aggregate(&mut list, &second, Timestamp::from_second(9).unwrap());
            prop_assert!(is_aggregated(&list, &second));
            let reversed: Vec<_> = second.iter().rev().cloned().collect();
            prop_assert!(is_aggregated(&list, &reversed));
            for type_ in TYPES {
                let counted = second.iter().any(|entry| find(&entry.conditions, type_).is_some());
                prop_assert_eq!(find(&list, type_).is_some(), counted);
            }
        }

        #[test]
        fn new_conditions_are_sorted_by_type(manifests in entries()) {
            let mut list = Vec::new();
            aggregate(&mut list, &manifests, Timestamp::UNIX_EPOCH);
            prop_assert!(list.is_sorted_by(|a, b| a.type_ < b.type_));
        }
    }
}
