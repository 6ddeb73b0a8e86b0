//! The answer, as in OCM. Pure.

use std::{cmp::Reverse, collections::BTreeMap};

use kube::ResourceExt as _;
use ocm_api::cluster::v1beta1::Placement;
use ocm_scheduler::{ClusterExplanation, Explanation, Input, Verdict};
use serde::Serialize;

/// How a placement is decided, or why that is not answered.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<Placement>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    filtered_pipeline_results: Vec<Filtered>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prioritize_results: Vec<Prioritized>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aggregated_scores: Vec<Aggregated>,
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
}

/// The clusters that a chain of filters leaves.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Filtered {
    /// The names of the filters.
    name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    filtered_clusters: Vec<String>,
}

/// The scores by one prioritizer.
#[derive(Debug, PartialEq, Serialize)]
struct Prioritized {
    name: String,
    weight: i32,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    scores: BTreeMap<String, i64>,
}

/// The sum of the scores of one cluster, each multiplied by its weight.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Aggregated {
    cluster_name: String,
    score: i64,
}

impl Answer {
    /// The lists are incomplete if the placement is invalid, as in OCM.
    pub(super) fn of(placement: &Placement, explanation: &Explanation) -> Self {
        Self {
            placement: Some(essential(placement)),
            filtered_pipeline_results: filtered(explanation),
            prioritize_results: prioritized(explanation),
            aggregated_scores: aggregated(explanation),
            error: String::new(),
        }
    }

    pub(super) fn of_error(error: &impl ToString) -> Self {
        Self { error: error.to_string(), ..Self::default() }
    }
}

/// The placement without its status and most metadata.
fn essential(placement: &Placement) -> Placement {
    let mut essential =
        Placement::new(placement.namespace().unwrap_or_default(), placement.name_any(), placement.spec.clone());
    essential.metadata.labels.clone_from(&placement.metadata.labels);
    essential.metadata.annotations.clone_from(&placement.metadata.annotations);
    essential
}

/// The first filter, the first two, and so on.
fn filtered(explanation: &Explanation) -> Vec<Filtered> {
    let names: Vec<_> = explanation.filters.iter().map(|filter| filter.name).collect();
    let filtered = |(index, filter): (usize, &ocm_scheduler::Filtered)| Filtered {
        name: names[..=index].join(","),
        filtered_clusters: filter.left.iter().map(ToString::to_string).collect(),
    };
    explanation.filters.iter().enumerate().map(filtered).collect()
}

fn prioritized(explanation: &Explanation) -> Vec<Prioritized> {
    let score = |one: &ClusterExplanation, index: usize| match &one.verdict {
        Verdict::Ranked { scores, .. } => {
            let score = scores.get(index).filter(|score| !matches!(score.input, Input::Amount { of_it: None, .. }))?;
            Some((one.name.to_string(), score.score))
        }
        _ => None,
    };
    let prioritizers = explanation.prioritizers.iter().enumerate();
    prioritizers
        .map(|(index, one)| Prioritized {
            name: one.name.clone(),
            weight: one.weight,
            scores: explanation.clusters.iter().filter_map(|one| score(one, index)).collect(),
        })
        .collect()
}

/// By descending score, and then by name.
fn aggregated(explanation: &Explanation) -> Vec<Aggregated> {
    let sum = |one: &ClusterExplanation| match one.verdict {
        Verdict::Ranked { sum, .. } => Some(Aggregated { cluster_name: one.name.to_string(), score: sum }),
        _ => None,
    };
    let mut all: Vec<_> = explanation.clusters.iter().filter_map(sum).collect();
    all.sort_by_key(|one| Reverse(one.score));
    all
}
