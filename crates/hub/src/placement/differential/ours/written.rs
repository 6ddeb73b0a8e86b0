//! The decisions of a placement after a plan has been carried out.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use ocm_api::{
    cluster::v1beta1::PlacementDecision,
    labels::{DECISION_GROUP_INDEX, DECISION_GROUP_NAME, PLACEMENT},
};
use ocm_runtime::ObjectKey;
use ocm_scheduler::DesiredDecision;

use super::{Decision, Snapshot, all};
use crate::placement::plan::Step;

/// A decision, and the placement it belongs to.
#[derive(Clone)]
struct Stored {
    placement: Option<String>,
    decision: Decision,
}

/// The decisions of the placement of that key after these steps, by name.
pub(super) fn decisions(snapshot: &Snapshot, key: &ObjectKey, steps: &[Step]) -> Vec<Decision> {
    let existing = all::<PlacementDecision>(&snapshot.decisions).into_iter();
    let existing = existing.filter(|decision| decision.namespace().as_ref() == Some(&key.namespace));
    let mut stored: BTreeMap<_, _> = existing.map(|one| (one.name_any(), Stored::of(&one))).collect();
    steps.iter().for_each(|step| carry_out(step, &key.name, &mut stored));
    let its = stored.into_values().filter(|stored| stored.placement.as_ref() == Some(&key.name));
    its.map(|stored| stored.decision).collect()
}

fn carry_out(step: &Step, placement: &str, stored: &mut BTreeMap<String, Stored>) {
    match step {
        Step::Create(desired) => {
            let created = Stored { placement: Some(placement.to_owned()), decision: decision(desired) };
            assert!(stored.insert(desired.name.clone(), created).is_none(), "{desired:?} exists");
        }
        Step::List(desired) => stored.get_mut(&desired.name).unwrap().decision.clusters = decision(desired).clusters,
        Step::Label(desired) => stored.get_mut(&desired.name).unwrap().label(placement, desired),
        Step::Delete(name) => _ = stored.remove(name).unwrap(),
    }
}

impl Stored {
    fn of(decision: &PlacementDecision) -> Self {
        let label = |key: &str| decision.labels().get(key).cloned();
        let listed = decision.status.iter().flat_map(|status| &status.decisions);
        let clusters = listed.map(|decision| decision.cluster_name.clone()).collect();
        let (group, index) = (label(DECISION_GROUP_NAME), label(DECISION_GROUP_INDEX));
        let (group, index) = (group.unwrap_or_default(), index.unwrap_or_default());
        Self { placement: label(PLACEMENT), decision: Decision { name: decision.name_any(), group, index, clusters } }
    }

    fn label(&mut self, placement: &str, desired: &DesiredDecision) {
        self.placement = Some(placement.to_owned());
        (self.decision.group, self.decision.index) = (desired.group.clone(), desired.index.clone());
    }
}

fn decision(desired: &DesiredDecision) -> Decision {
    let DesiredDecision { name, group, index, clusters } = desired.clone();
    Decision { name, group, index, clusters: clusters.iter().map(ToString::to_string).collect() }
}
