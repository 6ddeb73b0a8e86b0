//! `spec.prioritizerPolicy`: which prioritizers count, and how much.

use std::{collections::BTreeMap, sync::Arc};

use ocm_api::cluster::v1beta1::{
    PrioritizerConfig, PrioritizerPolicy, PrioritizerPolicyMode, ScoreCoordinate, ScoreCoordinateType,
};

use super::Problem;
use crate::{facts::Cluster, schedule::Prioritizer};

const POLICY: &str = "spec.prioritizerPolicy";
/// The weight of a prioritizer that is listed without one.
const LISTED: i32 = 1;

/// The prioritizers that count, each with its weight, which is not 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Weights(pub(crate) Vec<(Prioritizer, i32)>);

impl Weights {
    /// Reads the policy: the prioritizers that it lists and, unless its mode is `Exact`, those with a default weight. The last of
    /// two entries for the same one counts.
    pub(crate) fn read(policy: &PrioritizerPolicy) -> Result<Self, Problem> {
        let mut weights: BTreeMap<Coordinate, (i32, usize)> = BTreeMap::new();
        if is_additive(policy)? {
            weights.extend(Prioritizer::DEFAULTS.map(|built_in| (Coordinate::default_of(&built_in), (LISTED, 0))));
        }
        let listed = policy.configurations.iter().enumerate();
        weights.extend(listed.map(|(index, listed)| (Coordinate::of(index, listed), (weight(listed), index))));
        let counting = weights.into_iter().filter(|(_, (weight, _))| *weight != 0);
        let read = |(coordinate, (weight, index)): (Coordinate, _)| Ok((coordinate.find(policy, index)?, weight));
        counting.map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the selections of other placements count.
    pub(crate) fn count_others(&self) -> bool {
        self.0.iter().any(|(prioritizer, _)| *prioritizer == Prioritizer::Balance)
    }

    /// Whether the scores of two clusters can differ because of what these report.
    pub(crate) fn distinguish(&self, one: &Cluster, other: &Cluster) -> bool {
        self.0.iter().any(|(prioritizer, _)| prioritizer.distinguishes(one, other))
    }
}

/// What tells prioritizers apart, as in OCM.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Coordinate {
    is_addon: bool,
    built_in: String,
    /// The entry, if it has `addOn`: two such entries are never the same.
    entry: Option<usize>,
}

impl Coordinate {
    fn default_of(built_in: &Prioritizer) -> Self {
        Self { is_addon: false, built_in: built_in.name(), entry: None }
    }

    fn of(index: usize, listed: &PrioritizerConfig) -> Self {
        let ScoreCoordinate { type_, built_in, add_on } = &listed.score_coordinate;
        let is_addon = *type_ != ScoreCoordinateType::BuiltIn;
        Self { is_addon, built_in: built_in.clone().unwrap_or_default(), entry: add_on.as_ref().map(|_| index) }
    }

    /// The prioritizer. `index` is that of the entry.
    fn find(&self, policy: &PrioritizerPolicy, index: usize) -> Result<Prioritizer, Problem> {
        if !self.is_addon {
            return built_in(&self.built_in, index);
        }
        let score = policy.configurations.get(index).and_then(|listed| listed.score_coordinate.add_on.clone());
        let missing = || {
            format!("{POLICY}.configurations[{index}].scoreCoordinate.addOn is missing: name the scores of an add-on")
        };
        score.map(|score| Prioritizer::AddOn(Arc::new(score))).ok_or_else(missing)
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

fn weight(listed: &PrioritizerConfig) -> i32 {
    listed.weight.unwrap_or(LISTED)
}

fn built_in(name: &str, index: usize) -> Result<Prioritizer, Problem> {
    let found = Prioritizer::BUILT_IN.into_iter().find(|prioritizer| prioritizer.name() == name);
    found.ok_or_else(|| {
        let known = Prioritizer::BUILT_IN.map(|prioritizer| prioritizer.name()).join(", ");
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

    fn addon(resource: &str, weight: i32) -> Value {
        let coordinate = json!({"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": "s"}});
        json!({"scoreCoordinate": coordinate, "weight": weight})
    }

    #[test]
    fn each_entry_for_scores_of_an_add_on_counts_also_twice_unless_its_weight_is_0() {
        let policy = json!({"mode": "Exact", "configurations": [addon("r", 2), addon("q", 0), addon("r", -1)]});
        let names: Vec<_> = read(policy).unwrap().iter().map(|(one, weight)| (one.name(), *weight)).collect();
        assert_eq!(names, [("AddOn/r/s".to_owned(), 2), ("AddOn/r/s".to_owned(), -1)]);
    }

    #[test]
    fn a_built_in_prioritizer_that_names_scores_as_well_counts_apart_from_others() {
        let mut policy = json!({"configurations": [listed("Steady", json!(3)), listed("Steady", json!(0))]});
        policy["configurations"][0]["scoreCoordinate"]["addOn"] = json!({"resourceName": "r", "scoreName": "s"});
        assert_eq!(read(policy).unwrap(), [(Balance, 1), (Steady, 3)]);
    }

    #[test]
    fn scores_of_an_add_on_that_is_not_named_are_a_mistake_unless_their_weight_is_0() {
        let listed =
            |weight: i32| json!({"configurations": [{"scoreCoordinate": {"type": "AddOn"}, "weight": weight}]});
        let problem = read(listed(1)).unwrap_err();
        assert!(problem.contains("configurations[0].scoreCoordinate.addOn is missing"), "{problem}");
        assert_eq!(read(listed(0)).unwrap().len(), 2);
    }
}
