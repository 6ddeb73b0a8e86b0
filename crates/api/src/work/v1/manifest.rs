//! [`Manifest`]: an object inside a work.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::Value;

/// One object to apply, of any kind, kept exactly as written.
///
/// An agent holds the manifests of every work of its cluster, and reads them only when it applies them. They are kept as
/// JSON text, which takes a fraction of the memory that a tree of values does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Manifest(Box<str>);

impl Manifest {
    /// The object.
    #[must_use]
    pub fn value(&self) -> Value {
        // The text was written from a value.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl Default for Manifest {
    fn default() -> Self {
        Self::from(Value::Null)
    }
}

impl From<Value> for Manifest {
    fn from(value: Value) -> Self {
        Self(value.to_string().into_boxed_str())
    }
}

impl Serialize for Manifest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: Value = serde_json::from_str(&self.0).map_err(ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Manifest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from).map_err(de::Error::custom)
    }
}

impl JsonSchema for Manifest {
    fn schema_name() -> Cow<'static, str> {
        "Manifest".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = crate::schema::embedded_resource(generator);
        schema.insert("description".to_owned(), "One object to apply, of any kind, kept exactly as written.".into());
        schema
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manifest_is_kept_as_it_is() {
        let value = json!({"kind": "Thing", "spec": {"float": 1.5, "big": 18_446_744_073_709_551_615_u64, "text": "\u{1f980}\n"}});
        let manifest: Manifest = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(manifest.value(), value);
        assert_eq!(serde_json::to_value(&manifest).unwrap(), value);
    }
}
