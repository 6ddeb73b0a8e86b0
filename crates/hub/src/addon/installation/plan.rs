//! Whether an add-on is to be created, kept or deleted on a cluster.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use ocm_api::addon::v1alpha1::{ManagedClusterAddOn, ManagedClusterAddOnSpec};
use ocm_runtime::{ObjectKey, write};

use super::observe::Observed;
use crate::addon::{annotations, decision::DesiredState, facts};

/// The version that owner references name, regardless of the version that is written.
const OWNER_VERSION: &str = "addon.open-cluster-management.io/v1beta1";
/// Group and kind of the owner.
const OWNER_GROUP: &str = "addon.open-cluster-management.io/";
const OWNER_KIND: &str = "ClusterManagementAddOn";

/// What to do with one installation.
#[derive(Debug, PartialEq)]
pub(crate) enum Plan {
    Nothing,
    Create(Box<ManagedClusterAddOn>),
    Delete(Arc<ManagedClusterAddOn>),
    /// As it is, and as it should be.
    Keep(Arc<ManagedClusterAddOn>, Box<ManagedClusterAddOn>),
}

pub(super) fn plan(observed: &Observed) -> Plan {
    match (&observed.addon, observed.desired.state) {
        (Some(addon), _) if write::is_deleting(addon.as_ref()) => Plan::Nothing,
        (Some(addon), DesiredState::Absent { .. }) => Plan::Delete(addon.clone()),
        (Some(addon), DesiredState::Installed | DesiredState::Kept) => {
            Plan::Keep(addon.clone(), Box::new(owned(addon, observed)))
        }
        (None, DesiredState::Installed) => create(observed),
        (Some(_), DesiredState::Leaving { .. }) | (None, _) => Plan::Nothing,
    }
}

/// Not on a cluster that is gone or about to go: the add-on would be cleaned up, and be created again.
fn create(observed: &Observed) -> Plan {
    let Some(cluster) = observed.cluster.as_ref().filter(|cluster| !cluster.is_deleting) else { return Plan::Nothing };
    Plan::Create(Box::new(new_addon(&observed.key, &observed.desired.owner, cluster)))
}

fn new_addon(key: &ObjectKey, owner: &str, cluster: &facts::Cluster) -> ManagedClusterAddOn {
    let mut addon = ManagedClusterAddOn::new(&key.namespace, &key.name, ManagedClusterAddOnSpec::default());
    addon.metadata.owner_references = Some(vec![owner_reference(&key.name, owner, true)]);
    cluster.annotations.iter().for_each(|(name, value)| annotations::set(&mut addon, name, Some(value)));
    addon
}

/// The add-on with its ClusterManagementAddOn among its owners. Its manager waits for that, and Kubernetes deletes it with
/// the owner.
fn owned(addon: &ManagedClusterAddOn, observed: &Observed) -> ManagedClusterAddOn {
    let name = &observed.key.name;
    // An object has one controller at most: where somebody else is it, this is an owner like others.
    let others = addon.owner_references().iter().filter(|owner| !is_management(owner, name));
    let is_controlled = others.clone().any(|owner| owner.controller == Some(true));
    let owner = owner_reference(name, &observed.desired.owner, !is_controlled);
    let mut new = addon.clone();
    if !addon.owner_references().contains(&owner) {
        new.metadata.owner_references = Some(others.cloned().chain([owner]).collect());
    }
    new
}

fn is_management(owner: &OwnerReference, name: &str) -> bool {
    owner.kind == OWNER_KIND && owner.name == name && owner.api_version.starts_with(OWNER_GROUP)
}

fn owner_reference(name: &str, uid: &str, is_controller: bool) -> OwnerReference {
    OwnerReference {
        api_version: OWNER_VERSION.into(),
        kind: OWNER_KIND.into(),
        name: name.into(),
        uid: uid.into(),
        controller: Some(is_controller),
        block_owner_deletion: Some(true),
    }
}
