//! The spec of a placement, checked once and ready to be applied to many clusters.

mod cel;
mod grouping;
mod name;
mod predicates;
mod tolerations;
mod weights;

use std::sync::Arc;

use kube_core::ResourceExt as _;
use ocm_api::{annotations::PLACEMENT_DISABLE, cluster::v1beta1::Placement};

pub(crate) use self::{
    grouping::Grouping,
    predicates::Predicates,
    tolerations::{Tolerations, Until},
    weights::Weights,
};
pub use self::{
    predicates::Mismatch,
    tolerations::{Intolerance, taint_as_text},
};
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
    /// Why no decision can be labelled with the name of the placement.
    pub(crate) name: Option<Problem>,
    pub(crate) predicates: Result<Arc<Predicates>, Problem>,
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
            name: name::problem(placement),
            predicates: Predicates::read(&spec.predicates).map(Arc::new),
            tolerations: Tolerations::read(&spec.tolerations),
            weights: Weights::read(&spec.prioritizer_policy),
            grouping: Grouping::read(&spec.decision_strategy.group_strategy),
        }
    }

    /// All that is wrong with it.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let Self { number_of_clusters, name, predicates, tolerations, weights, grouping, .. } = self;
        let errors = [
            number_of_clusters.as_ref().err(),
            name.as_ref(),
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
        is_limited && self.weights.as_ref().is_ok_and(Weights::count_others)
    }

    /// Whether any predicate has a CEL selector, for which clusters need their documents.
    #[must_use]
    pub fn use_cel(&self) -> bool {
        self.predicates.as_ref().is_ok_and(|predicates| predicates.use_cel())
    }

    /// Evaluates the CEL selectors for a cluster, unless that was done before. A caller that does so for each candidate can
    /// do something else in between: [`schedule`](crate::schedule) then finds the results. Returns whether it took time.
    pub fn evaluate(&self, cluster: &Cluster) -> bool {
        self.predicates.as_ref().is_ok_and(|predicates| predicates.evaluate(cluster))
    }

    /// Whether the results of all CEL selectors that matter for a cluster are known.
    #[must_use]
    pub fn is_evaluated(&self, cluster: &Cluster) -> bool {
        self.predicates.as_ref().map_or(true, |predicates| predicates.is_known(cluster))
    }

    /// Whether the change of a cluster that is a candidate both before and after can lead to another decision. `fits` is
    /// whether the cluster could be selected, before and after; `None` if that would take long to know.
    #[must_use]
    pub fn can_change_decision(&self, old: &Cluster, new: &Cluster, fits: (Option<bool>, Option<bool>)) -> bool {
        let (Some(did), Some(does)) = fits else { return true };
        let may_expire = self.tolerations.as_ref().is_ok_and(Tolerations::may_expire);
        did != does
            || does
                && (may_expire && old.taints != new.taints
                    || self.weights.as_ref().is_ok_and(|weights| weights.distinguish(old, new))
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
