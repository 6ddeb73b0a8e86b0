//! The fields of objects that the add-on controllers depend on.

use std::sync::Arc;

use kube::ResourceExt as _;
use ocm_api::{
    addon::v1alpha1::{ClusterManagementAddOn, InstallStrategyType, ManagedClusterAddOn, PlacementStrategy},
    annotations::{ADDON_LIFECYCLE, ADDON_LIFECYCLE_MANAGER, CONFIG_SPEC_HASH},
    cluster::v1::ManagedCluster,
    conditions::{self as types, status},
    labels,
    work::v1::ManifestWork,
};
use ocm_runtime::{ObjectKey, conditions, write};

use super::{
    annotations::{self, Annotations},
    refusal,
};
use crate::rollout;

/// The relevant fields of a ClusterManagementAddOn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Management {
    pub(crate) uid: Arc<str>,
    pub(crate) strategy: Strategy,
    /// What it asks for on all clusters and this hub does not support.
    pub(crate) refusal: Option<Arc<str>>,
}

/// Who decides where an add-on is installed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Strategy {
    /// People or programs that create it in the namespace of a cluster.
    Manual,
    /// The hub: it is installed on the clusters of these placements and on no others. If several placements choose a
    /// cluster, the last one counts.
    Placements(Vec<FollowedPlacement>),
}

/// A placement on whose clusters an add-on is installed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FollowedPlacement {
    pub(crate) placement: ObjectKey,
    pub(crate) rollout: rollout::Strategy,
    /// What is asked for on its clusters and this hub does not support.
    pub(crate) refusal: Option<Arc<str>>,
}

impl Management {
    /// `None` if the hub does not manage the add-on: it has a manager of its own, or is being deleted.
    pub(crate) fn of(management: &ClusterManagementAddOn) -> Option<Self> {
        let is_ours = is_managed(management) && !write::is_deleting(management);
        is_ours.then(|| Self {
            uid: management.uid().unwrap_or_default().into(),
            strategy: Strategy::of(management),
            refusal: refusal::of_all(management).map(Into::into),
        })
    }

    /// The placements that it follows; none when it is installed by hand.
    pub(crate) fn followed(&self) -> &[FollowedPlacement] {
        match &self.strategy {
            Strategy::Manual => &[],
            Strategy::Placements(followed) => followed,
        }
    }

    pub(crate) fn follows_placements(&self) -> bool {
        matches!(self.strategy, Strategy::Placements(_))
    }
}

/// Whether the hub manages the add-on. Any other value than the hub's, the empty one included, means that it must not.
fn is_managed(management: &ClusterManagementAddOn) -> bool {
    management.annotations().get(ADDON_LIFECYCLE).is_none_or(|value| value == ADDON_LIFECYCLE_MANAGER)
}

impl Strategy {
    fn of(management: &ClusterManagementAddOn) -> Self {
        match &management.spec.install_strategy {
            Some(strategy) if strategy.type_ == Some(InstallStrategyType::Placements) => {
                let placements = strategy.placements.iter().enumerate();
                Self::Placements(
                    placements.map(|(index, placement)| FollowedPlacement::of(management, index, placement)).collect(),
                )
            }
            _ => Self::Manual,
        }
    }
}

impl FollowedPlacement {
    fn of(management: &ClusterManagementAddOn, index: usize, placement: &PlacementStrategy) -> Self {
        Self {
            placement: ObjectKey::new(placement.namespace.clone(), placement.name.clone()),
            // What cannot be read is refused, so nothing is rolled out by it.
            rollout: rollout::Strategy::read(&placement.rollout_strategy).unwrap_or_default(),
            refusal: refusal::of_placement(management, index, placement).map(Into::into),
        }
    }
}

/// The relevant fields of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cluster {
    pub(crate) is_deleting: bool,
    /// Whether it is accepted, so that the namespace for its add-ons exists or is being created.
    pub(crate) is_accepted: bool,
    /// Those that are copied to its add-ons.
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

/// The relevant fields of a work of an add-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) name: String,
    /// The ManagedClusterAddOn.
    pub(crate) addon: ObjectKey,
    /// Whether it is in the namespace of another cluster, which hosts the add-on's agent.
    pub(crate) is_hosted: bool,
    /// Whether it was made without a configuration.
    pub(crate) is_plain: bool,
    /// Whether its current generation is applied and available.
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

/// Whether the add-on has condition Configured.
pub(crate) fn is_configured(addon: &ManagedClusterAddOn) -> bool {
    let conditions = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions::is_true(conditions, types::addon::CONFIGURED)
}
