//! The desired state of an add-on that is enabled on a cluster. Pure.

use std::collections::BTreeMap;

use ocm_api::{
    addon::v1alpha1::{AddOnConfig, ManagedClusterAddOn, ManagedClusterAddOnSpec},
    namespaces,
};

/// The settings of the flags.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// Namespace of the agent on the managed cluster; without one, an existing add-on keeps its own.
    pub(super) namespace: Option<String>,
    /// Annotations to add to the existing ones.
    pub(super) annotations: BTreeMap<String, String>,
    /// Labels to add to the existing ones.
    pub(super) labels: BTreeMap<String, String>,
    /// Configurations; without them, an existing add-on keeps its own.
    pub(super) configs: Option<Vec<AddOnConfig>>,
}

/// The add-on as it should be on a cluster, based on the existing one, if any.
pub(super) fn desired(
    settings: &Settings,
    cluster: &str,
    name: &str,
    existing: Option<&ManagedClusterAddOn>,
) -> ManagedClusterAddOn {
    let new = || ManagedClusterAddOn::new(cluster, name, ManagedClusterAddOnSpec::default());
    let mut addon = existing.cloned().unwrap_or_else(new);
    set(&mut addon.metadata.annotations, &settings.annotations);
    set(&mut addon.metadata.labels, &settings.labels);
    if settings.namespace.is_some() {
        addon.spec.install_namespace.clone_from(&settings.namespace);
    }
    // The API server would set the same default, but the output names it.
    addon.spec.install_namespace.get_or_insert_with(|| namespaces::AGENT_ADDON.to_owned());
    if let Some(configs) = &settings.configs {
        addon.spec.configs.clone_from(configs);
    }
    addon
}

fn set(existing: &mut Option<BTreeMap<String, String>>, added: &BTreeMap<String, String>) {
    if !added.is_empty() {
        existing.get_or_insert_default().extend(added.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: &str, value: &str) -> BTreeMap<String, String> {
        [(key.to_owned(), value.to_owned())].into()
    }

    fn config(name: &str) -> AddOnConfig {
        AddOnConfig { resource: "addondeploymentconfigs".into(), name: name.into(), ..AddOnConfig::default() }
    }

    fn existing() -> ManagedClusterAddOn {
        let spec = ManagedClusterAddOnSpec { install_namespace: Some("old".into()), configs: vec![config("old")] };
        let mut addon = ManagedClusterAddOn::new("c1", "hello", spec);
        addon.metadata.annotations = Some(pair("theirs", "1"));
        addon
    }

    #[test]
    fn a_new_addon_goes_to_the_usual_namespace() {
        let addon = desired(&Settings::default(), "c1", "hello", None);
        assert_eq!(addon.spec.install_namespace.as_deref(), Some("open-cluster-management-agent-addon"));
        assert_eq!((addon.metadata.namespace.as_deref(), addon.metadata.name.as_deref()), (Some("c1"), Some("hello")));
        assert!(addon.metadata.annotations.is_none() && addon.spec.configs.is_empty());
    }

    #[test]
    fn settings_that_flags_name_are_set() {
        let settings = Settings {
            namespace: Some("new".into()),
            annotations: pair("a", "1"),
            labels: pair("b", "2"),
            configs: Some(vec![config("new")]),
        };
        let addon = desired(&settings, "c1", "hello", Some(&existing()));
        assert_eq!(addon.spec.install_namespace.as_deref(), Some("new"));
        assert_eq!(addon.spec.configs, [config("new")]);
        assert_eq!(addon.metadata.annotations.unwrap().len(), 2);
        assert_eq!(addon.metadata.labels, Some(pair("b", "2")));
    }

    #[test]
    fn settings_that_flags_do_not_name_are_kept() {
        assert_eq!(desired(&Settings::default(), "c1", "hello", Some(&existing())), existing());
    }
}
