//! Scores of clusters that fit, the higher the better. A prioritizer gives from -100 to 100.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use ocm_api::cluster::v1beta1::AddOnScore;

use super::{Candidate, ScheduleContext};
use crate::facts::{Allocatable, Cluster, Name};

/// The best score.
const BEST: i64 = 100;

/// A way to score clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prioritizer {
    /// Prefers clusters that other placements select less.
    Balance,
    /// Prefers clusters that are selected already.
    Steady,
    /// Prefers clusters with more CPU.
    AllocatableCpu,
    /// Prefers clusters with more memory.
    AllocatableMemory,
    /// Prefers clusters to which an add-on gives a higher score.
    AddOn(Arc<AddOnScore>),
}

impl Prioritizer {
    /// Those that the hub computes itself.
    pub(crate) const BUILT_IN: [Self; 4] = [Self::Balance, Self::Steady, Self::AllocatableCpu, Self::AllocatableMemory];
    /// Those that count by default.
    pub(crate) const DEFAULTS: [Self; 2] = [Self::Balance, Self::Steady];

    /// Its name, as in a placement and in OCM.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Balance => "Balance".into(),
            Self::Steady => "Steady".into(),
            Self::AllocatableCpu => "ResourceAllocatableCPU".into(),
            Self::AllocatableMemory => "ResourceAllocatableMemory".into(),
            Self::AddOn(score) => format!("AddOn/{}/{}", score.resource_name, score.score_name),
        }
    }

    /// Whether the scores of two clusters can differ because of what these report.
    pub(crate) fn distinguishes(&self, one: &Cluster, other: &Cluster) -> bool {
        match self {
            Self::Balance | Self::Steady => false,
            Self::AllocatableCpu | Self::AllocatableMemory => one.allocatable != other.allocatable,
            Self::AddOn(score) => one.scores.get(&score.resource_name) != other.scores.get(&score.resource_name),
        }
    }

    /// The scores of add-ons that no longer count, each as the name of a cluster and of its AddOnPlacementScore.
    pub(crate) fn expired(&self, fitting: &[Candidate<'_>], inputs: &[Input]) -> Vec<(Name, String)> {
        let Self::AddOn(score) = self else { return Vec::new() };
        let expired = fitting.iter().zip(inputs).filter(|(_, input)| matches!(input, Input::Expired(_)));
        expired.map(|(one, _)| (one.name.clone(), score.resource_name.clone())).collect()
    }

    /// When the first score of an add-on expires.
    pub(crate) fn expires(&self, fitting: &[Candidate<'_>], now: Timestamp) -> Option<Timestamp> {
        let Self::AddOn(score) = self else { return None };
        fitting.iter().filter_map(|one| one.facts.scores.get(&score.resource_name)?.expires(now)).min()
    }

    /// What the score of each cluster is computed from, in the order of the clusters.
    pub(crate) fn inputs(&self, fitting: &[Candidate<'_>], context: &ScheduleContext<'_>) -> Vec<Input> {
        match self {
            Self::Balance => balance(fitting, context),
            Self::Steady => fitting.iter().map(|one| Input::Decided(context.has_decided(one.name))).collect(),
            Self::AllocatableCpu => amounts(fitting, |allocatable| allocatable.cpu),
            Self::AllocatableMemory => amounts(fitting, |allocatable| allocatable.memory),
            Self::AddOn(score) => fitting.iter().map(|one| addon(score, one.facts, context.now)).collect(),
        }
    }
}

/// What the score of a cluster is computed from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    /// How many decisions of other placements list the cluster.
    Decisions {
        /// This cluster.
        of_it: u32,
        /// The cluster that most of them list, which need not be a candidate.
        most: u32,
    },
    /// Whether the placement has selected it already.
    Decided(bool),
    /// How much of a resource pods may use.
    Amount {
        /// On this cluster; `None` if it does not report that.
        of_it: Option<f64>,
        /// On the cluster that fits and has the least.
        least: f64,
        /// On the cluster that fits and has the most.
        most: f64,
    },
    /// The score of an add-on.
    AddOn(i32),
    /// The cluster has no AddOnPlacementScore of that name.
    NoScores,
    /// Its AddOnPlacementScore does not have the score.
    NoScore,
    /// Its AddOnPlacementScore is no longer valid since then.
    Expired(Timestamp),
}

impl Input {
    /// The score.
    #[must_use]
    pub fn score(&self) -> i64 {
        match *self {
            Self::Decisions { of_it, most } => balance_of(of_it, most),
            Self::Decided(true) => BEST,
            Self::Decided(false) | Self::Amount { of_it: None, .. } => 0,
            Self::AddOn(score) => i64::from(score),
            Self::NoScores | Self::NoScore | Self::Expired(_) => 0,
            Self::Amount { of_it: Some(amount), least, most } => position(amount, least, most),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decisions { of_it, most } => {
                write!(f, "listed by {of_it} decisions of other placements; no cluster is listed by more than {most}")
            }
            Self::Decided(true) => f.write_str("selected already"),
            Self::Decided(false) => f.write_str("not selected yet"),
            Self::Amount { of_it: Some(amount), least, most } => write!(f, "{amount} between {least} and {most}"),
            Self::Amount { of_it: None, .. } => f.write_str("not reported in both allocatable and capacity"),
            Self::AddOn(score) => write!(f, "{score} by the add-on"),
            Self::NoScores => f.write_str("the cluster has no AddOnPlacementScore of that name"),
            Self::NoScore => f.write_str("the AddOnPlacementScore does not have that score"),
            Self::Expired(end) => write!(f, "the AddOnPlacementScore was valid until {end}"),
        }
    }
}

/// How often other placements select a cluster, relative to the one they select most, which need not be a candidate.
fn balance(fitting: &[Candidate<'_>], context: &ScheduleContext<'_>) -> Vec<Input> {
    let by_others = |name: &str, times: u32| times - context.own.get(name).copied().unwrap_or(0).min(times);
    let most = context.counts.iter().map(|(name, times)| by_others(name, *times)).max().unwrap_or(0);
    let times = |name: &str| context.counts.get(name).map_or(0, |times| by_others(name, *times));
    fitting.iter().map(|one| Input::Decisions { of_it: times(one.name), most }).collect()
}

fn balance_of(times: u32, most: u32) -> i64 {
    match times {
        0 => BEST,
        times => 2 * truncate(100.0 * (0.5 - f64::from(times) / f64::from(most))),
    }
}

fn amounts(fitting: &[Candidate<'_>], amount: impl Fn(&Allocatable) -> Option<f64>) -> Vec<Input> {
    let reported = || fitting.iter().filter_map(|one| amount(&one.facts.allocatable));
    let (least, most) = (reported().fold(f64::INFINITY, f64::min), reported().fold(f64::NEG_INFINITY, f64::max));
    fitting.iter().map(|one| Input::Amount { of_it: amount(&one.facts.allocatable), least, most }).collect()
}

fn addon(score: &AddOnScore, cluster: &Cluster, now: Timestamp) -> Input {
    let Some(scores) = cluster.scores.get(&score.resource_name) else { return Input::NoScores };
    match (scores.expired(now), scores.score(&score.score_name)) {
        (Some(end), _) => Input::Expired(end),
        (_, Some(score)) => Input::AddOn(score),
        (_, None) => Input::NoScore,
    }
}

/// The position of an amount between the least and the most.
fn position(amount: f64, least: f64, most: f64) -> i64 {
    if most > least { truncate(((amount - least) / (most - least) - 0.5) * 200.0) } else { BEST }
}

#[expect(clippy::cast_possible_truncation, reason = "it is what this is for, and scores are small")]
fn truncate(score: f64) -> i64 {
    score.trunc() as i64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use ocm_api::cluster::v1alpha1::AddOnPlacementScoreItem;

    use super::*;
    use crate::{
        facts::{AddOnScores, Clusters},
        schedule::ClusterCounts,
    };

    #[expect(clippy::needless_pass_by_value, reason = "for the tests to be short")]
    fn scores(prioritizer: Prioritizer, clusters: &Clusters, counts: &[(&str, u32)], own: &[(&str, u32)]) -> Vec<i64> {
        let counts: ClusterCounts = counts.iter().map(|(name, times)| ((*name).into(), *times)).collect();
        let own: HashMap<&str, u32> = own.iter().copied().collect();
        let context = ScheduleContext { now: Timestamp::UNIX_EPOCH, decided: own.clone(), counts: &counts, own };
        let fitting: Vec<_> = clusters.iter().map(|(name, facts)| Candidate { name, facts }).collect();
        prioritizer.inputs(&fitting, &context).iter().map(Input::score).collect()
    }

    fn clusters(memory: &[(&str, Option<f64>)]) -> Clusters {
        let cluster = |memory| Cluster { allocatable: Allocatable { cpu: None, memory }, ..Cluster::default() };
        memory.iter().map(|(name, memory)| ((*name).into(), Arc::new(cluster(*memory)))).collect()
    }

    fn named(names: &[&str]) -> Clusters {
        clusters(&names.iter().map(|name| (*name, None)).collect::<Vec<_>>())
    }

    #[test]
    fn balance_prefers_clusters_that_others_choose_less() {
        let clusters = named(&["a", "b", "c", "d"]);
        let counts = [("a", 1), ("b", 2), ("c", 3)];
        assert_eq!(scores(Prioritizer::Balance, &clusters, &counts, &[]), [32, -32, -100, 100]);
        assert_eq!(scores(Prioritizer::Balance, &clusters, &[], &[]), [100; 4]);
    }

    #[test]
    fn balance_leaves_out_the_placements_own_choice_and_counts_clusters_that_are_no_candidates() {
        let clusters = named(&["a", "b"]);
        assert_eq!(scores(Prioritizer::Balance, &clusters, &[("a", 1), ("b", 2)], &[("a", 1)]), [100, -100]);
        assert_eq!(scores(Prioritizer::Balance, &clusters, &[("a", 1), ("gone", 4)], &[]), [50, 100]);
    }

    #[test]
    fn the_score_of_an_add_on_counts_until_it_expires_and_is_0_if_there_is_none() {
        let valid = |until| {
            let scores = vec![AddOnPlacementScoreItem { name: "s".into(), value: -7 }];
            Cluster {
                scores: [("r".into(), Arc::new(AddOnScores { scores, valid_until: until }))].into(),
                ..Cluster::default()
            }
        };
        let second = |second| Some(Timestamp::from_second(second).unwrap());
        let all = [("a", valid(None)), ("b", valid(second(0))), ("c", valid(second(-1))), ("d", Cluster::default())];
        let clusters: Clusters = all.into_iter().map(|(name, cluster)| (name.into(), Arc::new(cluster))).collect();
        let addon = |score: &str| {
            Prioritizer::AddOn(Arc::new(AddOnScore { resource_name: "r".into(), score_name: score.into() }))
        };
        assert_eq!(scores(addon("s"), &clusters, &[], &[]), [-7, -7, 0, 0]);
        assert_eq!(scores(addon("t"), &clusters, &[], &[]), [0; 4]);
    }

    #[test]
    fn steady_prefers_what_is_chosen_already() {
        assert_eq!(scores(Prioritizer::Steady, &named(&["a", "b"]), &[], &[("b", 1)]), [0, 100]);
    }

    #[test]
    fn resources_score_from_least_to_most_and_who_says_nothing_gets_nothing() {
        let score =
            |memory: &[(&str, Option<f64>)]| scores(Prioritizer::AllocatableMemory, &clusters(memory), &[], &[]);
        assert_eq!(score(&[("a", Some(1.0)), ("b", Some(2.0)), ("c", Some(5.0)), ("d", None)]), [-100, -50, 100, 0]);
        assert_eq!(score(&[("a", Some(1.0)), ("b", Some(1.0)), ("c", None)]), [100, 100, 0]);
        assert_eq!(score(&[("a", None)]), [0]);
    }
}
