//! Objects as an API server sends them.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope, error_boundary::InvalidObject},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;

/// An object as JSON text, with its metadata. One type for every kind, so that what lists and watches is compiled once
/// and not once per kind. With `METADATA`, the API server is asked for the metadata only.
#[derive(Clone, Debug)]
pub(super) struct RawObject<const METADATA: bool> {
    metadata: ObjectMeta,
    json: Vec<u8>,
}

/// An object as read, or why it could not be.
pub(super) type Read<K> = Result<K, Box<InvalidObject>>;

impl<const METADATA: bool> RawObject<METADATA> {
    /// Reads it as an object of its kind.
    pub(super) fn read<K: DeserializeOwned>(self) -> Read<K> {
        let Self { metadata, json } = self;
        serde_json::from_slice(&json).map_err(|error| Box::new(InvalidObject { error: error.to_string(), metadata }))
    }
}

impl<'de, const METADATA: bool> Deserialize<'de> for RawObject<METADATA> {
    /// Leaves out the managed fields, which nobody reads and which are often the largest part.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Value::deserialize(deserializer)?;
        let metadata = match object.get_mut("metadata") {
            None => ObjectMeta::default(),
            Some(metadata) => {
                metadata.as_object_mut().map(|fields| fields.remove("managedFields"));
                ObjectMeta::deserialize(&*metadata).map_err(D::Error::custom)?
            }
        };
        Ok(Self { metadata, json: serde_json::to_vec(&object).map_err(D::Error::custom)? })
    }
}

impl<const METADATA: bool> Resource for RawObject<METADATA> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        METADATA
    }

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.kind).into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.group).into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.version).into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.api_version).into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.plural).into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{from_value, json};

    use super::*;

    fn raw(object: Value) -> RawObject<false> {
        from_value(object).unwrap()
    }

    #[test]
    fn an_object_is_read_without_its_managed_fields() {
        let metadata = json!({"name": "a", "managedFields": [{"manager": "m"}]});
        let raw = raw(json!({"metadata": metadata, "data": {"k": "v"}}));
        assert_eq!(raw.meta().name.as_deref(), Some("a"));
        let read: ConfigMap = raw.read().unwrap();
        let expected: ConfigMap = from_value(json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).unwrap();
        assert_eq!(read, expected);
    }

    #[test]
    fn an_object_that_cannot_be_read_is_known_by_its_metadata() {
        let raw = raw(json!({"metadata": {"name": "a", "uid": "u"}, "data": 1}));
        let invalid = raw.read::<ConfigMap>().unwrap_err();
        assert_eq!((invalid.metadata.name.as_deref(), invalid.metadata.uid.as_deref()), (Some("a"), Some("u")));
        assert!(invalid.error.contains("invalid type: integer `1`"), "{}", invalid.error);
    }

    #[test]
    fn an_object_without_metadata_is_no_failure_of_the_list() {
        assert_eq!(*raw(json!({"data": {}})).meta(), ObjectMeta::default());
        assert!(from_value::<RawObject<false>>(json!({"metadata": 1})).is_err());
    }
}
