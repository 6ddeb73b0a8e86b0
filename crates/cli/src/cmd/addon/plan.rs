//! Decides what enabling an add-on on a cluster takes. Pure.

use std::collections::BTreeMap;

use ocm_api::{
    addon::v1alpha1::{AddOnConfig, ManagedClusterAddOn, ManagedClusterAddOnSpec},
    namespaces,
};

/// What the flags ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct Wish {
    /// Namespace of the agent on the managed cluster; none leaves that of an add-on that is there.
    pub(super) namespace: Option<String>,
    /// Annotations to set, beside those that are there.
    pub(super) annotations: BTreeMap<String, String>,
    /// Labels to set, beside those that are there.
    pub(super) labels: BTreeMap<String, String>,
    /// Configurations; none leaves those that are there.
    pub(super) configs: Option<Vec<AddOnConfig>>,
}

/// The add-on as it should be on a cluster, made from the one that is there, if any.
pub(super) fn desired(
    wish: &Wish,
    cluster: &str,
    name: &str,
    there: Option<&ManagedClusterAddOn>,
) -> ManagedClusterAddOn {
    let new = || ManagedClusterAddOn::new(cluster, name, ManagedClusterAddOnSpec::default());
    let mut addon = there.cloned().unwrap_or_else(new);
    set(&mut addon.metadata.annotations, &wish.annotations);
    set(&mut addon.metadata.labels, &wish.labels);
    if wish.namespace.is_some() {
        addon.spec.install_namespace.clone_from(&wish.namespace);
    }
    // The API server would set the same, but the output is to name it.
    addon.spec.install_namespace.get_or_insert_with(|| namespaces::AGENT_ADDON.to_owned());
    if let Some(configs) = &wish.configs {
        addon.spec.configs.clone_from(configs);
    }
    addon
}

fn set(there: &mut Option<BTreeMap<String, String>>, wished: &BTreeMap<String, String>) {
    if !wished.is_empty() {
        there.get_or_insert_default().extend(wished.clone());
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

    fn there() -> ManagedClusterAddOn {
        let spec = ManagedClusterAddOnSpec { install_namespace: Some("old".into()), configs: vec![config("old")] };
        let mut addon = ManagedClusterAddOn::new("c1", "hello", spec);
        addon.metadata.annotations = Some(pair("theirs", "1"));
        addon
    }

    #[test]
    fn a_new_addon_goes_to_the_usual_namespace() {
        let addon = desired(&Wish::default(), "c1", "hello", None);
        assert_eq!(addon.spec.install_namespace.as_deref(), Some("open-cluster-management-agent-addon"));
        assert_eq!((addon.metadata.namespace.as_deref(), addon.metadata.name.as_deref()), (Some("c1"), Some("hello")));
        assert!(addon.metadata.annotations.is_none() && addon.spec.configs.is_empty());
    }

    #[test]
    fn what_the_flags_name_is_set() {
        let wish = Wish {
            namespace: Some("new".into()),
            annotations: pair("a", "1"),
            labels: pair("b", "2"),
            configs: Some(vec![config("new")]),
        };
        let addon = desired(&wish, "c1", "hello", Some(&there()));
        assert_eq!(addon.spec.install_namespace.as_deref(), Some("new"));
        assert_eq!(addon.spec.configs, [config("new")]);
        assert_eq!(addon.metadata.annotations.unwrap().len(), 2);
        assert_eq!(addon.metadata.labels, Some(pair("b", "2")));
    }

    #[test]
    fn what_the_flags_do_not_name_stays() {
        assert_eq!(desired(&Wish::default(), "c1", "hello", Some(&there())), there());
    }
}
