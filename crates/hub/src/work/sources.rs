//! The informers of the work controllers.

use ocm_api::{labels, work::v1alpha1::ManifestWorkReplicaSet};
use ocm_runtime::{Cache, Informers, informer::WatchFilter};

use super::kinds::{FinishingWork, ReplicaWork};

pub(crate) fn sets(informers: &Informers) -> Cache<ManifestWorkReplicaSet> {
    informers.all(WatchFilter::all())
}

/// The works of replica sets, and no others.
pub(crate) fn works(informers: &Informers) -> Cache<ReplicaWork> {
    informers.all(WatchFilter::labelled(labels::MANIFEST_WORK_REPLICA_SET))
}

/// All other works.
pub(crate) fn other_works(informers: &Informers) -> Cache<FinishingWork> {
    informers.all(WatchFilter::labelled(format!("!{}", labels::MANIFEST_WORK_REPLICA_SET)))
}
