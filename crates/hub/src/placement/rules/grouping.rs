//! `spec.decisionStrategy`: how the selected clusters are split into groups.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use ocm_api::cluster::v1beta1::{DecisionGroup, GroupStrategy};

use super::{Problem, predicates::ClusterSelector};

const STRATEGY: &str = "spec.decisionStrategy.groupStrategy";

/// How the selected clusters are split.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Grouping {
    /// Groups by selector, up to the first that is invalid.
    pub(crate) rules: Vec<GroupRule>,
    /// How large a group may become.
    pub(crate) size: Size,
    /// What is wrong with the first group that is invalid.
    pub(crate) problem: Option<Problem>,
}

/// A group of the clusters that a selector matches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupRule {
    pub(crate) name: String,
    pub(crate) selector: ClusterSelector,
}

/// How large a group may become.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Size {
    /// All in one.
    #[default]
    All,
    /// This many clusters.
    Clusters(usize),
    /// This percentage of all selected clusters.
    Percent(f64),
}

impl Grouping {
    /// Reads the strategy.
    pub(crate) fn read(strategy: &GroupStrategy) -> Self {
        let mut grouping = Self::default();
        match Size::read(strategy.clusters_per_decision_group.as_ref()) {
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
}

impl GroupRule {
    fn read(index: usize, group: &DecisionGroup) -> Result<Self, Problem> {
        let field = format!("{STRATEGY}.decisionGroups[{index}].groupClusterSelector");
        let selector = &group.group_cluster_selector;
        let selector = ClusterSelector::read(&field, selector.label_selector.as_ref(), &selector.claim_selector)?;
        Ok(Self { name: group.group_name.clone(), selector })
    }
}

impl Size {
    fn read(size: Option<&IntOrString>) -> Result<Self, Problem> {
        match size {
            None => Ok(Self::All),
            Some(IntOrString::Int(number)) => Ok(usize::try_from(*number).map_or(Self::All, Self::Clusters)),
            Some(IntOrString::String(text)) => Self::parse(text).ok_or_else(|| {
                format!(
                    "{STRATEGY}.clustersPerDecisionGroup {text:?} is not a percentage like \"25%\"; write a number of \
                     clusters without quotes"
                )
            }),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        text.strip_suffix('%')?.parse().ok().map(Self::Percent)
    }

    /// The size of a group if `chosen` clusters are selected, at least 1.
    #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 clusters")]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded, and checked against `chosen`"
    )]
    pub(crate) fn of(self, chosen: usize) -> usize {
        let size = match self {
            Self::All => chosen,
            Self::Clusters(number) => number,
            Self::Percent(percent) => (percent / 100.0 * chosen as f64).ceil() as usize,
        };
        let fits = (1..=chosen).contains(&size);
        if fits { size } else { chosen.max(1) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn size(value: Value) -> Result<Size, Problem> {
        Size::read(serde_json::from_value::<Option<IntOrString>>(value).unwrap().as_ref())
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
            assert_eq!(size(value.clone()).unwrap().of(chosen), expected, "{value} of {chosen}");
        }
    }

    #[test]
    fn what_is_no_size_is_a_problem_that_names_the_field() {
        for text in ["many", "3", "", "%"] {
            let problem = size(json!(text)).unwrap_err();
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
