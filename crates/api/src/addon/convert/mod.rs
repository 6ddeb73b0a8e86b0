//! Conversion of ClusterManagementAddOns and ManagedClusterAddOns between v1alpha1, which is stored, and v1beta1.
//!
//! What both versions have in common passes through as it is, fields this version does not know included, and a field
//! that is missing is no error: the API server converts parts of objects too. Every object that it stores can be
//! converted, since an object that cannot be converted can be neither repaired nor deleted.
//!
//! What v1beta1 has no field for is kept in annotations of the converted object and comes back from there. This is lost,
//! as it means nothing or is said elsewhere:
//!
//! - organizational units of a registration at the hub's API server, whose users have none;
//! - `name` and `namespace` of `status.configReferences[]`, which repeat those of `desiredConfig`;
//! - `status.kubeClientDriver` while no registration is for the hub's API server; of several such registrations in v1beta1,
//!   all get the driver of the first;
//! - the settings in a registration of v1beta1 that are of another type than it is, and the type `customSigner` where the
//!   signer is that of the hub's API server;
//! - the namespace of a default configuration whose name means "none";
//! - fields in `supportedConfigs[].defaultConfig` that this version does not know: v1beta1 has no such object.

mod json;
mod managed;
mod management;
mod registrations;

use k8s_openapi::Resource as _;
use serde_json::{Map, Value};

use super::{v1alpha1, v1beta1};

/// A JSON object.
type Object = Map<String, Value>;

/// Why an object was not converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// It is no JSON object, or has no kind and API version.
    #[error("what is to be converted is no object with apiVersion, kind and metadata")]
    Untyped,
    /// It is of a kind or version that is not converted here.
    #[error(
        "{kind} {from} cannot be converted to {to}: only ClusterManagementAddOn and ManagedClusterAddOn are converted \
         here, between addon.open-cluster-management.io/v1alpha1 and v1beta1; correct spec.conversion of the CRD, or \
         update this webhook"
    )]
    Unknown {
        /// Its kind.
        kind: String,
        /// Its API version.
        from: String,
        /// The API version asked for.
        to: String,
    },
    /// A field does not have the type of its schema.
    #[error("{path} is not {expected}")]
    Malformed {
        /// The field.
        path: String,
        /// What it should be.
        expected: &'static str,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1alpha1,
    V1beta1,
}

impl Version {
    fn of(api_version: &str) -> Option<Self> {
        match api_version {
            v1alpha1::ManagedClusterAddOn::API_VERSION => Some(Self::V1alpha1),
            v1beta1::ManagedClusterAddOn::API_VERSION => Some(Self::V1beta1),
            _ => None,
        }
    }
}

/// Converts an object to the API version `to`, such as `addon.open-cluster-management.io/v1beta1`. Its metadata stays but
/// for annotations.
///
/// # Errors
/// [`ConvertError`].
pub fn convert(object: Value, to: &str) -> Result<Value, ConvertError> {
    let Value::Object(mut object) = object else { return Err(ConvertError::Untyped) };
    let (from, kind) = type_of(&object)?;
    let unknown = || ConvertError::Unknown { kind: kind.clone(), from: from.clone(), to: to.to_owned() };
    let (old, new) = (Version::of(&from).ok_or_else(unknown)?, Version::of(to).ok_or_else(unknown)?);
    let (up, down): (Conversion, Conversion) = match kind.as_str() {
        v1alpha1::ClusterManagementAddOn::KIND => (management::to_v1beta1, management::to_v1alpha1),
        v1alpha1::ManagedClusterAddOn::KIND => (managed::to_v1beta1, managed::to_v1alpha1),
        _ => return Err(unknown()),
    };
    match (old, new) {
        (Version::V1alpha1, Version::V1beta1) => up(&mut object)?,
        (Version::V1beta1, Version::V1alpha1) => down(&mut object)?,
        _ => {}
    }
    object.insert("apiVersion".to_owned(), to.into());
    Ok(Value::Object(object))
}

type Conversion = fn(&mut Object) -> Result<(), ConvertError>;

/// API version and kind of an object.
fn type_of(object: &Object) -> Result<(String, String), ConvertError> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned).ok_or(ConvertError::Untyped);
    // The API server takes no answer without metadata.
    if !object.get("metadata").is_some_and(Value::is_object) {
        return Err(ConvertError::Untyped);
    }
    Ok((text("apiVersion")?, text("kind")?))
}

#[cfg(test)]
mod tests;
