//! `work.open-cluster-management.io/v1`: [`ManifestWork`] on the hub, [`AppliedManifestWork`] on the managed cluster.

mod applied;
mod config;
mod manifest;
mod rules;
mod status;
mod work;

pub use applied::{
    AppliedManifestResourceMeta, AppliedManifestWork, AppliedManifestWorkSpec, AppliedManifestWorkStatus,
};
pub use config::{
    IgnoreField, IgnoreFieldsCondition, ManifestConfigOption, ResourceIdentifier, ServerSideApplyConfig,
    UpdateStrategy, UpdateStrategyType,
};
pub use manifest::Manifest;
pub use rules::{ConditionRule, ConditionRuleType, FeedbackRule, FeedbackScrapeType, FeedbackType, JsonPath};
pub use status::{
    FeedbackValue, FieldValue, ManifestCondition, ManifestResourceMeta, ManifestResourceStatus, ManifestWorkStatus,
    StatusFeedbackResult, ValueType,
};
pub use work::{
    DeleteOption, ManifestWork, ManifestWorkExecutor, ManifestWorkExecutorSubject, ManifestWorkExecutorSubjectType,
    ManifestWorkSpec, ManifestWorkSubjectServiceAccount, ManifestsTemplate, OrphaningRule, PropagationPolicy,
    SelectivelyOrphan,
};
