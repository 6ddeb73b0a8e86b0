//! Our scheduler, asked in two ways: the selection is that of a program which reads all objects once, and status and decisions
//! are what the hub writes after informers have brought them.

mod written;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ocm_api::cluster::v1beta1::{Placement, PlacementStatus};
use ocm_runtime::{Change, ObjectKey};
use ocm_scheduler::{ClusterExplanation, Explanation, Objects, Verdict, explain};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Snapshot,
    answer::{Answer, Decided, Decision, Filter, Group, Prioritizer},
};
use crate::placement::{
    index::Index,
    plan::{Observed, plan},
};

/// What we decide.
pub(super) fn decide(snapshot: &Snapshot) -> Answer {
    let placement: Arc<Placement> = Arc::new(read(&snapshot.placement));
    let (index, key) = (index(snapshot, &placement), ObjectKey::of(placement.as_ref()));
    let seen = index.snapshot(&key).unwrap();
    if seen.inputs.rules.is_ignored {
        return Answer::Ignored;
    }
    let observed = Observed { placement, snapshot: seen };
    let plan = plan(&observed, snapshot.now, &mut |_| {});
    let decisions = written::decisions(snapshot, &key, &plan.steps);
    let explanation = explained(snapshot, &observed.placement);
    if explanation.eligible.problem.is_some() {
        return kept(snapshot, &decisions);
    }
    let decided = Decided { decisions, ..decided(snapshot, &explanation, &plan.status) };
    assert!(decided.again.is_none() || plan.requeue_after.is_some(), "{plan:?}");
    Answer::Decided(Box::new(decided.comparable()))
}

fn read<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap()
}

fn all<T: DeserializeOwned>(objects: &[Value]) -> Vec<T> {
    objects.iter().map(read).collect()
}

/// What informers have brought.
fn index(snapshot: &Snapshot, placement: &Arc<Placement>) -> Index {
    let json: BTreeMap<_, Arc<[u8]>> = snapshot.clusters.iter().map(json_by_name).collect();
    let index = Index::new(move |name| json.get(name).cloned());
    snapshot.decisions.iter().for_each(|decision| _ = index.decision(Change::Added(&Arc::new(read(decision)))));
    snapshot
        .clusters
        .iter()
        .for_each(|cluster| _ = index.cluster(Change::Added(&Arc::new(read(cluster))), snapshot.now));
    snapshot.sets.iter().for_each(|set| _ = index.set(Change::Added(&Arc::new(read(set)))));
    snapshot.scores.iter().for_each(|scores| _ = index.scores(Change::Added(&Arc::new(read(scores)))));
    snapshot.bindings.iter().for_each(|binding| _ = index.binding(Change::Added(&Arc::new(read(binding)))));
    index.placement(Change::Added(placement));
    index
}

/// The cluster as it is in the cache.
fn json_by_name(cluster: &Value) -> (String, Arc<[u8]>) {
    (cluster["metadata"]["name"].as_str().unwrap().to_owned(), cluster.to_string().into_bytes().into())
}

fn explained(snapshot: &Snapshot, placement: &Placement) -> Explanation {
    let objects = Objects {
        clusters: &all(&snapshot.clusters),
        sets: &all(&snapshot.sets),
        bindings: &all(&snapshot.bindings),
        decisions: &all(&snapshot.decisions),
        scores: &all(&snapshot.scores),
    };
    explain(&ocm_scheduler::Snapshot::of(placement, &objects, snapshot.now), snapshot.now)
}

/// The clusters of a set are not known. The decisions list what they listed before.
fn kept(snapshot: &Snapshot, decisions: &[Decision]) -> Answer {
    let listed: BTreeSet<_> = decisions.iter().flat_map(|decision| decision.clusters.iter().cloned()).collect();
    assert_eq!(listed, snapshot.decided());
    Answer::Kept
}

fn decided(snapshot: &Snapshot, explanation: &Explanation, status: &PlacementStatus) -> Decided {
    let ranked = ranked(explanation);
    let selected: Vec<_> = ranked.iter().filter(|one| one.is_selected).map(|one| one.name.clone()).collect();
    let conditions = status.conditions.iter().map(|is| [is.type_.clone(), is.status.clone(), is.reason.clone()]);
    Decided {
        candidates: left(explanation, None),
        filters: filters(explanation),
        prioritizers: prioritizers(explanation, &ranked),
        sums: ranked.iter().map(|one| (one.name.clone(), one.sum)).collect(),
        missing: explanation.missing,
        is_misconfigured: explanation.problem.is_some(),
        conditions: conditions.collect(),
        number_of_selected_clusters: status.number_of_selected_clusters,
        groups: groups(status),
        decisions: Vec::new(),
        again: toleration_ends(explanation).filter(|_| snapshot.has_decided(&selected)),
        selected,
    }
}

/// When the first toleration of a selected cluster ends. (We also schedule again when a score expires.)
fn toleration_ends(explanation: &Explanation) -> Option<i64> {
    let end = |cluster: &ClusterExplanation| match cluster.verdict {
        Verdict::Ranked { is_selected: true, tolerated_until, .. } => tolerated_until,
        _ => None,
    };
    explanation.clusters.iter().filter_map(end).min().map(jiff::Timestamp::as_second)
}

/// A cluster that passed all filters.
struct Ranked {
    name: String,
    scores: Vec<i64>,
    sum: i64,
    rank: usize,
    is_selected: bool,
}

fn ranked(explanation: &Explanation) -> Vec<Ranked> {
    let mut ranked: Vec<_> = explanation.clusters.iter().filter_map(Ranked::of).collect();
    ranked.sort_by_key(|one| one.rank);
    ranked
}

impl Ranked {
    fn of(cluster: &ClusterExplanation) -> Option<Self> {
        let Verdict::Ranked { scores, sum, rank, is_selected, .. } = &cluster.verdict else { return None };
        let scores = scores.iter().map(|score| score.score).collect();
        Some(Self { name: cluster.name.to_string(), scores, sum: *sum, rank: *rank, is_selected: *is_selected })
    }
}

/// The candidates that these filters leave.
fn left(explanation: &Explanation, filters: impl IntoIterator<Item = &'static str>) -> Vec<String> {
    let filters: Vec<_> = filters.into_iter().collect();
    let is_left = |cluster: &&ClusterExplanation| match &cluster.verdict {
        Verdict::NotEligible { .. } => false,
        Verdict::Removed { filter, .. } => !filters.contains(filter),
        Verdict::Undecided | Verdict::Ranked { .. } => true,
    };
    explanation.clusters.iter().filter(is_left).map(|cluster| cluster.name.to_string()).collect()
}

fn filters(explanation: &Explanation) -> Vec<Filter> {
    let (first, second) = ("Predicate", "TaintToleration");
    let filter =
        |name: String, filters: &[&'static str]| Filter { name, clusters: left(explanation, filters.iter().copied()) };
    vec![filter(first.into(), &[first]), filter(format!("{first},{second}"), &[first, second])]
}

fn prioritizers(explanation: &Explanation, ranked: &[Ranked]) -> Vec<Prioritizer> {
    let by = |(index, prioritizer): (usize, &ocm_scheduler::WeightedPrioritizer)| Prioritizer {
        name: prioritizer.name.clone(),
        weight: prioritizer.weight,
        scores: ranked.iter().map(|one| (one.name.clone(), one.scores[index])).collect(),
    };
    explanation.prioritizers.iter().enumerate().map(by).collect()
}

fn groups(status: &PlacementStatus) -> Vec<Group> {
    let groups = status.decision_groups.iter().map(|group| Group {
        index: group.decision_group_index,
        name: group.decision_group_name.clone(),
        decisions: group.decisions.clone(),
        clusters: group.clusters_count,
    });
    groups.collect()
}
