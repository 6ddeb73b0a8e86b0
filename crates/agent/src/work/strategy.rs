//! How an object is written: `updateStrategy` of the entry of `spec.manifestConfigs` that decides on it.

use ocm_api::work::v1::UpdateStrategyType;

use super::options::ManifestOptions;

/// How an object is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Strategy {
    /// Created, and updated whenever it differs from its manifest.
    Update,
    /// Created, and never updated.
    CreateOnly,
    /// Only read.
    ReadOnly,
}

/// Why it is not known how to write an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StrategyError {
    #[error(
        "{path}.type is {value:?}, which this agent does not know: use Update, CreateOnly, ServerSideApply or ReadOnly"
    )]
    Unknown { path: String, value: String },
}

impl Strategy {
    pub(super) fn of(options: &ManifestOptions) -> Result<Self, StrategyError> {
        match &options.strategy.type_ {
            UpdateStrategyType::Update => Ok(Self::Update),
            UpdateStrategyType::CreateOnly => Ok(Self::CreateOnly),
            UpdateStrategyType::ReadOnly => Ok(Self::ReadOnly),
            other => Err(StrategyError::Unknown { path: path(options), value: other.to_string() }),
        }
    }
}

/// The field that decides on the strategy.
fn path(options: &ManifestOptions) -> String {
    format!("spec.manifestConfigs[{}].updateStrategy", options.strategy_at.unwrap_or_default())
}
