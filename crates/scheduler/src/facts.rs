//! The fields of a cluster that placements depend on.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::ResourceExt as _;
use ocm_api::cluster::{
    v1::{ManagedCluster, ManagedClusterStatus, Taint},
    v1alpha1::{AddOnPlacementScore, AddOnPlacementScoreItem},
};
use ocm_apimachinery::quantity;

/// The name of a cluster or a set; clones share the text.
pub type Name = Arc<str>;
/// Labels, or claims by name.
pub type Labels = BTreeMap<String, String>;
/// Every cluster, by name.
pub type Clusters = BTreeMap<Name, Arc<Cluster>>;

/// The scores that add-ons give a cluster, by the name of the AddOnPlacementScore.
pub type Scores = BTreeMap<String, Arc<AddOnScores>>;

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
    /// The scores in its AddOnPlacementScores.
    pub scores: Scores,
    /// The whole object, for CEL selectors; `None` if no placement has any.
    pub document: Option<Arc<Document>>,
}

/// An AddOnPlacementScore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddOnScores {
    /// The scores, in their order.
    pub scores: Vec<AddOnPlacementScoreItem>,
    /// Until when they count; `None` for ever.
    pub valid_until: Option<Timestamp>,
}

/// A cluster as CEL selectors read it. A changed one is another document, so results can be kept for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    json: Arc<[u8]>,
    scores: Scores,
}

/// How much of a resource pods may use; `None` if the cluster does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Allocatable {
    /// In cores.
    pub cpu: Option<f64>,
    /// In bytes.
    pub memory: Option<f64>,
}

impl AddOnScores {
    /// Reads the scores.
    #[must_use]
    pub fn of(object: &AddOnPlacementScore) -> Self {
        let status = object.status.clone().unwrap_or_default();
        Self { scores: status.scores, valid_until: status.valid_until.map(|time| time.0) }
    }

    /// The score of that name.
    #[must_use]
    pub fn score(&self, name: &str) -> Option<i32> {
        self.scores.iter().find(|score| score.name == name).map(|score| score.value)
    }

    /// Until when they counted; `None` if they still do.
    #[must_use]
    pub fn expired(&self, now: Timestamp) -> Option<Timestamp> {
        self.valid_until.filter(|end| now > *end)
    }

    /// When they no longer count; `None` if never, or if that is over.
    #[must_use]
    pub fn expires(&self, now: Timestamp) -> Option<Timestamp> {
        let end = self.valid_until.filter(|end| now <= *end)?;
        // They still count at this moment, as in OCM.
        end.checked_add(SignedDuration::from_millis(1)).ok()
    }
}

impl Document {
    /// A ManagedCluster as JSON, and the scores of its add-ons.
    #[must_use]
    pub fn new(json: Arc<[u8]>, scores: Scores) -> Self {
        Self { json, scores }
    }

    /// A ManagedCluster, as the API server would send it but for managed fields.
    pub(crate) fn of(cluster: &ManagedCluster, scores: Scores) -> serde_json::Result<Self> {
        let mut cluster = cluster.clone();
        cluster.metadata.managed_fields = None;
        Ok(Self::new(serde_json::to_vec(&cluster)?.into(), scores))
    }

    /// The same object with other scores.
    #[must_use]
    pub fn with_scores(&self, scores: Scores) -> Self {
        Self::new(self.json.clone(), scores)
    }

    pub(crate) fn json(&self) -> &[u8] {
        &self.json
    }

    pub(crate) fn scores(&self) -> &Scores {
        &self.scores
    }
}

impl Cluster {
    /// Whether it is the same but for the document, on which only CEL selectors depend.
    #[must_use]
    pub fn is_same_but_for_document(&self, other: &Self) -> bool {
        let Self { labels, claims, taints, allocatable, sets, is_deleting, scores, document: _ } = self;
        *labels == other.labels
            && *claims == other.claims
            && *taints == other.taints
            && *allocatable == other.allocatable
            && *sets == other.sets
            && *is_deleting == other.is_deleting
            && *scores == other.scores
    }

    /// Reads a cluster, except its sets, scores and document, which are known elsewhere. `known` are the taints it had until `now`.
    #[must_use]
    pub fn of(cluster: &ManagedCluster, known: &[Taint], now: Timestamp) -> Self {
        let status = cluster.status.as_ref();
        let claims = status.iter().flat_map(|status| &status.cluster_claims);
        Self {
            labels: cluster.labels().clone(),
            claims: claims.map(|claim| (claim.name.clone(), claim.value.clone())).collect(),
            taints: cluster.spec.taints.iter().map(|taint| dated(taint, known, now)).collect(),
            allocatable: status.map(Allocatable::of).unwrap_or_default(),
            is_deleting: cluster.metadata.deletion_timestamp.is_some(),
            ..Self::default()
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

/// Only resources in both the capacity and the allocatable resources count. With other floats than OCM's, scores would differ by one.
fn amount(status: &ManagedClusterStatus, resource: &str) -> Option<f64> {
    quantity::approximate(&status.capacity.get(resource)?.0)?;
    quantity::approximate(&status.allocatable.get(resource)?.0)
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
