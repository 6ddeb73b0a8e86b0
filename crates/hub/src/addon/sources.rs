//! The watches of the add-on controllers: one per kind, whoever asks.

use ocm_api::{
    addon::v1alpha1::ClusterManagementAddOn,
    cluster::v1beta1::{Placement, PlacementDecision},
    labels,
    work::v1::ManifestWork,
};
use ocm_runtime::{Cache, Watches, watch::Scope};

pub(crate) use crate::registration::sources::addons;

pub(crate) fn managements(watches: &Watches) -> Cache<ClusterManagementAddOn> {
    watches.all(Scope::all())
}

pub(crate) fn placements(watches: &Watches) -> Cache<Placement> {
    watches.all(Scope::all())
}

pub(crate) fn decisions(watches: &Watches) -> Cache<PlacementDecision> {
    watches.all(Scope::all())
}

/// The works of add-ons, and no others.
pub(crate) fn works(watches: &Watches) -> Cache<ManifestWork> {
    watches.all(Scope::labelled(labels::ADDON_NAME))
}
