//! `cluster.open-cluster-management.io/v1beta1`: [`Placement`] and [`PlacementDecision`].

mod placement;
mod priority;
mod status;

pub use placement::{
    ClusterCelSelector, ClusterClaimSelector, ClusterPredicate, ClusterSelector, DecisionGroup, DecisionStrategy,
    GroupClusterSelector, GroupStrategy, Placement, PlacementSortBy, PlacementSpec, Toleration, TolerationOperator,
};
pub use priority::{
    AddOnScore, PrioritizerConfig, PrioritizerPolicy, PrioritizerPolicyMode, ScoreCoordinate, ScoreCoordinateType,
    SpreadConstraintsTerm, SpreadPolicy, TopologyKeyType, UnsatisfiableMaxSkewAction,
};
pub use status::{ClusterDecision, DecisionGroupStatus, PlacementDecision, PlacementDecisionStatus, PlacementStatus};
