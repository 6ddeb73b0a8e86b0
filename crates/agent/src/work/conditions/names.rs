//! The names of conditions in rules. The status of a work with a name that is no condition type, or with two conditions of
//! a type, would be refused by the hub as a whole.

use ocm_api::{
    conditions::{manifest, work},
    work::v1::{ConditionRule, ConditionRuleType},
};

/// What the agent itself says about objects and works.
const RESERVED: [&str; 5] =
    [manifest::APPLIED, manifest::AVAILABLE, manifest::STATUS_FEEDBACK_SYNCED, work::DELETING, work::DELETED];
/// The longest condition type.
const LONGEST: usize = 316;

/// Why the first rule with such a name cannot be used.
pub(in crate::work) fn misnamed(rules: &[ConditionRule]) -> Option<String> {
    rules.iter().find_map(problem_of)
}

/// Why a rule cannot be used because of its name.
pub(super) fn problem_of(rule: &ConditionRule) -> Option<String> {
    if sets_condition(rule) { problem(&rule.condition) } else { None }
}

/// Rules by what is known of a kind set the condition that is known, or none.
fn sets_condition(rule: &ConditionRule) -> bool {
    rule.type_ != ConditionRuleType::WellKnownConditions
}

fn problem(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("the condition {name} is set by the agent itself. Choose another name"));
    }
    let shown: String = name.chars().take(100).collect();
    (!is_condition_type(name)).then(|| {
        format!(
            "{shown:?} is no condition type. Use at most {LONGEST} letters, digits, and -, _ and . between them, with an \
             optional DNS name and / before them"
        )
    })
}

fn is_condition_type(name: &str) -> bool {
    let (prefix, name_in_prefix) = name.split_once('/').map_or((None, name), |(prefix, rest)| (Some(prefix), rest));
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    let is_name = name_in_prefix.starts_with(is_letter)
        && name_in_prefix.ends_with(is_letter)
        && name_in_prefix.chars().all(|c| is_letter(c) || "-_.".contains(c));
    name.len() <= LONGEST && is_name && prefix.is_none_or(|prefix| prefix.split('.').all(is_dns_label))
}

fn is_dns_label(label: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    label.starts_with(is_letter) && label.ends_with(is_letter) && label.chars().all(|c| is_letter(c) || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str) -> ConditionRule {
        ConditionRule { condition: name.into(), type_: ConditionRuleType::Cel, ..ConditionRule::default() }
    }

    #[test]
    fn names_are_those_that_a_status_can_have_and_the_agent_does_not_use() {
        let longest = format!("a/{}", "b".repeat(314));
        for name in ["Complete", "Ready", "a", "example.com/Is_ready.yet", "1-b", &longest] {
            assert_eq!(misnamed(&[rule("Other"), rule(name)]), None, "{name}");
        }
        let too_long = format!("{longest}b");
        for name in ["", "a b", "-a", "a.", "a/", "/a", "a/b/c", "Example.com/a", "a..b/c", "ä", &too_long] {
            assert!(misnamed(&[rule("Other"), rule(name)]).unwrap().contains("is no condition type"), "{name}");
        }
        for name in ["Applied", "Available", "StatusFeedbackSynced", "Deleting", "Deleted"] {
            assert!(misnamed(&[rule(name)]).unwrap().contains("by the agent itself"), "{name}");
        }
    }

    #[test]
    fn rules_by_what_is_known_set_no_other_condition() {
        let rule = ConditionRule { type_: ConditionRuleType::WellKnownConditions, ..rule("") };
        assert_eq!(misnamed(&[rule]), None);
    }
}
