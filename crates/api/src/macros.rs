//! Two macros that keep the types free of boilerplate.

/// Declares an enum that is a string in JSON and keeps a value it does not know as `Other`, so that an object written by
/// a newer version stays readable, is refused by name, and survives a round trip. Its schema lists the known values only.
macro_rules! string_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )+
            /// A value this version does not know, kept as written.
            Other(String),
        }

        impl $name {
            /// The known values as in JSON.
            pub const KNOWN: &'static [&'static str] = &[$($text),+];

            /// The value as it is in JSON.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )+
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $( $text => Self::$variant, )+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Ok(Self::from(text.as_ref()))
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": Self::KNOWN })
            }
        }
    };
}

/// Makes a struct with `metadata` and, where they are named, `spec` and `status` a Kubernetes kind: implements
/// `k8s_openapi`'s `Resource` and `Metadata` (and through them kube's `Resource`), `Serialize` with `apiVersion` and
/// `kind`, and a constructor.
macro_rules! kubernetes_kind {
    (
        $kind:ident, $(spec: $spec:ty,)? $(status: $status:tt,)?
        group: $group:literal, version: $version:literal, plural: $plural:literal, scope: $scope:ident
    ) => {
        impl k8s_openapi::Resource for $kind {
            const API_VERSION: &'static str = concat!($group, "/", $version);
            const GROUP: &'static str = $group;
            const KIND: &'static str = stringify!($kind);
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = k8s_openapi::$scope;
        }

        impl k8s_openapi::Metadata for $kind {
            type Ty = kube_core::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }

        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                let mut object = serializer.serialize_struct(stringify!($kind), 5)?;
                object.serialize_field("apiVersion", <Self as k8s_openapi::Resource>::API_VERSION)?;
                object.serialize_field("kind", <Self as k8s_openapi::Resource>::KIND)?;
                object.serialize_field("metadata", &self.metadata)?;
                $( kubernetes_kind!(@spec $spec, self, object); )?
                $( kubernetes_kind!(@status $status, self, object); )?
                object.end()
            }
        }

        kubernetes_kind!(@new $scope, $kind $(, $spec)?);
    };
    (@spec $spec:ty, $self:ident, $object:ident) => {
        $object.serialize_field("spec", &$self.spec)?
    };
    (@status $status:tt, $self:ident, $object:ident) => {
        match &$self.$status {
            Some(status) => $object.serialize_field("status", status)?,
            None => $object.skip_field("status")?,
        }
    };
    (@new ClusterResourceScope, $kind:ident, $spec:ty) => {
        impl $kind {
            /// A new object of this name, everything else empty.
            pub fn new(name: impl Into<String>, spec: $spec) -> Self {
                let mut object = Self { spec, ..Self::default() };
                object.metadata.name = Some(name.into());
                object
            }
        }
    };
    (@new NamespaceResourceScope, $kind:ident, $spec:ty) => {
        impl $kind {
            /// A new object of this name in this namespace, everything else empty.
            pub fn new(namespace: impl Into<String>, name: impl Into<String>, spec: $spec) -> Self {
                let mut object = Self { spec, ..Self::default() };
                object.metadata.namespace = Some(namespace.into());
                object.metadata.name = Some(name.into());
                object
            }
        }
    };
    (@new NamespaceResourceScope, $kind:ident) => {
        impl $kind {
            /// A new object of this name in this namespace, everything else empty.
            pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
                let mut object = Self::default();
                object.metadata.namespace = Some(namespace.into());
                object.metadata.name = Some(name.into());
                object
            }
        }
    };
}
