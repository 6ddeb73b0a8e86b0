//! ManagedClusterAddOn: the install namespace, the references to configurations, the registrations.

use serde_json::Value;

use super::json::{
    annotate, map_list, object, object_or_new, remove_if_empty, take_annotation, take_object, take_text,
};
use super::management::{keep_configuration, kept_configuration};
use super::{ConvertError, Object, registrations};
use crate::annotations;

/// `status.addOnMeta` exists even if it is empty, as in what OCM's webhook answers.
pub(super) fn to_v1beta1(addon: &mut Object) -> Result<(), ConvertError> {
    let spec = object_or_new(addon, "spec", "")?;
    let namespace = take_text(spec, "installNamespace", "spec")?;
    let status = object_or_new(addon, "status", "")?;
    object_or_new(status, "addOnMeta", "status")?;
    let configuration = take_object(status, "addOnConfiguration", "status")?;
    map_list(status, "configReferences", "status", |reference, _| Ok(without_name(reference)))?;
    registrations::to_v1beta1(status)?;
    keep_configuration(addon, configuration)?;
    match namespace {
        Some(namespace) => annotate(addon, annotations::ADDON_INSTALL_NAMESPACE, namespace),
        None => Ok(()),
    }
}

pub(super) fn to_v1alpha1(addon: &mut Object) -> Result<(), ConvertError> {
    let configuration = kept_configuration(addon)?;
    let namespace = take_annotation(addon, annotations::ADDON_INSTALL_NAMESPACE, |text| Some(text.to_owned()))?;
    let spec = object_or_new(addon, "spec", "")?;
    if let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) {
        spec.insert("installNamespace".to_owned(), namespace.into());
    }
    if let Some(configuration) = configuration {
        object_or_new(addon, "status", "")?.insert("addOnConfiguration".to_owned(), configuration);
    }
    if let Some(status) = object(addon, "status", "")? {
        map_list(status, "configReferences", "status", with_name)?;
        registrations::to_v1alpha1(status)?;
        remove_if_empty(status, "addOnMeta");
    }
    remove_if_empty(addon, "status");
    Ok(())
}

fn without_name(mut reference: Object) -> Object {
    reference.remove("name");
    reference.remove("namespace");
    reference
}

/// Repeats the name of the desired configuration, which v1alpha1 requires.
fn with_name(mut reference: Object, path: &str) -> Result<Object, ConvertError> {
    let desired = object(&mut reference, "desiredConfig", path)?;
    let field = |key: &str| desired.as_ref().and_then(|desired| desired.get(key)).filter(|value| !value.is_null());
    let (name, namespace) = (field("name").cloned(), field("namespace").cloned());
    reference.insert("name".to_owned(), name.unwrap_or_else(|| Value::String(String::new())));
    reference.extend(namespace.map(|namespace| ("namespace".to_owned(), namespace)));
    Ok(reference)
}
