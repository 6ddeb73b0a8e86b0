//! The fields of a cluster that placements depend on.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Time};
use kube_core::ResourceExt as _;
use ocm_api::cluster::v1::{ManagedCluster, ManagedClusterStatus, Taint};
use ocm_apimachinery::quantity;

/// The name of a cluster or a set; clones share the text.
pub type Name = Arc<str>;
/// Labels, or claims by name.
pub type Labels = BTreeMap<String, String>;
/// Every cluster, by name.
pub type Clusters = BTreeMap<Name, Arc<Cluster>>;

/// The fields of a cluster that placements depend on. As long as they do not change, no decision does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    /// Its labels.
    pub labels: Labels,
    /// The values of its claims, by name.
    pub claims: Labels,
    /// Its taints, each with the time from which a toleration counts.
    pub taints: Vec<Taint>,
    /// How much of a resource pods may use.
    pub allocatable: Allocatable,
    /// The sets it belongs to; none once it is being deleted.
    pub sets: Vec<Name>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
}

/// How much of a resource pods may use; `None` if the cluster does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Allocatable {
    /// In cores.
    pub cpu: Option<f64>,
    /// In bytes.
    pub memory: Option<f64>,
}

impl Cluster {
    /// Reads a cluster, except its sets, which the index knows. `known` are the taints it had until `now`.
    #[must_use]
    pub fn of(cluster: &ManagedCluster, known: &[Taint], now: Timestamp) -> Self {
        let status = cluster.status.as_ref();
        let claims = status.iter().flat_map(|status| &status.cluster_claims);
        Self {
            labels: cluster.labels().clone(),
            claims: claims.map(|claim| (claim.name.clone(), claim.value.clone())).collect(),
            taints: cluster.spec.taints.iter().map(|taint| dated(taint, known, now)).collect(),
            allocatable: status.map(Allocatable::of).unwrap_or_default(),
            sets: Vec::new(),
            is_deleting: cluster.metadata.deletion_timestamp.is_some(),
        }
    }
}

/// The taint with the time from which a toleration counts. Without `timeAdded`, that is when the hub first saw the taint: as
/// a time long ago, it would end every toleration at once.
fn dated(taint: &Taint, known: &[Taint], now: Timestamp) -> Taint {
    let is_same =
        |known: &&Taint| (&known.key, &known.value, &known.effect) == (&taint.key, &taint.value, &taint.effect);
    let first_seen = || known.iter().find(is_same).and_then(|known| known.time_added.clone());
    Taint { time_added: taint.time_added.clone().or_else(first_seen).or(Some(Time(now))), ..taint.clone() }
}

impl Allocatable {
    fn of(status: &ManagedClusterStatus) -> Self {
        Self { cpu: amount(status, "cpu"), memory: amount(status, "memory") }
    }
}

/// Only resources in both the capacity and the allocatable resources count.
fn amount(status: &ManagedClusterStatus, resource: &str) -> Option<f64> {
    parse(status.capacity.get(resource)?)?;
    parse(status.allocatable.get(resource)?)
}

#[expect(clippy::cast_precision_loss, reason = "amounts are compared, not counted")]
fn parse(amount: &Quantity) -> Option<f64> {
    let parsed: quantity::Quantity = amount.0.parse().ok()?;
    Some(parsed.nanos() as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_resource_counts_when_it_is_in_both_capacity_and_allocatable() {
        let status = json!({"capacity": {"cpu": "4", "memory": "x"}, "allocatable": {"cpu": "3500m", "memory": "1Gi"}});
        let status: ManagedClusterStatus = serde_json::from_value(status).unwrap();
        assert_eq!(Allocatable::of(&status), Allocatable { cpu: Some(3.5), memory: None });
    }
}
