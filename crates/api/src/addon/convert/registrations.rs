//! `status.registrations` and `status.kubeClientDriver`: v1beta1 tells registrations apart by their type and gives each at
//! the hub's API server a driver, v1alpha1 by their signer, with one driver for all.

use serde_json::Value;

use super::json::{map_list, object, rename, take_object, take_text};
use super::{ConvertError, Object};
use crate::addon::v1beta1::AgentRegistrationType as Type;
use crate::signers;

/// What a registration of v1beta1 keeps its settings under is called like its type.
const KUBE_CLIENT: &str = "kubeClient";
const CUSTOM_SIGNER: &str = "customSigner";

pub(super) fn to_v1beta1(status: &mut Object) -> Result<(), ConvertError> {
    let driver = take_text(status, "kubeClientDriver", "status")?;
    map_list(status, "registrations", "status", |mut settings, path| {
        let (type_, settings) =
            if settings.get("signerName").is_some_and(|name| name == signers::KUBE_API_SERVER_CLIENT) {
                (Type::KubeClient, kube_client(settings, driver.as_deref(), path)?)
            } else {
                if let Some(subject) = object(&mut settings, "subject", path)? {
                    rename(subject, "organizationUnit", "organizationUnits");
                }
                (Type::CustomSigner, settings)
            };
        let mut registration = Object::new();
        registration.insert("type".to_owned(), type_.as_str().into());
        registration.insert(type_.as_str().to_owned(), Value::Object(settings));
        Ok(registration)
    })
}

fn kube_client(mut settings: Object, driver: Option<&str>, path: &str) -> Result<Object, ConvertError> {
    settings.remove("signerName");
    if let Some(subject) = object(&mut settings, "subject", path)? {
        subject.remove("organizationUnit");
    }
    settings.extend(driver.map(|driver| ("driver".to_owned(), driver.into())));
    Ok(settings)
}

pub(super) fn to_v1alpha1(status: &mut Object) -> Result<(), ConvertError> {
    // Of the first registration at the API server, whether it has a driver or not.
    let mut driver = None;
    map_list(status, "registrations", "status", |mut registration, path| {
        match registration.get("type").and_then(Value::as_str) {
            Some(KUBE_CLIENT) => {
                let mut settings = take_object(&mut registration, KUBE_CLIENT, path)?.unwrap_or_default();
                let own = settings.remove("driver");
                driver.get_or_insert(own);
                settings.insert("signerName".to_owned(), signers::KUBE_API_SERVER_CLIENT.into());
                Ok(settings)
            }
            Some(CUSTOM_SIGNER) => {
                let mut settings = take_object(&mut registration, CUSTOM_SIGNER, path)?.unwrap_or_default();
                if let Some(subject) = object(&mut settings, "subject", path)? {
                    rename(subject, "organizationUnits", "organizationUnit");
                }
                // Required, and there even where the type is all that is known.
                settings.entry("signerName").or_insert_with(|| "".into());
                Ok(settings)
            }
            _ => Err(ConvertError::Malformed { path: format!("{path}.type"), expected: "kubeClient or customSigner" }),
        }
    })?;
    let driver = driver.flatten().filter(|driver| !driver.is_null());
    status.extend(driver.map(|driver| ("kubeClientDriver".to_owned(), driver)));
    Ok(())
}
