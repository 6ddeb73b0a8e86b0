//! What to write for one placement: which clusters it gets, in which decisions, and what its status says.

use std::{collections::HashMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use ocm_api::cluster::v1beta1::{DecisionGroupStatus, Placement, PlacementStatus};

use super::{
    eligible::Eligible,
    facts::Name,
    group::{self, Wanted},
    held,
    index::{Scene, Slices},
    rules::Problem,
    schedule::{self, Candidate, Choice, Situation},
    status::{Standing, status},
};

/// A placement, and everything its decision depends on.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) placement: Arc<Placement>,
    pub(crate) scene: Scene,
}

/// What to write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// The decisions as they will be.
    pub(crate) wanted: Vec<Wanted>,
    /// What makes them so, in this order.
    pub(crate) steps: Vec<Step>,
    /// The placement's status as it will be.
    pub(crate) status: PlacementStatus,
    /// The scores of all clusters that fit, by name.
    pub(crate) scores: Vec<(Name, i64)>,
    /// When to look again without a change.
    pub(crate) again: Option<SignedDuration>,
}

/// One thing to write about a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Make it, and list its clusters.
    Create(Wanted),
    /// List its clusters.
    List(Wanted),
    /// Give it its labels.
    Label(Wanted),
    /// Delete the decision of this name.
    Delete(String),
}

/// The choice, or what is wrong, and the decisions that follow.
struct Outcome<'a> {
    choice: Choice<'a>,
    problem: Option<Problem>,
    wanted: Vec<Wanted>,
    groups: Vec<DecisionGroupStatus>,
}

/// Decides.
pub(crate) fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let Observed { placement, scene } = observed;
    let (name, rules) = (placement.name_any(), &scene.rules);
    let eligible = Eligible::of(scene);
    let candidates = eligible.candidates(scene);
    let has_candidates = !candidates.is_empty();
    let is_held = rules.refusal.is_some() || eligible.problem.is_some();
    let Outcome { choice, problem, wanted, groups } = if is_held {
        let (wanted, groups) = held::decisions(&name, scene, eligible.problem.is_none().then_some(&candidates[..]));
        Outcome { choice: Choice::default(), problem: rules.refusal.clone(), wanted, groups }
    } else {
        decide(&name, scene, candidates, now)
    };
    let selected = wanted.iter().map(|decision| decision.clusters.len()).sum();
    let standing = Standing {
        eligible,
        asked: &rules.sets,
        has_candidates,
        selected: if is_held { selected } else { choice.chosen.len() },
        missing: choice.missing,
        problem,
        is_held,
    };
    Plan {
        steps: steps(&name, &scene.slices, &wanted),
        status: status(placement, &standing, groups, now),
        wanted,
        again: choice.until.map(|until| until.duration_since(now)),
        scores: choice.scores,
    }
}

/// Chooses, and splits what is chosen over decisions. Nothing is chosen for a placement with a mistake in it.
fn decide<'a>(placement: &str, scene: &Scene, candidates: Vec<Candidate<'a>>, now: Timestamp) -> Outcome<'a> {
    let listed = scene.slices.values().filter(|slice| slice.is_of(placement)).flat_map(|slice| &slice.clusters);
    let (decided, claims) = (count(listed), count(&scene.claims));
    let situation = Situation { now, decided: &decided, tally: &scene.tally, claims: &claims };
    let (choice, problem) = match schedule::choose(&scene.rules, candidates, &situation) {
        Ok(choice) => (choice, scene.rules.grouping.problem.clone()),
        Err(problem) => (Choice::default(), Some(problem)),
    };
    let groups = group::split(&scene.rules.grouping, &choice.chosen);
    let (wanted, groups) = group::slice(placement, &groups);
    Outcome { choice, problem, wanted, groups }
}

fn count<'a>(names: impl IntoIterator<Item = &'a Name>) -> HashMap<&'a str, u32> {
    let mut counts = HashMap::new();
    names.into_iter().for_each(|name| *counts.entry(&**name).or_default() += 1);
    counts
}

/// What makes the decisions that there are those that are wanted.
fn steps(placement: &str, slices: &Slices, wanted: &[Wanted]) -> Vec<Step> {
    let mut steps = Vec::new();
    for decision in wanted {
        let Some(slice) = slices.get(&decision.name) else {
            steps.push(Step::Create(decision.clone()));
            continue;
        };
        if slice.clusters != decision.clusters {
            steps.push(Step::List(decision.clone()));
        }
        if !slice.is_labelled(placement, decision) {
            steps.push(Step::Label(decision.clone()));
        }
    }
    let is_wanted = |name: &String| wanted.iter().any(|decision| decision.name == *name);
    let surplus = slices.iter().filter(|(name, slice)| slice.is_of(placement) && !is_wanted(name));
    steps.extend(surplus.map(|(name, _)| Step::Delete(name.clone())));
    steps
}
