//! [`Manifest`]s from typed objects and from YAML, and those that every agent needs. A JSON value becomes one with
//! `into()`.

use k8s_openapi::api::rbac::v1::PolicyRule;
use ocm_api::rbac;
use ocm_apimachinery::yaml;
pub use ocm_apimachinery::yaml::Error as YamlError;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Installation, Manifest, PermissionBuilder};

/// A manifest of a typed object that is serialized with `apiVersion` and `kind`, such as those of `k8s_openapi`.
///
/// # Errors
/// When the object has no form in JSON, for instance a map whose keys are not strings.
pub fn object<K: Serialize>(object: &K) -> Result<Manifest, serde_json::Error> {
    serde_json::to_value(object).map(Manifest::from)
}

/// The documents of a YAML text but the empty ones, parsed as kubectl parses it.
///
/// # Errors
/// When the text is not YAML.
pub fn yaml(text: &str) -> Result<Vec<Manifest>, YamlError> {
    Ok(yaml::from_str_multi::<Value>(text)?.into_iter().map(Manifest::from).collect())
}

/// The ServiceAccount of an agent, in its namespace on the managed cluster, with a Role and a RoleBinding of the same name
/// that permit it to renew its [lease](crate::LeaseUpdater) there, and what is in `rules`. Rules are made with
/// [`PermissionBuilder::rule`].
#[must_use]
pub fn service_account(on: &Installation<'_>, name: &str, rules: Vec<PolicyRule>) -> Vec<Manifest> {
    let metadata = json!({"name": name, "namespace": on.namespace});
    let rules: Vec<_> = lease_rules(&on.addon_name()).into_iter().chain(rules).collect();
    let role_ref = json!({"apiGroup": rbac::API_GROUP, "kind": "Role", "name": name});
    let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": on.namespace});
    let version = format!("{}/v1", rbac::API_GROUP);
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}).into(),
        json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules}).into(),
        json!({"apiVersion": version, "kind": "RoleBinding", "metadata": metadata, "roleRef": role_ref,
            "subjects": [subject]})
        .into(),
    ]
}

/// What has no name yet cannot be created by name only.
fn lease_rules(addon: &str) -> [PolicyRule; 2] {
    let leases = |verbs: &[&str]| PermissionBuilder::rule("coordination.k8s.io", &["leases"], verbs);
    let own = PolicyRule { resource_names: Some(vec![addon.to_owned()]), ..leases(&["get", "patch"]) };
    [own, leases(&["create"])]
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ServiceAccount;

    use super::*;

    #[test]
    fn a_typed_object_and_its_yaml_make_the_same_manifest() {
        let mut account = ServiceAccount::default();
        account.metadata.name = Some("a".into());
        let text = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n---\n";
        assert_eq!(yaml(text).unwrap(), [object(&account).unwrap()]);
    }
}
