//! What to do with a profile, and what it says of its cluster.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt as _;
use ocm_api::{
    cluster::v1::ManagedCluster,
    conditions::{
        cluster::{AVAILABLE, JOINED},
        cluster_profile,
    },
    labels::{CLUSTER_NAME, CLUSTER_PROFILE_MANAGER, CLUSTER_PROFILE_MANAGER_KEY, CLUSTER_PROFILE_SET, CLUSTER_SET},
    multicluster::v1alpha1::{ClusterManagerRef, ClusterProfile, ClusterProfileSpec, ClusterProfileStatus, Property},
};
use ocm_runtime::{conditions, write};

use super::{Observed, selection::Selected};
use crate::registration::status::condition;

/// The conditions of a profile, each with the one of the ManagedCluster that it repeats.
const CONDITIONS: [(&str, &str); 2] =
    [(cluster_profile::CONTROL_PLANE_HEALTHY, AVAILABLE), (cluster_profile::JOINED, JOINED)];

/// What to do with a profile, besides its status.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Nothing: it is not known whether the namespace may use the cluster, or there is nothing to write and no status.
    None,
    Create(Box<ClusterProfile>),
    /// It has its labels.
    Keep,
    Label(Box<ClusterProfile>),
    Delete,
    /// The profile is not ours.
    Report,
}

pub(super) fn plan(observed: &Observed) -> Step {
    match (observed.selected, &observed.cluster, &observed.profile) {
        (Selected::Yes, Some(cluster), None) => Step::Create(Box::new(new(cluster, &observed.namespace))),
        (Selected::Yes, Some(_), Some(profile)) if !is_ours(profile) => Step::Report,
        (Selected::Yes, Some(cluster), Some(profile)) => label(profile, cluster),
        (Selected::No, _, Some(profile)) if is_ours(profile) && !write::is_deleting(profile.as_ref()) => Step::Delete,
        _ => Step::None,
    }
}

/// Whether the hub made the profile. Its manager cannot be changed.
pub(super) fn is_ours(profile: &ClusterProfile) -> bool {
    let label = profile.labels().get(CLUSTER_PROFILE_MANAGER_KEY).map(String::as_str);
    label == Some(CLUSTER_PROFILE_MANAGER) && profile.spec.cluster_manager.name == CLUSTER_PROFILE_MANAGER
}

fn new(cluster: &ManagedCluster, namespace: &str) -> ClusterProfile {
    let name = cluster.name_any();
    let spec = ClusterProfileSpec {
        display_name: Some(name.clone()),
        cluster_manager: ClusterManagerRef { name: CLUSTER_PROFILE_MANAGER.into() },
    };
    let mut profile = ClusterProfile::new(namespace, &name, spec);
    profile.metadata.labels = Some(labels(cluster));
    profile
}

fn labels(cluster: &ManagedCluster) -> BTreeMap<String, String> {
    let set = cluster.labels().get(CLUSTER_SET).cloned().unwrap_or_default();
    [
        (CLUSTER_PROFILE_MANAGER_KEY, CLUSTER_PROFILE_MANAGER.to_owned()),
        (CLUSTER_NAME, cluster.name_any()),
        (CLUSTER_PROFILE_SET, set),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

fn label(profile: &ClusterProfile, cluster: &ManagedCluster) -> Step {
    let wanted = labels(cluster);
    if wanted.iter().all(|(key, value)| profile.labels().get(key) == Some(value)) {
        return Step::Keep;
    }
    let mut new = profile.clone();
    new.labels_mut().extend(wanted);
    Step::Label(Box::new(new))
}

/// The status of a profile. What others write into it is kept.
pub(super) fn status(profile: &ClusterProfile, cluster: &ManagedCluster, now: Timestamp) -> ClusterProfileStatus {
    let mut status = profile.status.clone().unwrap_or_default();
    let known = cluster.status.clone().unwrap_or_default();
    status.version.kubernetes = known.version.kubernetes;
    let properties = known.cluster_claims.into_iter();
    let properties =
        properties.map(|claim| Property { name: claim.name, value: claim.value, last_observed_time: None });
    status.properties = properties.collect();
    for (ours, of_cluster) in CONDITIONS {
        if let Some(found) = condition(cluster, of_cluster) {
            conditions::put(&mut status.conditions, copied(found, ours, now));
        }
    }
    status
}

fn copied(found: &Condition, type_: &str, now: Timestamp) -> Condition {
    let Condition { status, reason, message, .. } = found.clone();
    let last_transition_time = Time(now);
    Condition { type_: type_.into(), status, reason, message, observed_generation: None, last_transition_time }
}

/// For the event.
pub(super) fn name_taken(profile: &ClusterProfile) -> String {
    let (name, namespace) = (profile.name_any(), profile.namespace().unwrap_or_default());
    format!(
        "ManagedCluster {name} has no ClusterProfile in namespace {namespace}, since a ClusterProfile of this name exists \
         that the hub did not create: its label {CLUSTER_PROFILE_MANAGER_KEY} or its spec.clusterManager.name is not \
         {CLUSTER_PROFILE_MANAGER}. The hub leaves it alone. Delete it, and the hub creates its own."
    )
}
