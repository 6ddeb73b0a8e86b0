//! `spec.prioritizerPolicy`: which prioritizers count, and how much.

use std::collections::BTreeMap;

use ocm_api::cluster::v1beta1::{
    PrioritizerConfig, PrioritizerPolicy, PrioritizerPolicyMode, ScoreCoordinate, ScoreCoordinateType,
};

use super::Problem;
use crate::schedule::Prioritizer;

const POLICY: &str = "spec.prioritizerPolicy";
/// The weight of a prioritizer that is listed without one.
const LISTED: i32 = 1;

/// The prioritizers that count, each with its weight, which is not 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Weights(pub(crate) Vec<(Prioritizer, i32)>);

impl Weights {
    /// Reads the policy: the built-in prioritizers that it lists and, unless its mode is `Exact`, those with a default weight.
    pub(crate) fn read(policy: &PrioritizerPolicy) -> Result<Self, Problem> {
        nameless(policy).map_or(Ok(()), Err)?;
        let mut weights: BTreeMap<String, (i32, usize)> = BTreeMap::new();
        if is_additive(policy)? {
            weights.extend(Prioritizer::DEFAULTS.map(|prioritizer| (prioritizer.name().to_owned(), (LISTED, 0))));
        }
        // The last of two that are the same counts.
        let listed =
            policy.configurations.iter().enumerate().filter(|(_, listed)| is_built_in(&listed.score_coordinate));
        weights.extend(listed.map(|(index, listed)| (name(listed), (weight(listed), index))));
        let counting = weights.into_iter().filter(|(_, (weight, _))| *weight != 0);
        counting.map(|(name, (weight, index))| Ok((find(&name, index)?, weight))).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the selections of other placements count.
    pub(crate) fn count_others(&self) -> bool {
        self.0.iter().any(|(prioritizer, _)| *prioritizer == Prioritizer::Balance)
    }

    /// Whether a cluster's resources count.
    pub(crate) fn use_resources(&self) -> bool {
        self.0.iter().any(|(prioritizer, _)| prioritizer.uses_resources())
    }
}

fn is_additive(policy: &PrioritizerPolicy) -> Result<bool, Problem> {
    match &policy.mode {
        None | Some(PrioritizerPolicyMode::Additive) => Ok(true),
        Some(PrioritizerPolicyMode::Exact) => Ok(false),
        Some(PrioritizerPolicyMode::Other(mode)) if mode.is_empty() => Ok(true),
        Some(PrioritizerPolicyMode::Other(mode)) => {
            Err(format!("{POLICY}.mode {mode:?} is not known: use Additive or Exact"))
        }
    }
}

/// The field of the first listed prioritizer that takes the scores of an add-on and counts.
pub(crate) fn addon_scores(policy: &PrioritizerPolicy) -> Option<String> {
    let index = counting(policy, |listed| listed.score_coordinate.add_on.is_some())?;
    Some(format!("{POLICY}.configurations[{index}].scoreCoordinate.type {}", ScoreCoordinateType::AddOn))
}

/// What is wrong with the first prioritizer with a weight that does not name its scores.
fn nameless(policy: &PrioritizerPolicy) -> Option<Problem> {
    let index = counting(policy, |listed| listed.score_coordinate.add_on.is_none())?;
    Some(format!("{POLICY}.configurations[{index}].scoreCoordinate.addOn is missing: name the scores of an add-on"))
}

/// The first listed prioritizer that is none of the built-in ones, counts, and is so.
fn counting(policy: &PrioritizerPolicy, is_so: impl Fn(&PrioritizerConfig) -> bool) -> Option<usize> {
    let counts = |listed: &PrioritizerConfig| !is_built_in(&listed.score_coordinate) && weight(listed) != 0;
    policy.configurations.iter().position(|listed| counts(listed) && is_so(listed))
}

fn is_built_in(coordinate: &ScoreCoordinate) -> bool {
    coordinate.type_ == ScoreCoordinateType::BuiltIn
}

fn name(listed: &PrioritizerConfig) -> String {
    listed.score_coordinate.built_in.clone().unwrap_or_default()
}

fn weight(listed: &PrioritizerConfig) -> i32 {
    listed.weight.unwrap_or(LISTED)
}

fn find(name: &str, index: usize) -> Result<Prioritizer, Problem> {
    let found = Prioritizer::ALL.into_iter().find(|prioritizer| prioritizer.name() == name);
    found.ok_or_else(|| {
        let known = Prioritizer::ALL.map(Prioritizer::name).join(", ");
        format!("{POLICY}.configurations[{index}].scoreCoordinate.builtIn {name:?} is not known: use one of {known}")
    })
}

#[cfg(test)]
mod tests {
    use Prioritizer::{AllocatableCpu, Balance, Steady};
    use serde_json::{Value, json};

    use super::*;

    fn read(policy: Value) -> Result<Vec<(Prioritizer, i32)>, Problem> {
        Weights::read(&serde_json::from_value(policy).unwrap()).map(|weights| weights.0)
    }

    fn listed(name: &str, weight: Value) -> Value {
        let mut listed = json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}});
        listed["weight"] = weight;
        listed
    }

    #[test]
    fn balance_and_steady_count_unless_the_policy_is_exact() {
        assert_eq!(read(json!({})).unwrap(), [(Balance, 1), (Steady, 1)]);
        assert_eq!(read(json!({"mode": "Additive"})).unwrap(), [(Balance, 1), (Steady, 1)]);
        assert_eq!(read(json!({"mode": "Exact"})).unwrap(), []);
    }

    #[test]
    fn what_is_listed_overrides_the_last_of_two_counts_and_weight_0_switches_off() {
        let policy = json!({"configurations": [listed("Steady", json!(3)), listed("ResourceAllocatableCPU", json!(null)),
            listed("Steady", json!(-2)), listed("Balance", json!(0)), listed("NoSuch", json!(0))]});
        assert_eq!(read(policy).unwrap(), [(AllocatableCpu, 1), (Steady, -2)]);
    }

    #[test]
    fn unknown_modes_and_prioritizers_are_problems_that_name_the_field() {
        let problem = read(json!({"mode": "Fair"})).unwrap_err();
        assert!(problem.starts_with("spec.prioritizerPolicy.mode \"Fair\" is not known"), "{problem}");
        let policy = json!({"configurations": [listed("Steady", json!(1)), listed("Spread", json!(1))]});
        let problem = read(policy).unwrap_err();
        assert!(problem.contains("configurations[1].scoreCoordinate.builtIn \"Spread\" is not known"), "{problem}");
        assert!(problem.ends_with("Balance, Steady, ResourceAllocatableCPU, ResourceAllocatableMemory"), "{problem}");
    }

    #[test]
    fn scores_of_add_ons_are_found_unless_their_weight_is_0() {
        let listed = |weight: i32| {
            let addon = json!({"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}});
            json!({"configurations": [{"scoreCoordinate": addon, "weight": weight}]})
        };
        let found = |policy: Value| addon_scores(&serde_json::from_value(policy).unwrap());
        assert_eq!(found(listed(1)).unwrap(), "spec.prioritizerPolicy.configurations[0].scoreCoordinate.type AddOn");
        assert_eq!(found(listed(0)), None);
        assert_eq!(read(listed(1)).unwrap().len(), 2);
    }

    #[test]
    fn scores_of_an_add_on_that_is_not_named_are_a_mistake_unless_their_weight_is_0() {
        let listed =
            |weight: i32| json!({"configurations": [{"scoreCoordinate": {"type": "AddOn"}, "weight": weight}]});
        assert_eq!(addon_scores(&serde_json::from_value(listed(1)).unwrap()), None);
        let problem = read(listed(1)).unwrap_err();
        assert!(problem.contains("configurations[0].scoreCoordinate.addOn is missing"), "{problem}");
        assert_eq!(read(listed(0)).unwrap().len(), 2);
    }
}
