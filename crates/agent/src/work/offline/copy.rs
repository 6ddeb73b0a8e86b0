//! A copy of a work on the managed cluster: what is in it, and whether it may be used. Pure.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::Secret,
    apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference},
};
use kube::{ResourceExt as _, core::ObjectMeta};
use ocm_api::{
    annotations::{OFFLINE_COPY_DIGEST, OFFLINE_COPY_OF},
    conditions::manifest::COMPLETE,
    finalizers,
    labels::OFFLINE_COPY,
    work::v1::{AppliedManifestWork, ManifestCondition, ManifestWork, ManifestWorkStatus},
};
use ocm_runtime::{
    conditions::{self, is_true},
    digest::sha256_hex,
    write,
};

use crate::work::{Settings, ownership};

/// The key of a Secret's data that has the work.
pub(super) const KEY_WORK: &str = "work";
/// Most bytes of data that API servers take in a Secret.
const LARGEST: usize = 1024 * 1024;
/// How many characters of its digest name a copy.
const NAME_LENGTH: usize = 40;

/// Why there is no usable copy of a work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CopyError {
    #[error("its record is missing, is being deleted or is another agent's")]
    NoRecord,
    #[error("its digest does not match its content and its record: it was changed or belongs to another record")]
    Digest,
    #[error("it is of a work of cluster {0:?}")]
    Cluster(String),
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    #[error("the work has {0} bytes, and a Secret takes 1048576 at most: divide the work")]
    TooLarge(usize),
}

/// The name of the copy that belongs to a record.
pub(super) fn name(record: &str) -> String {
    let mut digest = sha256_hex(record.as_bytes());
    digest.truncate(NAME_LENGTH);
    format!("work-{digest}")
}

/// What the agent needs of a work while the hub is away: no status but what says that objects are complete, since those are
/// not applied again.
fn essence(work: &ManifestWork) -> ManifestWork {
    let meta = &work.metadata;
    let metadata = ObjectMeta {
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        generation: meta.generation,
        finalizers: Some(vec![finalizers::MANIFEST_WORK.into()]),
        ..ObjectMeta::default()
    };
    ManifestWork { metadata, spec: work.spec.clone(), status: completion(work) }
}

/// What the status of a work says to be complete: the work, or some of its objects. Only a change of that changes it.
pub(super) fn completion(work: &ManifestWork) -> Option<ManifestWorkStatus> {
    let status = work.status.as_ref()?;
    let mut kept = ManifestWorkStatus { conditions: complete(&status.conditions), ..ManifestWorkStatus::default() };
    kept.resource_status.manifests = status.resource_status.manifests.iter().filter_map(complete_manifest).collect();
    (!kept.conditions.is_empty() || !kept.resource_status.manifests.is_empty()).then_some(kept)
}

fn complete_manifest(manifest: &ManifestCondition) -> Option<ManifestCondition> {
    let conditions = complete(&manifest.conditions);
    let resource_meta = manifest.resource_meta.clone();
    (!conditions.is_empty()).then(|| ManifestCondition { resource_meta, conditions, ..ManifestCondition::default() })
}

/// The condition Complete, if it is true.
fn complete(all: &[Condition]) -> Vec<Condition> {
    let found = conditions::find(all, COMPLETE).filter(|_| is_true(all, COMPLETE));
    found
        .map(|condition| Condition { message: String::new(), observed_generation: None, ..condition.clone() })
        .into_iter()
        .collect()
}

/// The copy of a work as it should be.
pub(super) fn desired(work: &ManifestWork, record: &AppliedManifestWork, namespace: &str) -> Result<Secret, CopyError> {
    let content = serde_json::to_vec(&essence(work)).map_err(|error| CopyError::Unreadable(error.to_string()))?;
    if content.len() > LARGEST {
        return Err(CopyError::TooLarge(content.len()));
    }
    let annotations = [(OFFLINE_COPY_DIGEST, digest(&content, record)), (OFFLINE_COPY_OF, record.name_any())];
    let metadata = ObjectMeta {
        name: Some(name(&record.name_any())),
        namespace: Some(namespace.into()),
        labels: Some([(OFFLINE_COPY.to_owned(), "true".to_owned())].into()),
        annotations: Some(annotations.map(|(key, value)| (key.to_owned(), value)).into()),
        owner_references: Some(vec![owner(record)]),
        ..ObjectMeta::default()
    };
    let data: BTreeMap<_, _> = [(KEY_WORK.to_owned(), ByteString(content))].into();
    Ok(Secret { metadata, data: Some(data), ..Secret::default() })
}

/// Kubernetes deletes the copy with the record.
fn owner(record: &AppliedManifestWork) -> OwnerReference {
    ownership::reference(record)
}

/// Binds the content to one record of one hub.
fn digest(content: &[u8], record: &AppliedManifestWork) -> String {
    let of = format!("{} {} {}", record.spec.hub_hash, record.uid().unwrap_or_default(), sha256_hex(content));
    sha256_hex(of.as_bytes())
}

/// The work of a copy, if it is that of this record.
pub(super) fn read(
    copy: &Secret,
    record: Option<&AppliedManifestWork>,
    settings: &Settings,
) -> Result<ManifestWork, CopyError> {
    let is_usable = |record: &&AppliedManifestWork| {
        settings.owns(record) && record.spec.hub_hash == settings.hub_hash && !write::is_deleting(*record)
    };
    let record = record.filter(is_usable).ok_or(CopyError::NoRecord)?;
    let content = copy.data.as_ref().and_then(|data| data.get(KEY_WORK)).map(|content| content.0.as_slice());
    let content = content.unwrap_or_default();
    if copy.annotations().get(OFFLINE_COPY_DIGEST) != Some(&digest(content, record)) {
        return Err(CopyError::Digest);
    }
    let work: ManifestWork =
        serde_json::from_slice(content).map_err(|error| CopyError::Unreadable(error.to_string()))?;
    match (work.name_any() == record.spec.manifest_work_name, work.namespace().unwrap_or_default()) {
        (false, _) => Err(CopyError::Digest),
        // The agent had another cluster name, and its records outlive that.
        (true, cluster) if cluster != settings.cluster => Err(CopyError::Cluster(cluster)),
        (true, _) => Ok(work),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn settings() -> Settings {
        Settings::new("c1", "https://hub", "agent")
    }

    fn record(change: &Value) -> AppliedManifestWork {
        let hash = settings().hub_hash;
        let mut record = json!({"metadata": {"name": format!("{hash}-w"), "uid": "r1"},
            "spec": {"hubHash": hash, "agentID": "agent", "manifestWorkName": "w"}});
        ocm_apimachinery::merge::apply(&mut record, change);
        serde_json::from_value(record).unwrap()
    }

    fn work(change: &Value) -> ManifestWork {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "data": {"a": "Yg=="}});
        let mut work = json!({"metadata": {"name": "w", "namespace": "c1", "uid": "w1", "generation": 3, "resourceVersion": "9",
            "labels": {"a": "b"}, "finalizers": [finalizers::MANIFEST_WORK, "other"]},
            "spec": {"workload": {"manifests": [secret]}}});
        ocm_apimachinery::merge::apply(&mut work, change);
        serde_json::from_value(work).unwrap()
    }

    fn copy(work: &ManifestWork) -> Secret {
        desired(work, &record(&json!({})), "agents").unwrap()
    }

    fn condition(type_: &str) -> Value {
        json!({"type": type_, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    fn status(type_: &str) -> Value {
        let meta = json!({"ordinal": 0, "group": "", "version": "v1", "kind": "Secret", "resource": "secrets", "name": "s", "namespace": "n"});
        let manifests = json!([{"resourceMeta": meta, "conditions": [condition(type_), condition("Available")]}]);
        json!({"status": {"conditions": [condition(type_)], "resourceStatus": {"manifests": manifests}}})
    }

    #[test]
    fn a_copy_gives_back_the_spec_and_belongs_to_the_record() {
        let copy = copy(&work(&json!({})));
        assert_eq!(copy.metadata.owner_references.as_ref().unwrap()[0].uid, "r1");
        let read = read(&copy, Some(&record(&json!({}))), &settings()).unwrap();
        assert_eq!((read.spec, read.metadata.generation), (work(&json!({})).spec, Some(3)));
        assert_eq!(read.metadata.finalizers.unwrap(), [finalizers::MANIFEST_WORK], "it is not written to the hub");
    }

    #[test]
    fn only_a_change_of_what_is_applied_changes_a_copy() {
        let same = work(&json!({"metadata": {"resourceVersion": "10"}}));
        assert_eq!(copy(&work(&json!({}))), copy(&same));
        assert_eq!(copy(&work(&json!({}))), copy(&work(&status("Applied"))));
        assert_ne!(copy(&work(&json!({}))), copy(&work(&json!({"metadata": {"generation": 4}}))));
    }

    #[test]
    fn what_is_complete_is_part_of_a_copy() {
        let copy = copy(&work(&status("Complete")));
        let status = read(&copy, Some(&record(&json!({}))), &settings()).unwrap().status.unwrap();
        assert_eq!((status.conditions.len(), status.resource_status.manifests[0].conditions.len()), (1, 1));
    }

    #[test]
    fn a_copy_that_was_changed_or_belongs_to_another_record_is_not_used() {
        let (whole, ours) = (copy(&work(&json!({}))), record(&json!({})));
        let mut changed = whole.clone();
        changed.data.as_mut().unwrap().get_mut(KEY_WORK).unwrap().0.push(b' ');
        let unsigned = Secret { metadata: ObjectMeta::default(), ..whole.clone() };
        for broken in [&changed, &unsigned, &Secret { data: None, ..whole.clone() }] {
            assert_eq!(read(broken, Some(&ours), &settings()).unwrap_err(), CopyError::Digest);
        }
        let recreated = record(&json!({"metadata": {"uid": "r2"}}));
        assert_eq!(read(&whole, Some(&recreated), &settings()).unwrap_err(), CopyError::Digest);
        let unusable = [
            json!({"spec": {"agentID": "another"}}),
            json!({"spec": {"hubHash": "another"}}),
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        ];
        for change in unusable {
            assert_eq!(read(&whole, Some(&record(&change)), &settings()).unwrap_err(), CopyError::NoRecord, "{change}");
        }
        assert_eq!(read(&whole, None, &settings()).unwrap_err(), CopyError::NoRecord);
    }

    #[test]
    fn a_copy_of_a_work_of_the_cluster_that_this_agent_was_before_is_not_used() {
        let copy = copy(&work(&json!({"metadata": {"namespace": "c0"}})));
        let read = read(&copy, Some(&record(&json!({}))), &settings());
        assert_eq!(read.unwrap_err(), CopyError::Cluster("c0".into()));
    }

    #[test]
    fn a_work_that_no_secret_can_hold_is_named() {
        let large = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "x".repeat(LARGEST)}});
        let error =
            desired(&work(&json!({"spec": {"workload": {"manifests": [large]}}})), &record(&json!({})), "agents");
        assert!(matches!(error, Err(CopyError::TooLarge(size)) if size > LARGEST));
    }
}
