//! The spec of a placement, checked once and ready to be applied to many clusters.

mod grouping;
mod predicates;
mod refusal;
mod tolerations;
mod weights;

use kube::ResourceExt as _;
use ocm_api::{annotations::PLACEMENT_DISABLE, cluster::v1beta1::Placement};
use ocm_runtime::write;

pub(crate) use self::{
    grouping::Grouping,
    predicates::Predicates,
    tolerations::{Tolerations, Until},
    weights::Weights,
};
use super::facts::Cluster;

/// What is wrong with a placement, for a condition: the field, and what to do.
pub(crate) type Problem = String;

/// The spec of a placement. An error in a part only matters when that part is used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rules {
    /// Whether the hub ignores the placement and its decisions: it is being deleted, or scheduling is disabled.
    pub(crate) is_ignored: bool,
    /// The sets to select from; empty for all that are bound.
    pub(crate) sets: Vec<String>,
    /// How many clusters to select; `None` for all that fit.
    pub(crate) number_of_clusters: Result<Option<usize>, Problem>,
    /// The field that asks for something this hub does not support.
    pub(crate) refusal: Option<Problem>,
    pub(crate) predicates: Result<Predicates, Problem>,
    pub(crate) tolerations: Result<Tolerations, Problem>,
    pub(crate) weights: Result<Weights, Problem>,
    pub(crate) grouping: Grouping,
}

impl Rules {
    /// Reads a placement.
    pub(crate) fn of(placement: &Placement) -> Self {
        let spec = &placement.spec;
        Self {
            is_ignored: write::is_deleting(placement) || is_disabled(placement),
            sets: spec.cluster_sets.clone(),
            number_of_clusters: spec.number_of_clusters.map(count).transpose(),
            refusal: refusal::refusal(placement),
            predicates: Predicates::read(&spec.predicates),
            tolerations: Tolerations::read(&spec.tolerations),
            weights: Weights::read(&spec.prioritizer_policy),
            grouping: Grouping::read(&spec.decision_strategy.group_strategy),
        }
    }

    /// Whether the placement selects from this set, if it is bound to its namespace.
    pub(crate) fn selects_from(&self, set: &str) -> bool {
        self.sets.is_empty() || self.sets.iter().any(|taken| taken == set)
    }

    /// Whether the selection depends on what other placements select. Their number is part of scores in any case, but which
    /// clusters are selected depends on scores only where fewer may be selected than fit.
    pub(crate) fn counts_others(&self) -> bool {
        let is_limited = matches!(self.number_of_clusters, Ok(Some(_)));
        self.refusal.is_none() && is_limited && self.weights.as_ref().is_ok_and(Weights::count_others)
    }

    /// Whether the change of a cluster that is a candidate both before and after can lead to another decision. `fits` is
    /// whether the cluster could be selected, before and after.
    pub(crate) fn can_change_decision(&self, old: &Cluster, new: &Cluster, fits: (bool, bool)) -> bool {
        let may_expire = self.tolerations.as_ref().is_ok_and(Tolerations::may_expire);
        let scores = self.weights.as_ref().is_ok_and(Weights::use_resources);
        fits.0 != fits.1
            || fits.1
                && (may_expire && old.taints != new.taints
                    || scores && old.allocatable != new.allocatable
                    || !self.grouping.rules.is_empty() && (old.labels != new.labels || old.claims != new.claims))
    }
}

fn is_disabled(placement: &Placement) -> bool {
    placement.annotations().get(PLACEMENT_DISABLE).is_some_and(|value| value == "true")
}

fn count(number: i32) -> Result<usize, Problem> {
    let problem =
        |_| format!("spec.numberOfClusters is {number}: use 0 or more, or leave it out for all clusters that fit");
    usize::try_from(number).map_err(problem)
}
