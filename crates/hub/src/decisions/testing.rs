//! Builders for unit tests.

use kube::ResourceExt as _;
use ocm_api::{
    cluster::v1beta1::{Placement, PlacementDecision},
    labels::{DECISION_GROUP_INDEX, DECISION_GROUP_NAME, PLACEMENT},
};
use ocm_runtime::ObjectKey;
use serde_json::json;

use super::{PlacementSnapshot, state::State};

/// A decision of namespace `n` that lists these clusters; `group` is the name and the index of its group.
pub(crate) fn decision(name: &str, placement: &str, group: (&str, &str), clusters: &[&str]) -> PlacementDecision {
    let mut decision = PlacementDecision::new("n", name);
    let labels = [(PLACEMENT, placement), (DECISION_GROUP_NAME, group.0), (DECISION_GROUP_INDEX, group.1)];
    decision.labels_mut().extend(labels.map(|(key, value)| (key.to_owned(), value.to_owned())));
    let listed: Vec<_> = clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
    decision.status = Some(serde_json::from_value(json!({ "decisions": listed })).unwrap());
    decision
}

/// A placement that has chosen these clusters.
pub(crate) fn chosen(clusters: &[&str]) -> PlacementSnapshot {
    let (mut state, key) = (State::default(), ObjectKey::new("n", "p"));
    state.set_placement(&key, Some(&Placement::new("n", "p", <_>::default())));
    state.set_decision(&ObjectKey::new("n", "d"), Some(&decision("d", "p", ("", "0"), clusters)));
    state.placement(&key).unwrap()
}
