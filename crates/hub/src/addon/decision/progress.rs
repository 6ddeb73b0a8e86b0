//! How far the installation of an add-on has come on the clusters of one placement.

use std::sync::Arc;

use ocm_runtime::ObjectKey;

use super::Inputs;
use crate::{
    addon::facts::FollowedPlacement,
    decisions::{ClusterName, DecisionGroups, PlacementSnapshot},
};

/// How far the installation of an add-on has come on the clusters of one placement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) placement: ObjectKey,
    /// Whether the placement exists.
    pub(crate) exists: bool,
    /// Why it has chosen fewer clusters than it should, if so.
    pub(crate) problem: Option<String>,
    /// What is asked for on its clusters and this hub does not support.
    pub(crate) refusal: Option<Arc<str>>,
    /// How many clusters it has chosen that no later placement has.
    pub(crate) selected: usize,
    /// On how many of these the add-on is installed and configured.
    pub(crate) configured: usize,
    /// On how many of these it could not be installed.
    pub(crate) failed: usize,
    /// The first of these, and why.
    pub(crate) failure: Option<(ClusterName, String)>,
}

impl Progress {
    pub(super) fn of(
        followed: &FollowedPlacement,
        refusal: Option<&Arc<str>>,
        snapshot: Option<&PlacementSnapshot>,
        groups: &DecisionGroups,
        inputs: &Inputs,
    ) -> Self {
        let failures = groups.clusters().filter(|cluster| !inputs.installed.contains_key(*cluster));
        let mut failures =
            failures.filter_map(|cluster| Some((cluster.clone(), inputs.failures.get(cluster)?.clone())));
        let failure = failures.next();
        Self {
            placement: followed.placement.clone(),
            exists: snapshot.is_some(),
            problem: snapshot.and_then(|snapshot| snapshot.problem.clone()),
            refusal: refusal.cloned(),
            selected: groups.clusters().len(),
            configured: groups.clusters().filter(|cluster| inputs.installed.get(*cluster) == Some(&true)).count(),
            failed: usize::from(failure.is_some()) + failures.count(),
            failure,
        }
    }
}
