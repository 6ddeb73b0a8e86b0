//! The spec of a placement, checked once and ready to be applied to many clusters.

mod grouping;
mod predicates;
mod refusal;
mod tolerations;
mod weights;

use kube_core::ResourceExt as _;
use ocm_api::{annotations::PLACEMENT_DISABLE, cluster::v1beta1::Placement};

pub(crate) use self::{
    grouping::Grouping,
    predicates::Predicates,
    tolerations::{Tolerations, Until},
    weights::Weights,
};
pub use self::{predicates::Mismatch, tolerations::Intolerance};
use crate::facts::Cluster;

/// What is wrong with a placement, for a condition: the field, and what to do.
pub type Problem = String;

/// The spec of a placement. An error in a part only matters when that part is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Whether the hub ignores the placement and its decisions: it is being deleted, or scheduling is disabled.
    pub is_ignored: bool,
    /// The sets to select from; empty for all that are bound.
    pub sets: Vec<String>,
    /// How many clusters to select; `None` for all that fit.
    pub(crate) number_of_clusters: Result<Option<usize>, Problem>,
    /// The field that asks for something this hub does not support.
    pub refusal: Option<Problem>,
    pub(crate) predicates: Result<Predicates, Problem>,
    pub(crate) tolerations: Result<Tolerations, Problem>,
    pub(crate) weights: Result<Weights, Problem>,
    pub(crate) grouping: Grouping,
}

impl Rules {
    /// Reads a placement.
    #[must_use]
    pub fn of(placement: &Placement) -> Self {
        let spec = &placement.spec;
        Self {
            is_ignored: placement.metadata.deletion_timestamp.is_some() || is_disabled(placement),
            sets: spec.cluster_sets.clone(),
            number_of_clusters: spec.number_of_clusters.map(count).transpose(),
            refusal: refusal::refusal(placement),
            predicates: Predicates::read(&spec.predicates),
            tolerations: Tolerations::read(&spec.tolerations),
            weights: Weights::read(&spec.prioritizer_policy),
            grouping: Grouping::read(&spec.decision_strategy.group_strategy),
        }
    }

    /// All that is wrong with it.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let Self { number_of_clusters, refusal, predicates, tolerations, weights, grouping, .. } = self;
        let errors = [
            number_of_clusters.as_ref().err(),
            refusal.as_ref(),
            predicates.as_ref().err(),
            tolerations.as_ref().err(),
            weights.as_ref().err(),
            grouping.problem.as_ref(),
        ];
        errors.into_iter().flatten().cloned().collect()
    }

    /// Whether the placement selects from this set, if it is bound to its namespace.
    #[must_use]
    pub fn selects_from(&self, set: &str) -> bool {
        self.sets.is_empty() || self.sets.iter().any(|taken| taken == set)
    }

    /// Whether the selection depends on what other placements select. Their number is part of scores in any case, but which
    /// clusters are selected depends on scores only where fewer may be selected than fit.
    #[must_use]
    pub fn counts_others(&self) -> bool {
        let is_limited = matches!(self.number_of_clusters, Ok(Some(_)));
        self.refusal.is_none() && is_limited && self.weights.as_ref().is_ok_and(Weights::count_others)
    }

    /// Whether the change of a cluster that is a candidate both before and after can lead to another decision. `fits` is
    /// whether the cluster could be selected, before and after.
    #[must_use]
    pub fn can_change_decision(&self, old: &Cluster, new: &Cluster, fits: (bool, bool)) -> bool {
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
