//! How an object is written: `updateStrategy` of the entry of `spec.manifestConfigs` that decides on it.

use ocm_api::{
    components,
    work::v1::{IgnoreField, UpdateStrategyType},
};

use super::{ignore_fields::IgnoreFieldsError, options::ManifestOptions};

/// The longest name of a field manager that the API server allows.
const LONGEST_MANAGER: usize = 128;

/// How an object is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Strategy {
    /// Created, and updated whenever it differs from its manifest.
    Update,
    /// Created, and never updated.
    CreateOnly,
    /// Merged by the API server.
    ServerSideApply(ServerSideApply),
    /// Only read.
    ReadOnly,
}

/// How an object is merged by the API server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServerSideApply {
    /// Whether fields are taken over from other field managers.
    pub force: bool,
    pub field_manager: String,
    pub ignored: Vec<IgnoreField>,
    /// The field `updateStrategy` of the work, for messages.
    pub path: String,
}

/// Why it is not known how to write an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StrategyError {
    #[error(
        "{path}.type is {value:?}, which this agent does not know: use Update, CreateOnly, ServerSideApply or ReadOnly"
    )]
    Unknown { path: String, value: String },
    #[error(
        "{path}.serverSideApply.fieldManager is {value:?}: it begins with {} and has at most {LONGEST_MANAGER} printable \
         characters",
        components::WORK_FIELD_MANAGER
    )]
    FieldManager { path: String, value: String },
    #[error("Failed to process ignoreFields: {path}: {error}")]
    IgnoreFields { path: String, error: IgnoreFieldsError },
}

impl Strategy {
    pub(super) fn of(options: &ManifestOptions) -> Result<Self, StrategyError> {
        match &options.strategy.type_ {
            UpdateStrategyType::Update => Ok(Self::Update),
            UpdateStrategyType::CreateOnly => Ok(Self::CreateOnly),
            UpdateStrategyType::ServerSideApply => ServerSideApply::of(options).map(Self::ServerSideApply),
            UpdateStrategyType::ReadOnly => Ok(Self::ReadOnly),
            UpdateStrategyType::Other(value) => {
                Err(StrategyError::Unknown { path: path(options), value: value.clone() })
            }
        }
    }
}

impl ServerSideApply {
    fn of(options: &ManifestOptions) -> Result<Self, StrategyError> {
        let (settings, path) = (options.strategy.server_side_apply.clone().unwrap_or_default(), path(options));
        let chosen = settings.field_manager.filter(|manager| !manager.is_empty());
        let field_manager = chosen.unwrap_or_else(|| components::WORK_FIELD_MANAGER.to_owned());
        if !is_field_manager(&field_manager) {
            return Err(StrategyError::FieldManager { path, value: field_manager });
        }
        Ok(Self { force: settings.force, field_manager, ignored: settings.ignore_fields, path })
    }
}

fn is_field_manager(name: &str) -> bool {
    let is_printable = |char: char| char == ' ' || char.is_ascii_graphic();
    name.starts_with(components::WORK_FIELD_MANAGER) && name.len() <= LONGEST_MANAGER && name.chars().all(is_printable)
}

/// The field that decides on the strategy.
fn path(options: &ManifestOptions) -> String {
    format!("spec.manifestConfigs[{}].updateStrategy", options.strategy_at.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(server_side_apply: &serde_json::Value) -> Result<Strategy, StrategyError> {
        let strategy = json!({"type": "ServerSideApply", "serverSideApply": server_side_apply});
        let strategy: ocm_api::work::v1::UpdateStrategy = serde_json::from_value(strategy).unwrap();
        Strategy::of(&ManifestOptions { strategy: strategy.into(), strategy_at: Some(1), ..ManifestOptions::default() })
    }

    #[test]
    fn the_field_manager_is_that_of_the_agent_unless_another_is_chosen() {
        for (settings, manager, force) in [
            (json!(null), "work-agent", false),
            (json!({}), "work-agent", false),
            (json!({"force": true, "fieldManager": "work-agent-two"}), "work-agent-two", true),
        ] {
            let Strategy::ServerSideApply(found) = of(&settings).unwrap() else { panic!("another strategy") };
            assert_eq!((found.field_manager.as_str(), found.force), (manager, force));
        }
    }

    #[test]
    fn a_field_manager_that_the_server_would_refuse_names_its_field() {
        for bad in ["kubectl", "work-agent\n", &format!("work-agent-{}", "x".repeat(128))] {
            let error = of(&json!({"fieldManager": bad})).unwrap_err().to_string();
            assert!(
                error.starts_with("spec.manifestConfigs[1].updateStrategy.serverSideApply.fieldManager"),
                "{error}"
            );
        }
    }
}
