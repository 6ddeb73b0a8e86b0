//! An object as the agent left it, and how its present state differs from that.

use std::hash::{DefaultHasher, Hasher as _};

use kube::core::{DynamicObject, ObjectMeta};

use super::{
    facts::{Demands, Facts},
    seen::{Seen, hash_json, is_older},
};

/// What of an object has to equal its manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::work) struct Compared {
    /// What the manifest demands of the metadata.
    pub demands: Demands,
    /// Whether the body is compared: that of some kinds is never updated.
    pub body: bool,
}

/// An object as it was when its manifest was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::work) struct Baseline {
    /// A hash of the manifest.
    manifest: [u8; 32],
    demands: Demands,
    /// A digest of all but metadata and status, with what the server has added; `None` where it is not compared.
    body: Option<u64>,
    seen: Seen,
}

/// What the state of an object says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is as it was left, but for what does not count.
    InSync,
    /// This is a state before the agent wrote.
    Outdated,
    /// It differs, or may differ where only reading all of it can tell.
    Drifted(Drift),
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drift {
    Deleted,
    /// It is another object of that name.
    Replaced,
    Metadata,
    Body,
}

impl Baseline {
    pub(in crate::work) fn new(manifest: [u8; 32], compared: Compared, object: &DynamicObject) -> Self {
        let Compared { demands, body } = compared;
        Self { manifest, demands, body: body.then(|| digest(object)), seen: Seen::of(&object.metadata) }
    }

    /// Whether it is of a manifest with this hash.
    pub(super) fn is_of(&self, manifest: [u8; 32]) -> bool {
        self.manifest == manifest
    }

    pub(super) fn is_same_manifest(&self, other: &Self) -> bool {
        self.manifest == other.manifest
    }

    /// Whether the object, which was read, is as it was left: the same version, or another one with the same body, whose
    /// metadata meet the demands.
    pub(super) fn is_kept_by(&self, object: &DynamicObject) -> bool {
        let metadata = &object.metadata;
        if metadata.uid.as_deref().unwrap_or_default() != &*self.seen.uid {
            return false;
        }
        let is_same_version = metadata.resource_version.as_deref() == Some(&self.seen.version);
        is_same_version
            || (self.demands.are_met_by(&Facts::of(metadata)) && self.body.is_none_or(|body| body == digest(object)))
    }

    /// Compares a later state of the object, of which the body is not known.
    pub(super) fn compare(&self, now: &Seen) -> Verdict {
        if is_older(&now.version, &self.seen.version) {
            return Verdict::Outdated;
        }
        match () {
            () if now.uid != self.seen.uid => Verdict::Drifted(Drift::Replaced),
            () if now.is_deleted => Verdict::Drifted(Drift::Deleted),
            () if now.version == self.seen.version => Verdict::InSync,
            () if !self.demands.are_met_by(&now.facts) => Verdict::Drifted(Drift::Metadata),
            () if self.body.is_some() && self.may_differ(now) => Verdict::Drifted(Drift::Body),
            () => Verdict::InSync,
        }
    }

    /// Whether the body may have changed. For a status the generation stays, and so do the writers of the body. The generation
    /// of some kinds does not count every change, so it proves nothing alone.
    fn may_differ(&self, now: &Seen) -> bool {
        let is_hidden = now.generation.is_none() && !self.seen.is_settled;
        is_hidden || now.writers.is_none() || now.writers != self.seen.writers || now.generation != self.seen.generation
    }

    /// Takes over the state in which the object was read, which keeps what counts.
    pub(super) fn refresh(&mut self, metadata: &ObjectMeta) {
        self.seen = Seen::of(metadata);
    }

    /// The state in which it was left.
    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// What is known of the object without reading it.
    pub(super) fn metadata(&self, name: &str, namespace: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            uid: Some(self.seen.uid.to_string()),
            resource_version: Some(self.seen.version.to_string()),
            generation: self.seen.generation,
            ..ObjectMeta::default()
        }
    }
}

/// A digest of an object without its metadata and status.
fn digest(object: &DynamicObject) -> u64 {
    let mut hasher = DefaultHasher::new();
    let body = object.data.as_object().into_iter().flatten().filter(|(field, _)| *field != "status");
    body.for_each(|(field, value)| hash_json(&mut hasher, field, value));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::work::ownership::{Ownership, tests::owner};

    const MANIFEST: [u8; 32] = [7; 32];

    fn deployment(change: &Value) -> DynamicObject {
        let writer = json!({"manager": "work-agent", "operation": "Update", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:spec": {"f:replicas": {}}}});
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": "10", "generation": 2,
                "labels": {"app": "a"}, "ownerReferences": [owner("hub-w", "1")], "managedFields": [writer]},
            "spec": {"replicas": 1, "revisionHistoryLimit": 10}, "status": {"readyReplicas": 1},
        });
        ocm_apimachinery::merge::apply(&mut object, change);
        serde_json::from_value(object).unwrap()
    }

    fn compared(body: bool) -> Compared {
        let manifest = serde_json::from_value(json!({"labels": {"app": "a"}})).unwrap();
        Compared { demands: Demands::of(&manifest, &Ownership::Owned(owner("hub-w", "1"))), body }
    }

    fn baseline(body: bool) -> Baseline {
        Baseline::new(MANIFEST, compared(body), &deployment(&json!({})))
    }

    #[test]
    fn an_object_whose_status_changes_is_as_it_was_left() {
        let kept = |change: &Value| baseline(true).is_kept_by(&deployment(change));
        assert!(kept(&json!({})));
        assert!(kept(&json!({"metadata": {"resourceVersion": "11"}, "status": {"readyReplicas": 0}})));
        assert!(kept(&json!({"metadata": {"resourceVersion": "11", "labels": {"theirs": "x"}}})));
        assert!(!kept(&json!({"metadata": {"resourceVersion": "11"}, "spec": {"replicas": 2}})));
        assert!(
            !kept(&json!({"metadata": {"resourceVersion": "11"}, "spec": {"paused": true}})),
            "not in the manifest"
        );
        assert!(!kept(&json!({"metadata": {"resourceVersion": "11", "labels": {"app": "b"}}})));
        assert!(!kept(&json!({"metadata": {"resourceVersion": "11", "ownerReferences": []}})));
        assert!(!kept(&json!({"metadata": {"uid": "2"}})), "another object of that name");
    }

    #[test]
    fn a_body_that_is_never_updated_is_not_compared() {
        let other = deployment(&json!({"metadata": {"resourceVersion": "11"}, "spec": {"replicas": 2}}));
        assert!(baseline(false).is_kept_by(&other));
        assert_eq!(baseline(false).compare(&Seen::of(&other.metadata)), Verdict::InSync);
    }

    fn verdict(change: &Value) -> Verdict {
        baseline(true).compare(&Seen::of(&deployment(&json!({"metadata": change})).metadata))
    }

    #[test]
    fn a_change_of_the_status_is_no_drift() {
        let status = json!({"manager": "kcm", "operation": "Update", "subresource": "status",
            "time": "2026-01-01T00:00:09Z", "fieldsV1": {"f:status": {"f:readyReplicas": {}}}});
        let writer = deployment(&json!({})).metadata.managed_fields.unwrap().remove(0);
        assert_eq!(verdict(&json!({"resourceVersion": "11", "managedFields": [writer, status]})), Verdict::InSync);
        assert_eq!(verdict(&json!({"resourceVersion": "10"})), Verdict::InSync);
    }

    #[test]
    fn what_counts_is_drift() {
        let later = |change: Value| {
            let mut change = change;
            change["resourceVersion"] = json!("11");
            verdict(&change)
        };
        let other = json!({"manager": "kubectl-edit", "operation": "Update", "time": "2026-01-01T00:00:09Z",
            "fieldsV1": {"f:spec": {"f:replicas": {}}}});
        assert_eq!(later(json!({"generation": 3})), Verdict::Drifted(Drift::Body));
        assert_eq!(later(json!({"managedFields": [other]})), Verdict::Drifted(Drift::Body), "a kind that counts less");
        assert_eq!(later(json!({"managedFields": null})), Verdict::Drifted(Drift::Body), "nothing proves the contrary");
        assert_eq!(later(json!({"labels": {"app": "b"}})), Verdict::Drifted(Drift::Metadata));
        assert_eq!(later(json!({"labels": {"theirs": "b"}})), Verdict::InSync);
        assert_eq!(later(json!({"uid": "2"})), Verdict::Drifted(Drift::Replaced));
        let gone = Seen::of(&deployment(&json!({"metadata": {"resourceVersion": "11"}})).metadata).deleted();
        assert_eq!(baseline(true).compare(&gone), Verdict::Drifted(Drift::Deleted));
    }

    #[test]
    fn a_second_write_in_the_same_second_is_found_by_one_read_where_no_generation_counts_it() {
        let without_generation = |change: Value| {
            let mut object = deployment(&json!({"metadata": {"generation": null}}));
            object.metadata = serde_json::from_value({
                let mut metadata = serde_json::to_value(&object.metadata).unwrap();
                ocm_apimachinery::merge::apply(&mut metadata, &change);
                metadata
            })
            .unwrap();
            object
        };
        let left = without_generation(json!({}));
        let mut baseline = Baseline::new(MANIFEST, compared(true), &left);
        let later = |version: &str| {
            let label = json!({"manager": "kubectl", "operation": "Update", "time": "2026-01-01T00:00:09Z",
                "fieldsV1": {"f:metadata": {"f:labels": {"f:theirs": {}}}}});
            let writer = json!(left.metadata.managed_fields.as_ref().unwrap()[0]);
            without_generation(json!({"resourceVersion": version, "managedFields": [writer, label]})).metadata
        };
        let same_second = without_generation(json!({"resourceVersion": "11"})).metadata;
        for unexplained in [&same_second, &later("11")] {
            assert_eq!(baseline.compare(&Seen::of(unexplained)), Verdict::Drifted(Drift::Body));
        }
        baseline.refresh(&later("11"));
        assert_eq!(baseline.compare(&Seen::of(&later("12"))), Verdict::InSync, "it is not read again and again");
    }

    #[test]
    fn what_was_there_before_the_agent_wrote_is_no_drift() {
        assert_eq!(verdict(&json!({"resourceVersion": "9", "uid": "0"})), Verdict::Outdated);
        assert_eq!(verdict(&json!({"resourceVersion": "9", "generation": 1})), Verdict::Outdated);
    }
}
