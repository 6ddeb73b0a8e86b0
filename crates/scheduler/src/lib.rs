//! Which clusters a placement selects, and why.
//!
//! [`schedule`] decides: a pure function of a [`Snapshot`] and the time. It determines the sets that the placement may select
//! from, filters their clusters (predicates, then taints), scores those that are left, selects the best, and splits them into
//! groups and decisions of a hundred clusters. [`explain`] repeats that and returns for each cluster what removed it, or its
//! scores, what they were computed from, and its rank.
//!
//! A hub keeps the parts of its snapshots up to date by informers. A program that asks once reads API objects, from whatever
//! hub there is, and calls [`Snapshot::of`]:
//!
//! ```
//! use ocm_api::cluster::{v1::ManagedCluster, v1beta1::Placement, v1beta2::{ManagedClusterSet, ManagedClusterSetBinding}};
//! use ocm_scheduler::{Objects, Snapshot, Verdict, explain};
//! use serde_json::{from_value, json};
//!
//! let placement: Placement = from_value(json!({
//!     "metadata": {"name": "web", "namespace": "apps"},
//!     "spec": {"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prod"}}}}]},
//! }))?;
//! let objects = Objects {
//!     clusters: &[ManagedCluster::new("east", Default::default())],
//!     sets: &[from_value::<ManagedClusterSet>(json!({
//!         "metadata": {"name": "global"},
//!         "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}},
//!     }))?],
//!     bindings: &[from_value::<ManagedClusterSetBinding>(json!({
//!         "metadata": {"name": "global", "namespace": "apps"}, "spec": {"clusterSet": "global"},
//!     }))?],
//!     ..Objects::default()
//! };
//! let now = "2026-01-01T00:00:00Z".parse()?;
//! let explanation = explain(&Snapshot::of(&placement, &objects, now), now);
//! let Verdict::Removed { filter, reason } = &explanation.clusters[0].verdict else { panic!() };
//! assert_eq!(*filter, "Predicate");
//! assert_eq!(
//!     reason.to_string(),
//!     "spec.predicates[0].requiredClusterSelector.labelSelector: env=prod is not met, env is not set"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A spec is read once into [`Rules`]; an error in a part of it counts only when that part is used. A filter has
//! two forms: `admits`, which allocates nothing and is called for each cluster and placement, and `why_not`, which explains.

#![warn(missing_docs)]

mod change;
mod eligible;
mod explain;
pub mod facts;
mod group;
#[cfg(test)]
mod properties;
mod rules;
mod schedule;
mod sets;
mod snapshot;

pub use self::{
    change::{Change, smallest_change},
    eligible::Eligible,
    explain::{ClusterExplanation, Explanation, Filtered, Reason, Score, Verdict, WeightedPrioritizer, explain},
    facts::{AddOnScores, Cluster, Clusters, Document, Name, Scores},
    group::{DesiredDecision, Group, Listed, count, slice},
    rules::{Intolerance, Mismatch, Problem, Rules, taint_as_text},
    schedule::{
        Candidate, ClusterCounts, Input, Prioritizer, Schedule, Selection, Step, fits, schedule, schedule_in_steps,
    },
    sets::{Set, SetError, SetSelector, Sets, sets_of},
    snapshot::{Objects, Snapshot},
};
