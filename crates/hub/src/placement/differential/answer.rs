//! What is decided on a snapshot, in a form in which two schedulers can be compared.

use std::collections::BTreeMap;

use ocm_api::{
    labels::{DECISION_GROUP_INDEX, DECISION_GROUP_NAME, PLACEMENT},
    reasons::placement::MISCONFIGURED,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What became of a placement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// It is left alone: it is being deleted, or scheduling is disabled.
    Ignored,
    /// Its decisions stay as they are, since the clusters of a set are not known.
    Kept,
    /// OCM crashes.
    Panicked(String),
    /// It is scheduled.
    Decided(Box<Decided>),
}

/// The outcome of scheduling, and what is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Decided {
    /// The clusters of the eligible sets, by name.
    pub(super) candidates: Vec<String>,
    /// What each filter leaves. Neither filters nor prioritizers are compared if the placement is misconfigured: OCM returns
    /// those up to the mistake.
    pub(super) filters: Vec<Filter>,
    /// By name and weight.
    pub(super) prioritizers: Vec<Prioritizer>,
    pub(super) sums: BTreeMap<String, i64>,
    /// The best first.
    pub(super) selected: Vec<String>,
    pub(super) missing: usize,
    pub(super) is_misconfigured: bool,
    /// Type, status and reason.
    pub(super) conditions: Vec<[String; 3]>,
    pub(super) number_of_selected_clusters: i32,
    pub(super) groups: Vec<Group>,
    /// The placement's decisions once they are written.
    pub(super) decisions: Vec<Decision>,
    /// When it is scheduled again, in seconds since 1970; `None` if another selection is written, after which it is scheduled
    /// again in any case.
    pub(super) again: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Filter {
    pub(super) name: String,
    pub(super) clusters: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, PartialOrd, Eq, Ord, Serialize, Deserialize)]
pub(super) struct Prioritizer {
    pub(super) name: String,
    pub(super) weight: i32,
    pub(super) scores: BTreeMap<String, i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Group {
    pub(super) index: i32,
    pub(super) name: String,
    pub(super) decisions: Vec<String>,
    pub(super) clusters: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Decision {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) index: String,
    pub(super) clusters: Vec<String>,
}

impl Answer {
    /// What differs, a line each.
    pub(super) fn differences(&self, ours: &Self) -> Vec<String> {
        match (self, ours) {
            (Self::Decided(ocm), Self::Decided(ours)) => ocm.differences(ours),
            (ocm, ours) if ocm == ours => Vec::new(),
            (ocm, ours) => vec![format!("{}\n   OCM: {ocm:?}\n  ours: {ours:?}", ocm.outcome())],
        }
    }

    /// What becomes of the placement, in a word.
    pub(super) fn outcome(&self) -> String {
        match self {
            Self::Ignored => "ignored".to_owned(),
            Self::Kept => "kept".to_owned(),
            Self::Panicked(_) => "panicked".to_owned(),
            Self::Decided(decided) if decided.is_misconfigured => MISCONFIGURED.to_owned(),
            Self::Decided(decided) => decided.conditions.last().map_or("", |[_, _, reason]| reason).to_owned(),
        }
    }
}

impl Decided {
    /// Without what is not compared.
    pub(super) fn comparable(mut self) -> Self {
        if self.is_misconfigured {
            (self.filters, self.prioritizers) = <_>::default();
        }
        self.prioritizers.sort();
        self
    }

    /// The same with one decision for each group that has several: which of them lists a cluster differs. OCM splits a group by
    /// name, and we keep a cluster in its decision.
    fn with_whole_groups(&self) -> Self {
        let mut decisions: Vec<Decision> = Vec::new();
        for decision in &self.decisions {
            match decisions.iter_mut().find(|whole| whole.index == decision.index) {
                Some(whole) => whole.clusters.extend(decision.clusters.iter().cloned()),
                None => decisions.push(decision.clone()),
            }
        }
        let is_split = |whole: &&mut Decision| !self.decisions.contains(whole);
        decisions.iter_mut().filter(is_split).for_each(|whole| whole.clusters.sort());
        Self { decisions, ..self.clone() }
    }

    fn differences(&self, ours: &Self) -> Vec<String> {
        let fields = |decided: &Self| match serde_json::to_value(decided) {
            Ok(Value::Object(fields)) => fields,
            other => panic!("a struct is an object: {other:?}"),
        };
        let (ocm, ours) = (fields(&self.with_whole_groups()), fields(&ours.with_whole_groups()));
        let differing = ocm.iter().filter(|(field, value)| ours.get(*field) != Some(value));
        differing.map(|(field, value)| format!("{field}\n   OCM: {value}\n  ours: {}", ours[field])).collect()
    }
}

impl Decision {
    /// The PlacementDecision of the placement with this metadata.
    pub(super) fn object(&self, placement: &Value) -> Value {
        let labels =
            json!({PLACEMENT: placement["name"], DECISION_GROUP_NAME: self.group, DECISION_GROUP_INDEX: self.index});
        let metadata =
            json!({"name": self.name, "namespace": placement["namespace"], "uid": self.name, "labels": labels});
        let listed = self.clusters.iter().map(|name| json!({"clusterName": name, "reason": ""}));
        json!({"metadata": metadata, "status": {"decisions": listed.collect::<Vec<_>>()}})
    }
}
