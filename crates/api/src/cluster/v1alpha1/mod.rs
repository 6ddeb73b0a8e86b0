//! `cluster.open-cluster-management.io/v1alpha1`: [`ClusterClaim`], [`AddOnPlacementScore`], and how changes roll out.

mod claim;
mod rollout;
mod score;

pub use claim::{ClusterClaim, ClusterClaimSpec};
pub use rollout::{
    MandatoryDecisionGroup, RolloutAll, RolloutProgressive, RolloutProgressivePerGroup, RolloutStrategy, RolloutType,
};
pub use score::{AddOnPlacementScore, AddOnPlacementScoreItem, AddOnPlacementScoreStatus};
