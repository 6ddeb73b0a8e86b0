//! ManagedClusterSetBindings: their names, and who may bind a set.

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::ResourceExt as _;
use ocm_api::{
    authorization::{BIND, MANAGED_CLUSTER_SETS},
    cluster::{GROUP, v1beta2::ManagedClusterSetBinding},
};

use super::{Change, access::Right, refusal::Refusal};

/// Refuses a binding that does not have the name of its set. Only its owner is trusted to have bound it, so a binding that is
/// changed to another set counts as new.
pub(super) fn check(change: &Change<ManagedClusterSetBinding>) -> Result<(), Refusal> {
    let (name, set) = (change.new.name_any(), &change.new.spec.cluster_set);
    if !binds(change) || name == *set {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "metadata.name: a ManagedClusterSetBinding has the name of its set: rename {name} to {set}, or set spec.clusterSet to \
         {name}"
    )))
}

/// What the requester must be allowed to do.
pub(super) fn rights(change: &Change<ManagedClusterSetBinding>) -> Option<Right> {
    let set = &change.new.spec.cluster_set;
    binds(change).then(|| Right {
        attributes: ResourceAttributes {
            group: Some(GROUP.into()),
            resource: Some(MANAGED_CLUSTER_SETS.into()),
            subresource: Some(BIND.into()),
            verb: Some("create".into()),
            name: Some(set.clone()),
            ..ResourceAttributes::default()
        },
        refusal: format!(
            "bind cluster set {set} to a namespace: have an administrator of the hub grant the verb create on \
             {MANAGED_CLUSTER_SETS}/{BIND} in the API group {GROUP} for that set"
        ),
    })
}

fn binds(change: &Change<ManagedClusterSetBinding>) -> bool {
    change.old.as_ref().is_none_or(|old| old.spec.cluster_set != change.new.spec.cluster_set)
}
