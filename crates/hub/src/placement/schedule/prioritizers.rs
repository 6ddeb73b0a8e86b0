//! Scores of clusters that fit, the higher the better. A prioritizer gives from -100 to 100.

use super::{Candidate, ScheduleContext};
use crate::placement::facts::Allocatable;

/// The best score.
const BEST: i64 = 100;

/// A way to score clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Prioritizer {
    /// Prefers clusters that other placements select less.
    Balance,
    /// Prefers clusters that are selected already.
    Steady,
    /// Prefers clusters with more CPU.
    AllocatableCpu,
    /// Prefers clusters with more memory.
    AllocatableMemory,
}

impl Prioritizer {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Balance, Self::Steady, Self::AllocatableCpu, Self::AllocatableMemory];
    /// Those that count by default.
    pub(crate) const DEFAULTS: [Self; 2] = [Self::Balance, Self::Steady];

    /// Its name in a placement.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Balance => "Balance",
            Self::Steady => "Steady",
            Self::AllocatableCpu => "ResourceAllocatableCPU",
            Self::AllocatableMemory => "ResourceAllocatableMemory",
        }
    }

    /// Whether it depends on the resources of clusters.
    pub(crate) const fn uses_resources(self) -> bool {
        matches!(self, Self::AllocatableCpu | Self::AllocatableMemory)
    }

    /// The score of each cluster, in the order of the clusters.
    pub(crate) fn scores(self, fitting: &[Candidate<'_>], context: &ScheduleContext<'_>) -> Vec<i64> {
        match self {
            Self::Balance => balance(fitting, context),
            Self::Steady => fitting.iter().map(|one| if context.has_decided(one.name) { BEST } else { 0 }).collect(),
            Self::AllocatableCpu => amounts(fitting, |allocatable| allocatable.cpu),
            Self::AllocatableMemory => amounts(fitting, |allocatable| allocatable.memory),
        }
    }
}

/// How often other placements select a cluster, relative to the one they select most, which need not be a candidate.
fn balance(fitting: &[Candidate<'_>], context: &ScheduleContext<'_>) -> Vec<i64> {
    let by_others = |name: &str, times: u32| times - context.own.get(name).copied().unwrap_or(0).min(times);
    let most = context.counts.iter().map(|(name, times)| by_others(name, *times)).max().unwrap_or(0);
    let times = |name: &str| context.counts.get(name).map_or(0, |times| by_others(name, *times));
    fitting.iter().map(|one| balance_of(times(one.name), most)).collect()
}

fn balance_of(times: u32, most: u32) -> i64 {
    match times {
        0 => BEST,
        times => 2 * truncate(100.0 * (0.5 - f64::from(times) / f64::from(most))),
    }
}

/// The position of a cluster between the one with the least and the one with the most; 0 if it does not report the resource.
fn amounts(fitting: &[Candidate<'_>], amount: impl Fn(&Allocatable) -> Option<f64>) -> Vec<i64> {
    let reported = || fitting.iter().filter_map(|one| amount(&one.facts.allocatable));
    let (least, most) = (reported().fold(f64::INFINITY, f64::min), reported().fold(f64::NEG_INFINITY, f64::max));
    let score = |amount: f64| {
        if most > least { truncate(((amount - least) / (most - least) - 0.5) * 200.0) } else { BEST }
    };
    fitting.iter().map(|one| amount(&one.facts.allocatable).map_or(0, score)).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "it is what this is for, and scores are small")]
fn truncate(score: f64) -> i64 {
    score.trunc() as i64
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Arc};

    use jiff::Timestamp;

    use super::*;
    use crate::placement::{
        facts::{Cluster, Clusters},
        schedule::ClusterCounts,
    };

    fn scores(prioritizer: Prioritizer, clusters: &Clusters, counts: &[(&str, u32)], own: &[(&str, u32)]) -> Vec<i64> {
        let counts: ClusterCounts = counts.iter().map(|(name, times)| ((*name).into(), *times)).collect();
        let own: HashMap<&str, u32> = own.iter().copied().collect();
        let context = ScheduleContext { now: Timestamp::UNIX_EPOCH, decided: &own, counts: &counts, own: &own };
        let fitting: Vec<_> = clusters.iter().map(|(name, facts)| Candidate { name, facts }).collect();
        prioritizer.scores(&fitting, &context)
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
