//! Conditions from rules in the entry of an object.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use ocm_runtime::conditions;

use super::{RuleCondition, is_from_rules};

/// Sets what the rules yield for a generation of the work, and removes the conditions of rules that it no longer has.
pub(in crate::work) fn store(
    list: &mut Vec<Condition>,
    computed: &[RuleCondition],
    generation: Option<i64>,
    now: Timestamp,
) {
    list.retain(|old| !is_from_rules(old) || computed.iter().any(|new| new.type_ == old.type_));
    for condition in computed {
        conditions::put(list, at(condition, generation, now));
    }
}

fn at(condition: &RuleCondition, generation: Option<i64>, now: Timestamp) -> Condition {
    Condition {
        type_: condition.type_.clone(),
        status: condition.status.into(),
        reason: condition.reason.into(),
        message: condition.message.clone(),
        observed_generation: generation,
        last_transition_time: Time(now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn computed(type_: &str, status: &'static str) -> RuleCondition {
        RuleCondition { type_: type_.into(), status, reason: "ConditionRuleEvaluated", message: String::new() }
    }

    #[test]
    fn conditions_of_former_rules_are_removed_and_others_stay() {
        let other = Condition { reason: "Other".into(), ..at(&computed("Own", "True"), None, at_second(1)) };
        let mut list = vec![other.clone()];
        store(&mut list, &[computed("A", "True"), computed("B", "False")], Some(1), at_second(1));
        store(&mut list, &[computed("B", "False")], Some(2), at_second(2));
        assert_eq!(list, [other, at(&computed("B", "False"), Some(2), at_second(1))], "B is False since second 1");
    }

    #[test]
    fn the_time_is_that_of_the_last_change_of_the_status() {
        let mut list = Vec::new();
        for (second, status, expected) in [(1, "False", 1), (2, "False", 1), (3, "True", 3), (4, "True", 3)] {
            store(&mut list, &[computed("A", status)], Some(second), at_second(second));
            assert_eq!(list, [at(&computed("A", status), Some(second), at_second(expected))]);
        }
    }
}
