//! `spec.decisionStrategy`: how the selected clusters are split into groups.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use ocm_api::cluster::v1beta1::{DecisionGroup, GroupStrategy};
use ocm_apimachinery::amount::Amount;

use super::{Problem, predicates::ClusterSelector};

const STRATEGY: &str = "spec.decisionStrategy.groupStrategy";

/// How the selected clusters are split.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Grouping {
    /// Groups by selector, up to the first that is invalid.
    pub(crate) rules: Vec<GroupRule>,
    /// How large a group may become.
    size: Amount,
    /// What is wrong with the first group that is invalid.
    pub(crate) problem: Option<Problem>,
}

/// A group of the clusters that a selector matches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupRule {
    pub(crate) name: String,
    pub(crate) selector: ClusterSelector,
}

impl Grouping {
    /// Reads the strategy.
    pub(crate) fn read(strategy: &GroupStrategy) -> Self {
        let mut grouping = Self::default();
        match size(strategy.clusters_per_decision_group.as_ref()) {
            Ok(size) => grouping.size = size,
            Err(problem) => grouping.problem = Some(problem),
        }
        for (index, group) in strategy.decision_groups.iter().enumerate() {
            match GroupRule::read(index, group) {
                Ok(rule) if grouping.problem.is_none() => grouping.rules.push(rule),
                Ok(_) => {}
                Err(problem) => _ = grouping.problem.get_or_insert(problem),
            }
        }
        grouping
    }

    /// How large a group may become if `chosen` clusters are selected, at least 1.
    pub(crate) fn size(&self, chosen: usize) -> usize {
        self.size.of(chosen, chosen).max(1)
    }
}

impl GroupRule {
    fn read(index: usize, group: &DecisionGroup) -> Result<Self, Problem> {
        let field = format!("{STRATEGY}.decisionGroups[{index}].groupClusterSelector");
        let selector = &group.group_cluster_selector;
        let selector = ClusterSelector::read(&field, selector.label_selector.as_ref(), &selector.claim_selector)?;
        Ok(Self { name: group.group_name.clone(), selector })
    }
}

/// A size of zero or less is that of all clusters together, as `None` is.
fn size(size: Option<&IntOrString>) -> Result<Amount, Problem> {
    Amount::read(size).map_err(|text| {
        format!(
            "{STRATEGY}.clustersPerDecisionGroup {text:?} is not a percentage like \"25%\"; write a number of clusters \
             without quotes"
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: &Value) -> Grouping {
        Grouping::read(&serde_json::from_value(json!({"clustersPerDecisionGroup": value})).unwrap())
    }

    #[test]
    fn a_size_is_a_number_or_a_share_rounded_up_and_never_more_than_there_are() {
        for (value, chosen, expected) in [
            (json!(null), 7, 7),
            (json!(3), 7, 3),
            (json!(8), 7, 7),
            (json!(0), 7, 7),
            (json!(-1), 7, 7),
            (json!("25%"), 7, 2),
            (json!("100%"), 7, 7),
            (json!("1%"), 7, 1),
            (json!("25%"), 0, 1),
        ] {
            assert_eq!(read(&value).size(chosen), expected, "{value} of {chosen}");
        }
    }

    #[test]
    fn what_is_no_size_is_a_problem_that_names_the_field() {
        for text in ["many", "3", "", "%"] {
            let problem = read(&json!(text)).problem.unwrap();
            assert!(problem.contains(&format!("clustersPerDecisionGroup {text:?}")), "{problem}");
        }
    }

    #[test]
    fn groups_are_read_up_to_the_first_wrong_one() {
        let group = |name: &str, operator: &str| {
            let expression = json!({"key": "a", "operator": operator});
            json!({"groupName": name, "groupClusterSelector": {"labelSelector": {"matchExpressions": [expression]}}})
        };
        let strategy =
            json!({"decisionGroups": [group("one", "Exists"), group("two", "Like"), group("three", "Exists")]});
        let grouping = Grouping::read(&serde_json::from_value(strategy).unwrap());
        assert_eq!(grouping.rules.iter().map(|rule| rule.name.as_str()).collect::<Vec<_>>(), ["one"]);
        assert!(grouping.problem.unwrap().contains("decisionGroups[1].groupClusterSelector.labelSelector"));
    }
}
