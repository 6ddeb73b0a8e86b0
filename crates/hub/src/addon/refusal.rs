//! What people can ask of add-ons and this hub does not support yet: configurations, and rollouts other than all at once.
//!
//! Conditions name the field. An add-on that needs it is not installed, since it could do harm without its configuration;
//! where it is installed already, it stays.

use kube::ResourceExt as _;
use ocm_api::{
    addon::{
        NO_DEFAULT_CONFIG,
        v1alpha1::{
            AddOnConfig, ClusterManagementAddOn, ConfigMeta, InstallStrategyType, ManagedClusterAddOn,
            PlacementStrategy,
        },
    },
    cluster::v1alpha1::RolloutType,
};

/// What a ClusterManagementAddOn asks for on all clusters, as a sentence that names the field.
pub(crate) fn of_all(management: &ClusterManagementAddOn) -> Option<String> {
    let configs = management.spec.supported_configs.iter().enumerate();
    let default = configs.filter_map(|(index, config)| Some((index, asked_default(config)?))).next();
    let strategy = management.spec.install_strategy.as_ref().and_then(|strategy| strategy.type_.as_ref());
    match (default, strategy) {
        (Some((index, what)), _) => {
            Some(sentence(management, &format!("supportedConfigs[{index}].defaultConfig"), &what))
        }
        (None, Some(InstallStrategyType::Other(type_))) => {
            Some(sentence(management, "installStrategy.type", &format!("strategy {type_:?}")))
        }
        _ => None,
    }
}

/// Whether a ClusterManagementAddOn names a default configuration.
pub(crate) fn has_default(management: &ClusterManagementAddOn) -> bool {
    management.spec.supported_configs.iter().any(|config| asked_default(config).is_some())
}

/// What a ClusterManagementAddOn asks for on the clusters of its placement at `index`.
pub(crate) fn of_placement(
    management: &ClusterManagementAddOn,
    index: usize,
    placement: &PlacementStrategy,
) -> Option<String> {
    let field = |name: &str| format!("installStrategy.placements[{index}].{name}");
    if let Some(config) = placement.configs.first() {
        return Some(sentence(management, &field("configs"), &describe(config)));
    }
    // The settings of type All say how configurations roll out; without any they change nothing.
    match &placement.rollout_strategy.type_ {
        None | Some(RolloutType::All) => None,
        Some(type_) => {
            Some(sentence(management, &field("rolloutStrategy.type"), &format!("a rollout of type {type_}")))
        }
    }
}

/// What an add-on on one cluster asks for.
pub(crate) fn of_addon(addon: &ManagedClusterAddOn) -> Option<String> {
    let config = addon.spec.configs.first()?;
    Some(format!(
        "spec.configs of this ManagedClusterAddOn asks for {}, which this hub does not support yet. The add-on is not configured; \
         remove the field to have it without.",
        describe(config)
    ))
}

fn sentence(management: &ClusterManagementAddOn, field: &str, what: &str) -> String {
    format!(
        "spec.{field} of ClusterManagementAddOn {} asks for {what}, which this hub does not support yet. The add-on is not \
         installed on clusters that do not have it, and not configured on those that do; remove the field to install it \
         without.",
        management.name_any()
    )
}

fn asked_default(config: &ConfigMeta) -> Option<String> {
    let default = config.default_config.as_ref();
    // A converter may have left v1beta1's stand-in for no default here.
    let default = default.filter(|default| !default.name.is_empty() && default.name != NO_DEFAULT_CONFIG)?;
    let config = AddOnConfig {
        group: config.group.clone(),
        resource: config.resource.clone(),
        namespace: default.namespace.clone(),
        name: default.name.clone(),
    };
    Some(describe(&config))
}

/// The configuration for people: `addondeploymentconfigs.addon.open-cluster-management.io fleet/global`.
fn describe(config: &AddOnConfig) -> String {
    let namespace = config.namespace.iter().filter(|namespace| !namespace.is_empty());
    let name: String = namespace.map(|namespace| format!("{namespace}/")).chain([config.name.clone()]).collect();
    format!("{} {name}", resource(&config.group, &config.resource))
}

/// A kind of configuration for people: `addondeploymentconfigs.addon.open-cluster-management.io`.
pub(crate) fn resource(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::addon::testing::{addon, management};

    fn placement_refusal(placement: Value) -> Option<String> {
        let placements = Value::Array(vec![placement]);
        let management = management("a", json!({"installStrategy": {"type": "Placements", "placements": placements}}));
        let strategy = management.spec.install_strategy.clone().unwrap();
        of_placement(&management, 0, &strategy.placements[0])
    }

    #[test]
    fn kinds_of_configuration_without_a_default_ask_for_nothing() {
        let none = json!({"group": "g", "resource": "r"});
        let reserved = json!({"resource": "x", "defaultConfig": {"name": "__reserved_no_default__"}});
        assert_eq!(of_all(&management("a", json!({"supportedConfigs": [none, reserved]}))), None);
    }

    #[test]
    fn a_default_configuration_is_refused_with_field_kind_and_name() {
        let configs = json!([{"resource": "x"}, {"group": "g", "resource": "r", "defaultConfig": {"namespace": "n", "name": "c"}}]);
        let refusal = of_all(&management("a", json!({"supportedConfigs": configs}))).unwrap();
        assert!(
            refusal.starts_with("spec.supportedConfigs[1].defaultConfig of ClusterManagementAddOn a asks for r.g n/c,"),
            "{refusal}"
        );
    }

    #[test]
    fn configurations_and_rollouts_of_a_placement_are_refused_and_all_at_once_is_not() {
        let plain = json!({"namespace": "n", "name": "p"});
        assert_eq!(placement_refusal(plain.clone()), None);
        let with = |key: &str, value: Value| {
            let mut placement = plain.clone();
            placement[key] = value;
            placement_refusal(placement)
        };
        assert_eq!(with("rolloutStrategy", json!({"type": "All", "all": {"minSuccessTime": "5m"}})), None);
        let rollout = with("rolloutStrategy", json!({"type": "Progressive"})).unwrap();
        assert!(rollout.contains("spec.installStrategy.placements[0].rolloutStrategy.type"), "{rollout}");
        let configs = with("configs", json!([{"resource": "configmaps", "name": "c"}])).unwrap();
        assert!(configs.contains("spec.installStrategy.placements[0].configs"), "{configs}");
        assert!(configs.contains("asks for configmaps c,"), "{configs}");
    }

    #[test]
    fn a_strategy_of_a_newer_version_is_refused() {
        let refusal = of_all(&management("a", json!({"installStrategy": {"type": "Everywhere"}}))).unwrap();
        assert!(refusal.contains("spec.installStrategy.type"), "{refusal}");
    }

    #[test]
    fn a_configuration_of_one_cluster_is_refused() {
        assert_eq!(of_addon(&addon("c1", "a", json!({}))), None);
        let refusal = of_addon(&addon("c1", "a", json!({"configs": [{"resource": "r", "name": "c"}]}))).unwrap();
        assert!(refusal.starts_with("spec.configs "), "{refusal}");
    }
}
