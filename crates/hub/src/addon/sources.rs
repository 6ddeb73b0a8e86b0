//! The informers of the add-on controllers, one per kind.

use ocm_api::{addon::v1alpha1::ClusterManagementAddOn, labels, work::v1::ManifestWork};
use ocm_runtime::{Cache, Informers, informer::WatchFilter};

pub(crate) use crate::caches::addons;

pub(crate) fn managements(informers: &Informers) -> Cache<ClusterManagementAddOn> {
    informers.all(WatchFilter::all())
}

/// The works of add-ons, and no others.
pub(crate) fn works(informers: &Informers) -> Cache<ManifestWork> {
    informers.all(WatchFilter::labelled(labels::ADDON_NAME))
}
