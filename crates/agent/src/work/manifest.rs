//! The objects of a work: reading them and the order they are applied in.

use std::{collections::HashMap, fmt};

use kube::core::{DynamicObject, GroupVersionKind};
use ocm_api::work::v1::{Manifest, ManifestResourceMeta};
use serde::Deserialize as _;
use serde_json::Value;

/// One object of a work, as far as it could be read.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Its place in the spec.
    pub ordinal: usize,
    /// What it is, or why it cannot be applied.
    pub content: Result<Object, ManifestError>,
    /// The kind that stands in it; empty where none does.
    pub kind: GroupVersionKind,
    /// The name that stands in it.
    pub name: String,
    /// The namespace that stands in it.
    pub namespace: String,
}

/// An object that is fit to be applied.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object {
    /// Its kind.
    pub gvk: GroupVersionKind,
    /// Its namespace as written; empty where there is none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// All of it, without uid and owner references.
    pub object: DynamicObject,
}

/// Why an object of a work cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ManifestError {
    #[error("the manifest has no {0}: every manifest needs apiVersion, kind and metadata.name")]
    Missing(&'static str),
    #[error("metadata.generateName cannot be used in a manifest: give the object a metadata.name")]
    GenerateName,
    #[error("the manifest is not a Kubernetes object: {0}")]
    Malformed(String),
    #[error("the object is also manifest {0} of this work: remove one of the two")]
    Duplicate(usize),
}

/// Reads the objects of a work, in the order of the spec.
pub(super) fn read(manifests: &[Manifest]) -> Vec<Item> {
    let mut seen = HashMap::new();
    manifests.iter().enumerate().map(|(ordinal, manifest)| read_one(ordinal, &manifest.value(), &mut seen)).collect()
}

type Identity = (String, String, String, String);

fn read_one(ordinal: usize, value: &Value, seen: &mut HashMap<Identity, usize>) -> Item {
    let kind = kind_of(value);
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, namespace) = (text("/metadata/name"), text("/metadata/namespace"));
    // Two versions of a kind are one object.
    let identity = (kind.group.clone(), kind.kind.clone(), namespace.clone(), name.clone());
    let content = parse(value, &kind, &name).and_then(|object| match seen.insert(identity, ordinal) {
        Some(first) => Err(ManifestError::Duplicate(first)),
        None => Ok(Object { gvk: kind.clone(), namespace: namespace.clone(), name: name.clone(), object }),
    });
    Item { ordinal, content, kind, name, namespace }
}

fn parse(value: &Value, kind: &GroupVersionKind, name: &str) -> Result<DynamicObject, ManifestError> {
    check(value, kind, name)?;
    let mut object = DynamicObject::deserialize(value).map_err(|error| ManifestError::Malformed(error.to_string()))?;
    // A uid is for the server to give. Owners are objects of the hub, or of wherever the manifest was copied from:
    // the garbage collector of the managed cluster would not find them, and delete the object.
    object.metadata.uid = None;
    object.metadata.owner_references = None;
    Ok(object)
}

fn check(value: &Value, kind: &GroupVersionKind, name: &str) -> Result<(), ManifestError> {
    if kind.version.is_empty() {
        return Err(ManifestError::Missing("apiVersion"));
    }
    if kind.kind.is_empty() {
        return Err(ManifestError::Missing("kind"));
    }
    if name.is_empty() {
        let generates = value.pointer("/metadata/generateName").is_some();
        return Err(if generates { ManifestError::GenerateName } else { ManifestError::Missing("metadata.name") });
    }
    Ok(())
}

fn kind_of(value: &Value) -> GroupVersionKind {
    let text = |key| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
    GroupVersionKind::gvk(group, version, text("kind"))
}

impl Item {
    /// The part of the report that says which object this is; `resource` is empty while the managed
    /// cluster does not know the kind, and `namespaced` tells whether a namespace means anything.
    pub(super) fn meta(&self, resource: &str, namespaced: bool) -> ManifestResourceMeta {
        ManifestResourceMeta {
            ordinal: i32::try_from(self.ordinal).unwrap_or(i32::MAX),
            group: self.kind.group.clone(),
            version: self.kind.version.clone(),
            kind: self.kind.kind.clone(),
            resource: resource.to_owned(),
            name: self.name.clone(),
            namespace: if namespaced { self.namespace.clone() } else { String::new() },
        }
    }

    /// When to apply it: what others need comes first. Goes by the name of the kind alone.
    pub(super) fn rank(&self) -> u16 {
        if self.content.is_err() {
            return UNREADABLE;
        }
        RANKS
            .iter()
            .position(|kinds| kinds.contains(&self.kind.kind.as_str()))
            .and_then(|rank| u16::try_from(rank).ok())
            .unwrap_or(OTHER_KINDS)
    }
}

impl fmt::Display for Object {
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

    fn items(values: Vec<Value>) -> Vec<Item> {
        read(&values.into_iter().map(Manifest::from).collect::<Vec<_>>())
    }

    fn object(api_version: &str, kind: &str, name: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
    }

    #[test]
    fn what_others_need_is_applied_first_and_equals_keep_their_order() {
        let mut read = items(vec![
            object("example.com/v1", "Thing", "thing"),
            json!("not an object"),
            object("apps/v1", "Deployment", "app"),
            object("v1", "ConfigMap", "b"),
            object("v1", "Secret", "a"),
            object("v1", "Namespace", "ns"),
        ]);
        read.sort_by_key(Item::rank);
        let names: Vec<_> = read.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names, ["ns", "b", "a", "app", "thing", ""]);
    }

    #[test]
    fn what_cannot_be_applied_says_why() {
        let read = items(vec![
            json!({"kind": "ConfigMap", "metadata": {"name": "a"}}),
            json!({"apiVersion": "v1", "metadata": {"name": "a"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}),
            object("v1", "ConfigMap", "twice"),
            object("v1", "ConfigMap", "twice"),
        ]);
        let errors: Vec<_> = read.iter().filter_map(|item| item.content.as_ref().err().cloned()).collect();
        assert_eq!(
            errors,
            [
                ManifestError::Missing("apiVersion"),
                ManifestError::Missing("kind"),
                ManifestError::GenerateName,
                ManifestError::Duplicate(3)
            ]
        );
    }

    #[test]
    fn the_uid_and_the_owners_in_a_manifest_are_dropped() {
        let mut value = object("v1", "ConfigMap", "a");
        value["metadata"]["uid"] = json!("from-somewhere-else");
        value["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "elsewhere", "uid": "from-somewhere-else"}]);
        let read = items(vec![value]);
        let metadata = &read[0].content.as_ref().unwrap().object.metadata;
        assert_eq!((&metadata.uid, &metadata.owner_references), (&None, &None));
    }

    #[test]
    fn the_group_is_what_stands_before_the_slash() {
        let read = items(vec![object("rbac.authorization.k8s.io/v1", "Role", "a"), object("v1", "Pod", "a")]);
        assert_eq!(read[0].meta("roles", true).group, "rbac.authorization.k8s.io");
        assert_eq!(
            (read[1].meta("pods", true).group.as_str(), read[1].meta("pods", true).version.as_str()),
            ("", "v1")
        );
    }
}
