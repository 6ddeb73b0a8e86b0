//! What the controllers keep at hand of the objects they look at.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use ocm_api::{
    addon::v1alpha1::{ClusterManagementAddOn, InstallStrategyType, ManagedClusterAddOn, PlacementStrategy},
    annotations::{ADDON_LIFECYCLE, ADDON_LIFECYCLE_MANAGER, CONFIG_SPEC_HASH},
    cluster::{
        v1::ManagedCluster,
        v1beta1::{Placement, PlacementDecision},
    },
    conditions::{self as types, status},
    labels,
    work::v1::ManifestWork,
};
use ocm_runtime::{ObjectKey, conditions, write};

use super::{
    annotations::{self, Annotations},
    refusal,
};

/// What matters of a ClusterManagementAddOn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Management {
    pub(crate) uid: String,
    pub(crate) strategy: Strategy,
    /// What it asks for on all clusters and this hub cannot do.
    pub(crate) refusal: Option<String>,
}

/// Who decides where an add-on is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Whoever creates it in a cluster's namespace.
    ByHand,
    /// The hub: it belongs to the clusters of these placements and to no others. Of several placements with the same
    /// cluster the last counts.
    Placements(Vec<Choice>),
}

/// A placement whose clusters get an add-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) placement: ObjectKey,
    /// What is asked for on its clusters and this hub cannot do.
    pub(crate) refusal: Option<String>,
}

impl Management {
    /// `None` when the add-on is none of this hub's business: its own manager looks after it, or it is being deleted.
    pub(crate) fn of(management: &ClusterManagementAddOn) -> Option<Self> {
        let is_ours = is_managed(management) && !write::is_deleting(management);
        is_ours.then(|| Self {
            uid: management.uid().unwrap_or_default(),
            strategy: Strategy::of(management),
            refusal: refusal::of_all(management),
        })
    }

    /// The placements it follows; none when it is installed by hand.
    pub(crate) fn choices(&self) -> &[Choice] {
        match &self.strategy {
            Strategy::ByHand => &[],
            Strategy::Placements(choices) => choices,
        }
    }

    pub(crate) fn follows_placements(&self) -> bool {
        matches!(self.strategy, Strategy::Placements(_))
    }
}

/// Whether the hub looks after the add-on. Any other value than the hub's, also the empty one, says that it must not.
fn is_managed(management: &ClusterManagementAddOn) -> bool {
    management.annotations().get(ADDON_LIFECYCLE).is_none_or(|value| value == ADDON_LIFECYCLE_MANAGER)
}

impl Strategy {
    fn of(management: &ClusterManagementAddOn) -> Self {
        match &management.spec.install_strategy {
            Some(strategy) if strategy.type_ == Some(InstallStrategyType::Placements) => {
                let placements = strategy.placements.iter().enumerate();
                Self::Placements(
                    placements.map(|(index, placement)| Choice::of(management, index, placement)).collect(),
                )
            }
            _ => Self::ByHand,
        }
    }
}

impl Choice {
    fn of(management: &ClusterManagementAddOn, index: usize, placement: &PlacementStrategy) -> Self {
        Self {
            placement: ObjectKey::new(placement.namespace.clone(), placement.name.clone()),
            refusal: refusal::of_placement(management, index, placement),
        }
    }
}

/// What matters of a placement: that it is there, and why it chose fewer clusters than it should, if it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chooser {
    pub(crate) complaint: Option<String>,
}

impl Chooser {
    pub(crate) fn of(placement: &Placement) -> Self {
        let conditions = placement.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let wrong =
            conditions::find(conditions, types::placement::MISCONFIGURED).filter(|found| found.status == status::TRUE);
        let short =
            conditions::find(conditions, types::placement::SATISFIED).filter(|found| found.status == status::FALSE);
        Self { complaint: wrong.or(short).map(complaint) }
    }
}

fn complaint(condition: &Condition) -> String {
    format!("{}: {}", condition.reason, condition.message)
}

/// What matters of a PlacementDecision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) placement: ObjectKey,
    pub(crate) clusters: BTreeSet<String>,
}

impl Decision {
    /// `None` when no label says of which placement it is.
    pub(crate) fn of(decision: &PlacementDecision) -> Option<Self> {
        let placement = decision.labels().get(labels::PLACEMENT)?;
        let decided = decision.status.iter().flat_map(|status| &status.decisions);
        Some(Self {
            placement: ObjectKey::new(decision.namespace().unwrap_or_default(), placement.clone()),
            clusters: decided.map(|decided| decided.cluster_name.clone()).filter(|name| !name.is_empty()).collect(),
        })
    }
}

/// What matters of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cluster {
    pub(crate) is_deleting: bool,
    /// A cluster that is accepted has, or is about to get, the namespace for its add-ons.
    pub(crate) is_accepted: bool,
    /// Those that its add-ons get too.
    pub(crate) annotations: Annotations,
}

impl Cluster {
    pub(crate) fn of(cluster: &ManagedCluster) -> Self {
        let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        Self {
            is_deleting: write::is_deleting(cluster),
            is_accepted: conditions::is_true(conditions, types::cluster::HUB_ACCEPTED),
            annotations: annotations::of_cluster(cluster),
        }
    }
}

/// What matters of a work of an add-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) name: String,
    /// The ManagedClusterAddOn.
    pub(crate) addon: ObjectKey,
    /// Whether it is in the namespace of another cluster, which hosts the add-on's agent.
    pub(crate) is_hosted: bool,
    /// Whether it was made without a configuration.
    pub(crate) is_plain: bool,
    /// Whether it is applied and available as it stands now.
    pub(crate) is_ready: bool,
}

impl Work {
    pub(crate) fn of(work: &ManifestWork) -> Option<Self> {
        let labels = work.labels();
        let host = labels.get(labels::ADDON_NAMESPACE).filter(|namespace| !namespace.is_empty());
        let namespace = host.cloned().or_else(|| work.namespace())?;
        let hash = work.annotations().get(CONFIG_SPEC_HASH);
        Some(Self {
            name: work.name_any(),
            addon: ObjectKey::new(namespace, labels.get(labels::ADDON_NAME)?.clone()),
            is_hosted: host.is_some(),
            is_plain: hash.is_none_or(|hash| hash.trim() == "{}"),
            is_ready: is_ready(work),
        })
    }
}

fn is_ready(work: &ManifestWork) -> bool {
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let holds = |type_| {
        let found = conditions::find(conditions, type_).filter(|found| found.status == status::TRUE);
        found.is_some_and(|found| found.observed_generation == work.metadata.generation)
    };
    holds(types::work::APPLIED) && holds(types::work::AVAILABLE)
}

/// Whether the hub has said that the add-on is configured.
pub(crate) fn is_configured(addon: &ManagedClusterAddOn) -> bool {
    let conditions = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions::is_true(conditions, types::addon::CONFIGURED)
}
