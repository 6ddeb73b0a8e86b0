//! Making [`Manifest`]s: from typed objects, and from YAML. From JSON a manifest is made with `into()`.

use ocm_apimachinery::yaml;
use serde::Serialize;
use serde_json::Value;

use crate::Manifest;

/// An object of any type that knows its `apiVersion` and `kind`, such as those of `k8s_openapi`.
///
/// # Errors
/// When the object has no form in JSON, for instance a map whose keys are not strings.
pub fn object<K: Serialize>(object: &K) -> Result<Manifest, serde_json::Error> {
    serde_json::to_value(object).map(Manifest::from)
}

/// Every document of a YAML text, leaving out empty ones. Read as kubectl reads it.
///
/// # Errors
/// When the text is not YAML.
pub fn yaml(text: &str) -> Result<Vec<Manifest>, yaml::Error> {
    Ok(yaml::from_str_multi::<Value>(text)?.into_iter().map(Manifest::from).collect())
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
