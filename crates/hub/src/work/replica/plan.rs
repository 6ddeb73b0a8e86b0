//! What to write for one work.

use std::{collections::BTreeSet, sync::Arc};

use ocm_runtime::ObjectKey;

use super::Replica;
use crate::work::{
    decision::State,
    facts::{Labels, Template, Work},
};

/// What a write depends on.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(super) replica: Replica,
    pub(super) state: State,
    pub(super) template: Arc<Template>,
    /// Those that belong to the same cluster, placement and set.
    pub(super) works: Vec<Arc<Work>>,
    /// Of the work that is kept.
    pub(super) labels: Labels,
    /// The keys of labels that the set once had.
    pub(super) former_labels: BTreeSet<String>,
    pub(super) is_cluster_leaving: bool,
    /// A work in the cluster's namespace that cannot be read, and may be the one.
    pub(super) unreadable: Option<ObjectKey>,
}

/// What to write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plan {
    Nothing,
    Create,
    Update(Arc<Work>),
    /// All of them.
    Delete(Vec<Arc<Work>>),
    /// Those after the oldest, which is kept.
    DeleteSurplus {
        kept: Arc<Work>,
        surplus: Vec<Arc<Work>>,
    },
}

pub(super) fn plan(observed: &Observed) -> Plan {
    let mut works: Vec<_> = observed.works.iter().filter(|work| !work.is_deleting).cloned().collect();
    works.sort_by(|one, other| one.seniority().cmp(&other.seniority()));
    if matches!(observed.state, State::Absent { .. }) {
        return if works.is_empty() { Plan::Nothing } else { Plan::Delete(works) };
    }
    let mut works = works.into_iter();
    match (works.next(), observed.state) {
        (Some(kept), _) if works.len() > 0 => Plan::DeleteSurplus { kept, surplus: works.collect() },
        (Some(kept), State::Current) if differs(&kept, observed) => Plan::Update(kept),
        (None, State::Current) if may_create(observed) => Plan::Create,
        _ => Plan::Nothing,
    }
}

/// Not before a former one is gone, whose objects the agent is deleting. Not on a cluster that is being deleted: the work would be
/// cleaned up, and be created again.
fn may_create(observed: &Observed) -> bool {
    observed.works.is_empty() && !observed.is_cluster_leaving
}

/// Labels that others added stay until the work is written for another reason.
fn differs(work: &Work, observed: &Observed) -> bool {
    let desired = observed.template.labels_for(&observed.replica.placement);
    let lacks = desired.iter().any(|(key, value)| observed.labels.get(key) != Some(value));
    let is_former = |key: &&String| observed.former_labels.contains(*key) && !desired.contains_key(*key);
    !work.is_of(&observed.template) || lacks || observed.labels.keys().any(|key| is_former(&key))
}
