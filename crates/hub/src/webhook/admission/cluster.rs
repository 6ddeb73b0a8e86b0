//! ManagedClusters: defaults, their names and URLs, who may accept them, and who may move them between cluster sets.

use jiff::Timestamp;
use k8s_openapi::{api::authorization::v1::ResourceAttributes, apimachinery::pkg::apis::meta::v1::Time};
use kube::ResourceExt;
use ocm_api::{
    authorization::{ACCEPT, JOIN, MANAGED_CLUSTER_SETS, MANAGED_CLUSTERS, REGISTER_GROUP},
    cluster::{GROUP, v1::ManagedCluster},
    cluster_names::reserved_cluster_name,
    labels::CLUSTER_SET,
    namespaces::DEFAULT_CLUSTER_SET,
};

use super::{Change, access::Right, refusal::Refusal, taints};

/// The cluster with the times of its taints, and in the default cluster set if it is in none.
pub(super) fn complete(
    change: &Change<ManagedCluster>,
    joins_default: bool,
    now: Timestamp,
) -> Result<ManagedCluster, Refusal> {
    let mut cluster = change.new.clone();
    let old = change.old.as_ref().map(|old| old.spec.taints.as_slice());
    let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    cluster.spec.taints = taints::timed(old, &change.new.spec.taints, &now).map_err(|keys| times_of(&keys))?;
    if joins_default && set_of(&cluster).is_empty() {
        cluster.labels_mut().insert(CLUSTER_SET.into(), DEFAULT_CLUSTER_SET.into());
    }
    Ok(cluster)
}

fn times_of(keys: &[String]) -> Refusal {
    Refusal::invalid(format!(
        "spec.taints: the hub sets timeAdded, so leave it out (of an unchanged taint it may be sent as it is): {}",
        keys.join(", ")
    ))
}

/// Refuses what does not depend on the requester. What has been refused since it was written does not stop other changes.
pub(super) fn check(change: &Change<ManagedCluster>) -> Result<(), Refusal> {
    let (old, new) = (change.old.as_ref(), &change.new);
    let mut errors = Vec::new();
    if old.is_none() || accepts(change) {
        // The API server has not generated a name yet.
        let name = new.metadata.name.as_deref();
        let reserved = name.and_then(|name| reserved_cluster_name(name).map(|cause| (name, cause)));
        let error = |(name, cause)| format!("metadata.name: {name} cannot be the name of a cluster: {cause}");
        errors.extend(reserved.map(error));
    }
    let configs = &new.spec.managed_cluster_client_configs;
    if old.is_none_or(|old| old.spec.managed_cluster_client_configs != *configs) {
        errors.extend(configs.iter().enumerate().filter(|(_, config)| !is_https(&config.url)).map(
            |(index, config)| {
                format!(
                    "spec.managedClusterClientConfigs[{index}].url: {:?} is not of the form https://HOST:PORT",
                    config.url
                )
            },
        ));
    }
    let lease = new.spec.lease_duration_seconds;
    if lease.is_some_and(|seconds| seconds < 0) && old.is_none_or(|old| old.spec.lease_duration_seconds != lease) {
        errors.push("spec.leaseDurationSeconds: must not be negative; 0 is the default of 60".to_owned());
    }
    if errors.is_empty() { Ok(()) } else { Err(Refusal::invalid(errors.join("; "))) }
}

fn is_https(url: &str) -> bool {
    let uri = url.parse::<axum::http::Uri>().ok();
    uri.is_some_and(|uri| uri.scheme_str() == Some("https") && uri.host().is_some_and(|host| !host.is_empty()))
}

/// Whether the cluster is accepted by this change.
pub(super) fn accepts(change: &Change<ManagedCluster>) -> bool {
    change.new.spec.hub_accepts_client && !change.old.as_ref().is_some_and(|old| old.spec.hub_accepts_client)
}

/// What the requester must be allowed to do.
pub(super) fn rights(change: &Change<ManagedCluster>) -> Vec<Right> {
    let name = change.new.name_any();
    let acceptance = accepts(change).then(|| may_accept(&name));
    let (old, new) = (change.old.as_ref().map(set_of).unwrap_or_default(), set_of(&change.new));
    let sets = [(old, "take it out of"), (new, "put it into")];
    let moves = sets.into_iter().filter(|(set, _)| old != new && !set.is_empty());
    let ownership = changes_owners(change).then(|| may_delete(&name));
    acceptance.into_iter().chain(ownership).chain(moves.map(|(set, what)| may_move(&name, set, what))).collect()
}

/// Whether others own the cluster after this change than before. Kubernetes deletes an object whose owners do not exist.
fn changes_owners(change: &Change<ManagedCluster>) -> bool {
    change.old.as_ref().map(ResourceExt::owner_references).unwrap_or_default() != change.new.owner_references()
}

fn set_of(cluster: &ManagedCluster) -> &str {
    cluster.labels().get(CLUSTER_SET).map(String::as_str).unwrap_or_default()
}

fn may_accept(cluster: &str) -> Right {
    Right {
        attributes: ResourceAttributes {
            group: Some(REGISTER_GROUP.into()),
            resource: Some(MANAGED_CLUSTERS.into()),
            subresource: Some(ACCEPT.into()),
            verb: Some("update".into()),
            name: Some(cluster.into()),
            ..ResourceAttributes::default()
        },
        refusal: format!(
            "accept cluster {cluster} (set spec.hubAcceptsClient): leave that to an administrator of the hub (clusteradm accept \
             --clusters {cluster}), or have one grant the verb update on {MANAGED_CLUSTERS}/{ACCEPT} in the API group \
             {REGISTER_GROUP}"
        ),
    }
}

/// As the admission plugin OwnerReferencesPermissionEnforcement of Kubernetes requires it, which is off by default.
fn may_delete(cluster: &str) -> Right {
    Right {
        attributes: ResourceAttributes {
            group: Some(GROUP.into()),
            resource: Some(MANAGED_CLUSTERS.into()),
            verb: Some("delete".into()),
            name: Some(cluster.into()),
            ..ResourceAttributes::default()
        },
        refusal: format!(
            "change metadata.ownerReferences of cluster {cluster}, since Kubernetes deletes a cluster whose owners do not exist: \
             leave them as they are, or have an administrator of the hub grant the verb delete on {MANAGED_CLUSTERS} in the API \
             group {GROUP}"
        ),
    }
}

fn may_move(cluster: &str, set: &str, what: &str) -> Right {
    Right {
        attributes: ResourceAttributes {
            group: Some(GROUP.into()),
            resource: Some(MANAGED_CLUSTER_SETS.into()),
            subresource: Some(JOIN.into()),
            verb: Some("create".into()),
            name: Some(set.into()),
            ..ResourceAttributes::default()
        },
        refusal: format!(
            "move cluster {cluster} between cluster sets ({what} {set}): leave the label {CLUSTER_SET} as it is, or have an \
             administrator of the hub grant the verb create on {MANAGED_CLUSTER_SETS}/{JOIN} in the API group {GROUP} for {set}"
        ),
    }
}
