//! ClusterManagementAddOn: the kinds of configuration, and how the status spells its first field.

use serde_json::Value;

use super::json::{annotate, map_list, object, object_or_new, remove_if_empty, rename, take_annotation, take_object};
use super::{ConvertError, Object};
use crate::addon::{NO_DEFAULT_CONFIG, v1alpha1::ConfigCoordinates};
use crate::annotations;

/// `status` exists even if it is empty, as in what OCM's webhook answers.
pub(super) fn to_v1beta1(addon: &mut Object) -> Result<(), ConvertError> {
    let spec = object_or_new(addon, "spec", "")?;
    map_list(spec, "supportedConfigs", "spec", default_config)?;
    rename(spec, "supportedConfigs", "defaultConfigs");
    let configuration = take_object(spec, "addOnConfiguration", "spec")?;
    let status = object_or_new(addon, "status", "")?;
    rename(status, "defaultconfigReferences", "defaultConfigReferences");
    keep_configuration(addon, configuration)
}

pub(super) fn to_v1alpha1(addon: &mut Object) -> Result<(), ConvertError> {
    let configuration = kept_configuration(addon)?;
    let spec = object_or_new(addon, "spec", "")?;
    map_list(spec, "defaultConfigs", "spec", |config, _| Ok(supported_config(config)))?;
    rename(spec, "defaultConfigs", "supportedConfigs");
    if let Some(configuration) = configuration {
        spec.insert("addOnConfiguration".to_owned(), configuration);
    }
    if let Some(status) = object(addon, "status", "")? {
        rename(status, "defaultConfigReferences", "defaultconfigReferences");
    }
    remove_if_empty(addon, "status");
    Ok(())
}

/// The fields of `defaultConfig`, which v1beta1 has next to the kind of configuration.
const REFERENT: [&str; 2] = ["name", "namespace"];

/// An entry of `supportedConfigs` as one of `defaultConfigs`.
fn default_config(mut config: Object, path: &str) -> Result<Object, ConvertError> {
    let none = || Object::from_iter([("name".to_owned(), NO_DEFAULT_CONFIG.into())]);
    let mut default = take_object(&mut config, "defaultConfig", path)?.unwrap_or_else(none);
    move_fields(&mut default, &mut config);
    Ok(config)
}

/// An entry of `defaultConfigs` as one of `supportedConfigs`.
fn supported_config(mut config: Object) -> Object {
    let mut default = Object::new();
    move_fields(&mut config, &mut default);
    if default.get("name").is_none_or(|name| name != NO_DEFAULT_CONFIG) {
        config.insert("defaultConfig".to_owned(), Value::Object(default));
    }
    config
}

fn move_fields(from: &mut Object, to: &mut Object) {
    to.extend(REFERENT.iter().filter_map(|key| from.remove_entry(*key)));
}

/// Keeps a deprecated field that v1beta1 lacks.
pub(super) fn keep_configuration(addon: &mut Object, configuration: Option<Object>) -> Result<(), ConvertError> {
    match configuration.filter(|configuration| !configuration.is_empty()) {
        Some(kept) => annotate(addon, annotations::ADDON_CONFIGURATION, Value::Object(kept).to_string()),
        None => Ok(()),
    }
}

/// What [`keep_configuration`] kept. An annotation with other content is not changed: anybody may have written it, and
/// no schema has validated it.
pub(super) fn kept_configuration(addon: &mut Object) -> Result<Option<Value>, ConvertError> {
    take_annotation(addon, annotations::ADDON_CONFIGURATION, |text| {
        serde_json::from_str::<ConfigCoordinates>(text).ok()?;
        serde_json::from_str::<Object>(text).ok().filter(|kept| !kept.is_empty()).map(Value::Object)
    })
}
