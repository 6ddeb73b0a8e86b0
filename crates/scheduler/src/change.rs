//! The smallest change that would select a cluster.

use std::{collections::BTreeMap, fmt, sync::Arc};

use jiff::Timestamp;
use ocm_api::{
    cluster::v1::Taint,
    labels::CLUSTER_SET,
    taints::{UNAVAILABLE, UNREACHABLE},
};
use serde_json::{Value, json};

use crate::{
    eligible::Eligible,
    facts::{Cluster, Document, Labels, Name},
    rules::{Rules, taint_as_text},
    schedule::{ScheduleContext, ranked, schedule},
    sets::{Set, SetSelector, sets_of},
    snapshot::Snapshot,
};

/// How many combinations are tried for one cluster, the smallest first.
const MAX_TRIED: usize = 8;

/// A change of the placement, its namespace or a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A ManagedClusterSetBinding in the namespace of the placement.
    BindSet(Name),
    /// One more entry of `spec.clusterSets`.
    AddClusterSet(Name),
    /// A label of the cluster, or its removal.
    Label(String, Option<String>),
    /// A claim of the cluster, or its removal.
    Claim(String, Option<String>),
    /// One more entry of `spec.tolerations`, which tolerates this taint.
    Tolerate(Taint),
    /// Another `spec.numberOfClusters`.
    NumberOfClusters(usize),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BindSet(set) => write!(f, "bind ManagedClusterSet {set} to the placement's namespace"),
            Self::AddClusterSet(set) => write!(f, "add {set} to spec.clusterSets"),
            Self::Label(key, Some(value)) => write!(f, "label the cluster {key}={value}"),
            Self::Label(key, None) => write!(f, "remove label {key} from the cluster"),
            Self::Claim(key, Some(value)) => write!(f, "set claim {key}={value} on the cluster"),
            Self::Claim(key, None) => write!(f, "remove claim {key} from the cluster"),
            Self::Tolerate(taint) if [UNREACHABLE, UNAVAILABLE].contains(&taint.key.as_str()) => {
                let taint = taint_as_text(taint);
                write!(f, "make the cluster available again, or tolerate taint {taint} in spec.tolerations")
            }
            Self::Tolerate(taint) => {
                write!(f, "tolerate taint {} in spec.tolerations, or remove it", taint_as_text(taint))
            }
            Self::NumberOfClusters(number) => write!(f, "raise spec.numberOfClusters to {number}"),
        }
    }
}

/// The fewest changes, of those that are known, after which the placement selects the cluster: none if it does so now. `None`
/// if no such change is known, as for a cluster that is being deleted, an invalid placement, and CEL expressions. Of
/// the combinations that make the cluster match the predicates, only the 8 smallest are tried.
#[must_use]
pub fn smallest_change(snapshot: &Snapshot, cluster: &str, now: Timestamp) -> Option<Vec<Change>> {
    let facts = snapshot.clusters.get(cluster).filter(|facts| !facts.is_deleting)?;
    let mut tried: Vec<Vec<Change>> = memberships(snapshot, facts)
        .into_iter()
        .flat_map(|changes| admissions(snapshot, cluster, facts, changes))
        .collect();
    tried.sort_by_key(Vec::len);
    let completed = tried.into_iter().take(MAX_TRIED).filter_map(|changes| complete(snapshot, cluster, changes, now));
    completed.min_by_key(Vec::len).map(|changes| reduced(snapshot, cluster, changes, now))
}

/// The changes without those that are not needed: a change for one predicate may also be all that another one needs.
fn reduced(snapshot: &Snapshot, cluster: &str, mut changes: Vec<Change>, now: Timestamp) -> Vec<Change> {
    let without = |changes: &[Change], left_out: usize| {
        let others = changes.iter().enumerate().filter(|(at, _)| *at != left_out);
        others.map(|(_, change)| change.clone()).collect::<Vec<_>>()
    };
    while let Some(fewer) = (0..changes.len())
        .map(|left_out| without(&changes, left_out))
        .find(|fewer| selects(snapshot, cluster, fewer, now))
    {
        changes = fewer;
    }
    changes
}

/// Whether the placement selects the cluster after these changes.
fn selects(snapshot: &Snapshot, cluster: &str, changes: &[Change], now: Timestamp) -> bool {
    let changed = snapshot.with(cluster, changes);
    schedule(&changed, now).selection.chosen.iter().any(|one| **one.name == *cluster)
}

/// Ways to make the cluster a candidate, from the one that has the fewest effects on other clusters and placements.
fn memberships(snapshot: &Snapshot, cluster: &Cluster) -> Vec<Vec<Change>> {
    let eligible = Eligible::of(snapshot);
    if eligible.includes(&cluster.sets) {
        return vec![vec![]];
    }
    let is_exclusive =
        |set: &Set| set.selector.as_ref().is_ok_and(|selector| matches!(**selector, SetSelector::Exclusive(_)));
    let sets = || cluster.sets.iter().filter_map(|name| snapshot.sets.get_key_value(name));
    let (exclusive, shared): (Vec<_>, Vec<_>) = sets().partition(|(_, set)| is_exclusive(set));
    let admit = |sets: Vec<(&Name, &Set)>| sets.into_iter().map(|(name, _)| admit_set(snapshot, name)).collect();
    let joins = eligible.sets.iter().filter_map(|name| join(snapshot, name, cluster)).collect();
    let ways: [Vec<_>; 3] = if cluster.labels.contains_key(CLUSTER_SET) {
        [admit(exclusive), admit(shared), joins]
    } else {
        [admit(exclusive), joins, admit(shared)]
    };
    ways.concat()
}

/// Lets the placement select from a set.
fn admit_set(snapshot: &Snapshot, set: &Name) -> Vec<Change> {
    let bind = (!snapshot.bound.contains(&**set)).then(|| Change::BindSet(set.clone()));
    let add = (!snapshot.rules.selects_from(set)).then(|| Change::AddClusterSet(set.clone()));
    bind.into_iter().chain(add).collect()
}

/// Makes the cluster a member of a set.
fn join(snapshot: &Snapshot, set: &Name, cluster: &Cluster) -> Option<Vec<Change>> {
    match &**snapshot.sets.get(set)?.selector.as_ref().ok()? {
        SetSelector::Exclusive(name) => Some(vec![Change::Label(CLUSTER_SET.to_owned(), Some(name.clone()))]),
        SetSelector::Selected(selector) => Some(changes_of(selector.changes(&cluster.labels)?, Change::Label)),
    }
}

/// Ways to meet the predicates as well, after some changes.
fn admissions(snapshot: &Snapshot, name: &str, cluster: &Cluster, changes: Vec<Change>) -> Vec<Vec<Change>> {
    let Ok(predicates) = &snapshot.rules.predicates else { return Vec::new() };
    let cluster = changed(cluster, &changes);
    if predicates.admits(&cluster) {
        return vec![changes];
    }
    let more = predicates.changes(&cluster).map(|(labels, claims)| {
        let labels = changes_of(labels, Change::Label);
        [changes.clone(), labels, changes_of(claims, Change::Claim)].concat()
    });
    let selects = |changes: &Vec<Change>| {
        let cluster = snapshot.clusters.get(name).map(|cluster| changed(cluster, changes));
        cluster.is_some_and(|cluster| predicates.admits(&cluster))
    };
    more.filter(selects).collect()
}

fn changes_of(
    changes: BTreeMap<String, Option<String>>,
    change: impl Fn(String, Option<String>) -> Change,
) -> Vec<Change> {
    changes.into_iter().map(|(key, value)| change(key, value)).collect()
}

/// Adds what is needed after the predicates; `None` if the cluster is not selected even then.
fn complete(snapshot: &Snapshot, cluster: &str, mut changes: Vec<Change>, now: Timestamp) -> Option<Vec<Change>> {
    let mut snapshot = snapshot.with(cluster, &changes);
    let facts = snapshot.clusters.get(cluster)?.clone();
    let is_decided = ScheduleContext::of(&snapshot, now).has_decided(cluster);
    let mut tolerations = snapshot.rules.tolerations.as_ref().ok()?.clone();
    while let Some(intolerance) = tolerations.why_not(&facts.taints, is_decided, now) {
        tolerations = tolerations.and(&intolerance.taint);
        changes.push(Change::Tolerate(intolerance.taint));
    }
    Arc::make_mut(&mut snapshot.rules).tolerations = Ok(tolerations);
    let selection = schedule(&snapshot, now).selection;
    if selection.chosen.iter().any(|one| **one.name == *cluster) {
        return Some(changes);
    }
    changes.push(Change::NumberOfClusters(rank(&snapshot, &selection.scores, cluster)?));
    Some(changes)
}

/// The place of a cluster that passes all filters, from 1.
fn rank(snapshot: &Snapshot, scores: &[(Name, i64)], cluster: &str) -> Option<usize> {
    let fitting = Eligible::of(snapshot).candidates(snapshot);
    let is_scored =
        |name: &Name| scores.binary_search_by(|(scored, _): &(Name, i64)| scored.as_ref().cmp(name.as_ref())).is_ok();
    let fitting = fitting.into_iter().filter(|one| is_scored(one.name)).collect();
    let index = ranked(fitting, scores).iter().position(|one| **one.name == *cluster)?;
    Some(index + 1)
}

impl Snapshot {
    /// The snapshot after these changes; changes of labels and claims apply to `cluster`. Member counts of sets are not
    /// updated.
    #[must_use]
    pub fn with(&self, cluster: &str, changes: &[Change]) -> Self {
        let mut snapshot = self.clone();
        for change in changes {
            snapshot.apply(change);
        }
        let is_of_cluster = |change: &&Change| matches!(change, Change::Label(..) | Change::Claim(..));
        if let Some((name, facts)) = self.clusters.get_key_value(cluster)
            && changes.iter().any(|change| is_of_cluster(&change))
        {
            let mut facts = changed(facts, changes);
            facts.sets = sets_of(&facts, &self.sets);
            Arc::make_mut(&mut snapshot.clusters).insert(name.clone(), Arc::new(facts));
        }
        snapshot
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::BindSet(set) => _ = Arc::make_mut(&mut self.bound).insert(set.to_string()),
            Change::AddClusterSet(set) => self.rules_mut().sets.push(set.to_string()),
            Change::Tolerate(taint) => {
                if let Ok(tolerations) = &mut self.rules_mut().tolerations {
                    *tolerations = tolerations.and(taint);
                }
            }
            Change::NumberOfClusters(number) => self.rules_mut().number_of_clusters = Ok(Some(*number)),
            Change::Label(..) | Change::Claim(..) => {}
        }
    }

    fn rules_mut(&mut self) -> &mut Rules {
        Arc::make_mut(&mut self.rules)
    }
}

/// A cluster with other labels and claims.
fn changed(cluster: &Cluster, changes: &[Change]) -> Cluster {
    let mut cluster = cluster.clone();
    for change in changes {
        match change {
            Change::Label(key, value) => set(&mut cluster.labels, key, value.as_ref()),
            Change::Claim(key, value) => set(&mut cluster.claims, key, value.as_ref()),
            _ => {}
        }
    }
    cluster.document = cluster.document.as_ref().map(|document| Arc::new(document_of(&cluster, document)));
    cluster
}

fn set(values: &mut Labels, key: &str, value: Option<&String>) {
    match value {
        Some(value) => _ = values.insert(key.to_owned(), value.clone()),
        None => _ = values.remove(key),
    }
}

/// The document with the labels and claims of the cluster.
fn document_of(cluster: &Cluster, document: &Document) -> Document {
    let Ok(Value::Object(mut object)) = serde_json::from_slice(document.json()) else { return document.clone() };
    let claims: Vec<_> = cluster.claims.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let mut insert = |part: &str, field: &str, value: Value| {
        if let Value::Object(part) = object.entry(part).or_insert_with(|| json!({})) {
            part.insert(field.to_owned(), value);
        }
    };
    insert("metadata", "labels", json!(cluster.labels));
    insert("status", "clusterClaims", json!(claims));
    Document::new(Value::Object(object).to_string().into_bytes().into(), document.scores().clone())
}

#[cfg(test)]
mod tests;
