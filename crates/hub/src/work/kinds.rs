//! ManifestWorks as the hub's caches keep them: without what is applied, which is nearly all of their size.
//!
//! A fleet has as many works as clusters times sets, each with up to half a megabyte of manifests. The controllers here compare
//! specs and read conditions, so a cache keeps a digest of the spec and the conditions.

use std::borrow::Cow;

use k8s_openapi::{
    NamespaceResourceScope,
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
};
use kube::Resource;
use ocm_api::work::v1::{ManifestWork, ManifestWorkSpec};
use ocm_runtime::digest::sha256_hex;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

/// A ManifestWork of a ManifestWorkReplicaSet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReplicaWork {
    #[serde(default, deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: Digest,
    #[serde(default)]
    pub(crate) status: Status,
}

/// A ManifestWork that may be deleted once it is complete.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FinishingWork {
    #[serde(default, deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Finish,
    #[serde(default)]
    pub(crate) status: Status,
}

/// The conditions of a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Status {
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

/// What a spec says about the end of a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finish {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delete_option: Option<DeleteOption>,
}

/// When a complete work is deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeleteOption {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl_seconds_after_finished: Option<i64>,
}

/// Identifies the spec of a work. Two specs have the same digest if an agent applies the same: creation times in manifests, which
/// serializers of Go add as null, do not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Digest(Box<str>);

impl Digest {
    pub(crate) fn of(spec: &ManifestWorkSpec) -> Self {
        let mut value = serde_json::to_value(spec).unwrap_or_default();
        let manifests = value.pointer_mut("/workload/manifests").and_then(Value::as_array_mut);
        for manifest in manifests.into_iter().flatten() {
            for path in ["/metadata", "/spec/template/metadata"] {
                let metadata = manifest.pointer_mut(path).and_then(Value::as_object_mut);
                metadata.map(|metadata| metadata.remove("creationTimestamp"));
            }
        }
        Self(sha256_hex(value.to_string().as_bytes()).into())
    }
}

/// Reads what an API server sends, a spec, and what a cache has kept, its digest.
impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(digest) => Ok(Self(digest.into())),
            spec => Ok(Self::of(&serde_json::from_value(spec).map_err(de::Error::custom)?)),
        }
    }
}

/// The metadata that the controllers read.
fn lean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    ObjectMeta::deserialize(deserializer).map(lean_metadata)
}

fn lean_metadata(metadata: ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        annotations: None,
        finalizers: None,
        generate_name: None,
        managed_fields: None,
        owner_references: None,
        self_link: None,
        ..metadata
    }
}

impl From<ManifestWork> for ReplicaWork {
    fn from(work: ManifestWork) -> Self {
        let conditions = work.status.map(|status| status.conditions).unwrap_or_default();
        Self { metadata: lean_metadata(work.metadata), spec: Digest::of(&work.spec), status: Status { conditions } }
    }
}

/// The API server knows both as ManifestWorks.
macro_rules! is_manifest_work {
    ($kind:ty) => {
        impl Resource for $kind {
            type DynamicType = ();
            type Scope = NamespaceResourceScope;

            fn kind(_: &()) -> Cow<'_, str> {
                ManifestWork::kind(&())
            }

            fn group(_: &()) -> Cow<'_, str> {
                ManifestWork::group(&())
            }

            fn version(_: &()) -> Cow<'_, str> {
                ManifestWork::version(&())
            }

            fn plural(_: &()) -> Cow<'_, str> {
                ManifestWork::plural(&())
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

is_manifest_work!(ReplicaWork);
is_manifest_work!(FinishingWork);

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    fn digest(manifest: &Value) -> Digest {
        Digest::of(&from_value(json!({"workload": {"manifests": [manifest]}})).unwrap())
    }

    #[test]
    fn specs_that_differ_in_creation_times_of_manifests_only_are_the_same() {
        let plain = json!({"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": {"metadata": {}}}});
        let mut stamped = plain.clone();
        stamped["metadata"]["creationTimestamp"] = Value::Null;
        stamped["spec"]["template"]["metadata"]["creationTimestamp"] = Value::Null;
        assert_eq!(digest(&plain), digest(&stamped));
        let mut other = plain.clone();
        other["metadata"]["name"] = "b".into();
        assert_ne!(digest(&plain), digest(&other));
        let reordered: Value = serde_json::from_str(
            r#"{"spec":{"template":{"metadata":{}}},"metadata":{"name":"a"},"kind":"Deployment"}"#,
        )
        .unwrap();
        assert_eq!(digest(&plain), digest(&reordered));
    }

    #[test]
    fn a_cache_keeps_a_digest_of_what_the_server_sent_and_reads_it_again() {
        let manifest = json!({"kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "Zm9v"}});
        let condition = json!({"type": "Applied", "status": "True", "reason": "r", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let metadata =
            json!({"name": "w", "namespace": "c1", "uid": "u", "annotations": {"a": "b"}, "labels": {"l": "v"}});
        let sent = json!({"metadata": metadata, "spec": {"workload": {"manifests": [manifest]}},
            "status": {"conditions": [condition]}});
        let read: ReplicaWork = from_value(sent.clone()).unwrap();
        assert_eq!(read.spec, digest(&manifest));
        let kept = to_value(&read).unwrap();
        assert!(!kept.to_string().contains("Zm9v") && kept.pointer("/metadata/annotations").is_none(), "{kept}");
        let again: ReplicaWork = from_value(kept.clone()).unwrap();
        assert_eq!(to_value(&again).unwrap(), kept);
        let written = ReplicaWork::from(from_value::<ManifestWork>(sent).unwrap());
        assert_eq!(to_value(&written).unwrap(), kept, "what a write returns is kept in the same way");
    }

    #[test]
    fn of_a_work_that_may_finish_only_its_end_is_kept() {
        let spec =
            json!({"workload": {"manifests": [{"kind": "Job"}]}, "deleteOption": {"ttlSecondsAfterFinished": 5}});
        let read: FinishingWork = from_value(json!({"metadata": {"name": "w"}, "spec": spec})).unwrap();
        let kept = to_value(&read).unwrap();
        assert_eq!(kept["spec"], json!({"deleteOption": {"ttlSecondsAfterFinished": 5}}));
        assert_eq!(from_value::<FinishingWork>(kept).unwrap().spec, read.spec);
    }
}
