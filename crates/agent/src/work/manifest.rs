//! The manifests of a work: reading them, and the order they are applied in.

use std::fmt;

use kube::core::{DynamicObject, GroupVersionKind};
use ocm_api::work::v1::{Manifest, ManifestResourceMeta, ResourceIdentifier};
use serde::Deserialize as _;
use serde_json::Value;

use super::{identifier::is_path_segment, mapper::RestMapping};

/// A manifest of a work, as far as it can be read.
#[derive(Clone, Debug)]
pub(super) struct ParsedManifest {
    /// Its place in the spec.
    pub ordinal: usize,
    /// The object, or why it cannot be applied.
    pub desired: Result<DesiredObject, ManifestError>,
    /// The kind in the manifest; empty where there is none.
    gvk: GroupVersionKind,
    /// The name in the manifest.
    name: String,
    /// The namespace in the manifest.
    namespace: String,
}

/// An object that can be applied.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DesiredObject {
    /// Its kind.
    pub gvk: GroupVersionKind,
    /// Its namespace as written; empty where there is none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// All of it, without uid and owner references.
    pub object: DynamicObject,
}

/// Why a manifest cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ManifestError {
    #[error("the manifest has no {0}: every manifest needs apiVersion, kind and metadata.name")]
    Missing(&'static str),
    #[error("metadata.generateName cannot be used in a manifest: remove it, and give the object a metadata.name")]
    GenerateName,
    #[error(
        "{field} is {value:?}, which is no valid part of a path of the API: use letters, digits, '-' and '.' (for names of \
         RBAC objects also ':')"
    )]
    NotAPathSegment { field: &'static str, value: String },
    #[error("the manifest is not a Kubernetes object: {0}")]
    Malformed(String),
    #[error("a condition rule for this object in spec.manifestConfigs cannot be used: {0}")]
    ConditionRule(String),
    #[error("the object is also manifest {0} of this work: remove one of the two")]
    Duplicate(i32),
}

/// Reads the manifests of a work, in the order of the spec.
pub(super) fn parse(manifests: &[Manifest]) -> Vec<ParsedManifest> {
    manifests.iter().enumerate().map(|(ordinal, manifest)| parse_one(ordinal, &manifest.value())).collect()
}

fn parse_one(ordinal: usize, value: &Value) -> ParsedManifest {
    let gvk = gvk_of(value);
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, namespace) = (text("/metadata/name"), text("/metadata/namespace"));
    let desired = check(value, &gvk, &name, &namespace).and_then(|()| object_of(value));
    let desired = desired.map(|object| DesiredObject {
        gvk: gvk.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
        object,
    });
    ParsedManifest { ordinal, desired, gvk, name, namespace }
}

fn object_of(value: &Value) -> Result<DynamicObject, ManifestError> {
    let mut object = DynamicObject::deserialize(value).map_err(|error| ManifestError::Malformed(error.to_string()))?;
    // A uid is for the server to give. Owners are objects of the hub, or of wherever the manifest was copied from:
    // the garbage collector of the managed cluster would not find them, and delete the object.
    object.metadata.uid = None;
    object.metadata.owner_references = None;
    Ok(object)
}

fn check(value: &Value, gvk: &GroupVersionKind, name: &str, namespace: &str) -> Result<(), ManifestError> {
    let is_set = |pointer| value.pointer(pointer).is_some_and(|value| !value.is_null() && value != "");
    if is_set("/metadata/generateName") {
        return Err(ManifestError::GenerateName);
    }
    let required = [("apiVersion", gvk.version.as_str()), ("kind", &gvk.kind), ("metadata.name", name)];
    if let Some((field, _)) = required.into_iter().find(|(_, text)| text.is_empty()) {
        return Err(ManifestError::Missing(field));
    }
    let segments = [
        ("apiVersion", gvk.version.as_str()),
        ("apiVersion", &gvk.group),
        ("metadata.name", name),
        ("metadata.namespace", namespace),
    ];
    let invalid = segments.into_iter().find(|(_, text)| !text.is_empty() && !is_path_segment(text));
    let invalid = invalid.map(|(field, text)| ManifestError::NotAPathSegment { field, value: text.to_owned() });
    invalid.map_or(Ok(()), Err)
}

fn gvk_of(value: &Value) -> GroupVersionKind {
    let text = |key| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
    GroupVersionKind::gvk(group, version, text("kind"))
}

impl ParsedManifest {
    /// The part of the status that identifies the object. `resource` is empty while the managed cluster does not serve
    /// the kind, and the namespace is left out where the kind has none.
    pub(super) fn meta(&self, resource: &str, namespaced: bool) -> ManifestResourceMeta {
        ManifestResourceMeta {
            ordinal: i32::try_from(self.ordinal).unwrap_or(i32::MAX),
            group: self.gvk.group.clone(),
            version: self.gvk.version.clone(),
            kind: self.gvk.kind.clone(),
            resource: resource.to_owned(),
            name: self.name.clone(),
            namespace: if namespaced { self.namespace.clone() } else { String::new() },
        }
    }

    /// When to apply it: what others need comes first. Depends on the name of the kind alone.
    pub(super) fn rank(&self) -> u16 {
        if self.desired.is_err() {
            return UNREADABLE;
        }
        RANKS
            .iter()
            .position(|kinds| kinds.contains(&self.gvk.kind.as_str()))
            .and_then(|rank| u16::try_from(rank).ok())
            .unwrap_or(OTHER_KINDS)
    }
}

impl DesiredObject {
    /// Which object it is, where its kind has this mapping.
    pub(super) fn identifier(&self, mapping: &RestMapping) -> ResourceIdentifier {
        ResourceIdentifier {
            group: mapping.resource.group.clone(),
            resource: mapping.resource.plural.clone(),
            name: self.name.clone(),
            namespace: if mapping.namespaced { self.namespace.clone() } else { String::new() },
        }
    }
}

impl fmt::Display for DesiredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.gvk.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.gvk.kind, self.name),
        }
    }
}

/// Kinds by rank; what is in none of these comes later, and what cannot be read last.
const RANKS: &[&[&str]] = &[
    &[
        "PriorityClass",
        "Namespace",
        "CustomResourceDefinition",
        "StorageClass",
        "PersistentVolume",
        "PodSecurityPolicy",
    ],
    &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    &["NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "ServiceAccount"],
    &["Secret", "ConfigMap", "PersistentVolumeClaim"],
    &["Service"],
    &[
        "DaemonSet",
        "Pod",
        "ReplicationController",
        "ReplicaSet",
        "Deployment",
        "HorizontalPodAutoscaler",
        "StatefulSet",
        "Job",
        "CronJob",
    ],
    &[
        "APIService",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ],
];
const OTHER_KINDS: u16 = 1000;
const UNREADABLE: u16 = 1001;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(values: Vec<Value>) -> Vec<ParsedManifest> {
        parse(&values.into_iter().map(Manifest::from).collect::<Vec<_>>())
    }

    fn object(api_version: &str, kind: &str, name: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
    }

    #[test]
    fn what_others_need_is_applied_first_and_equals_keep_their_order() {
        let mut read = parsed(vec![
            object("example.com/v1", "Thing", "thing"),
            json!("not an object"),
            object("apps/v1", "Deployment", "app"),
            object("v1", "ConfigMap", "b"),
            object("v1", "Secret", "a"),
            object("v1", "Namespace", "ns"),
        ]);
        read.sort_by_key(ParsedManifest::rank);
        let names: Vec<_> = read.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["ns", "b", "a", "app", "thing", ""]);
    }

    fn error(value: Value) -> ManifestError {
        parsed(vec![value]).remove(0).desired.unwrap_err()
    }

    #[test]
    fn a_manifest_that_cannot_be_applied_says_why() {
        let metadata = json!({"name": "a"});
        assert_eq!(error(json!({"kind": "ConfigMap", "metadata": metadata})), ManifestError::Missing("apiVersion"));
        assert_eq!(error(json!({"apiVersion": "v1", "metadata": metadata})), ManifestError::Missing("kind"));
        assert_eq!(error(json!({"apiVersion": "v1", "kind": "Pod"})), ManifestError::Missing("metadata.name"));
        for metadata in [json!({"generateName": "a-"}), json!({"name": "a", "generateName": "a-"})] {
            let error = error(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
            assert_eq!(error, ManifestError::GenerateName);
        }
    }

    #[test]
    fn a_manifest_that_would_lead_to_the_path_of_another_object_names_the_field() {
        for bad in ["web?x=y", "a/b", "..", ".", "%2f", "a#b", "a b"] {
            let mut namespaced = object("v1", "ConfigMap", "a");
            namespaced["metadata"]["namespace"] = json!(bad);
            for (value, expected) in
                [(object("v1", "ConfigMap", bad), "metadata.name"), (namespaced, "metadata.namespace")]
            {
                let error = error(value);
                assert!(matches!(error, ManifestError::NotAPathSegment { field, .. } if field == expected), "{error}");
                assert!(error.to_string().starts_with(expected) && error.to_string().contains(bad), "{error}");
            }
        }
        for bad in ["v1?x=y", "a/b/v1", "../v1", "apps/.."] {
            let error = error(object(bad, "ConfigMap", "a"));
            assert!(matches!(error, ManifestError::NotAPathSegment { field: "apiVersion", .. }), "{error}");
        }
        assert!(parsed(vec![object("rbac.authorization.k8s.io/v1", "Role", "system:a")])[0].desired.is_ok());
    }

    #[test]
    fn the_uid_and_the_owners_in_a_manifest_are_dropped() {
        let mut value = object("v1", "ConfigMap", "a");
        value["metadata"]["uid"] = json!("from-somewhere-else");
        value["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "elsewhere", "uid": "from-somewhere-else"}]);
        let read = parsed(vec![value]);
        let metadata = &read[0].desired.as_ref().unwrap().object.metadata;
        assert_eq!((&metadata.uid, &metadata.owner_references), (&None, &None));
    }

    #[test]
    fn the_group_is_what_stands_before_the_slash() {
        let read = parsed(vec![object("rbac.authorization.k8s.io/v1", "Role", "a"), object("v1", "Pod", "a")]);
        assert_eq!(read[0].meta("roles", true).group, "rbac.authorization.k8s.io");
        assert_eq!(
            (read[1].meta("pods", true).group.as_str(), read[1].meta("pods", true).version.as_str()),
            ("", "v1")
        );
    }
}
