//! Labels, annotations and owner references as hashes: what an object has, and what its manifest demands.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher as _},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::work::ownership::Ownership;

/// A key of a manifest with this suffix requests that the key without it is removed.
const REMOVAL: char = '-';

/// What the metadata of an object contains: for each label, annotation and owner reference one hash with its value, and one
/// without. Sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts(Box<[u64]>);

/// What a manifest demands of the metadata of its object. As long as the demands are met, merging the metadata of the
/// manifest changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::work) struct Demands {
    present: Box<[u64]>,
    absent: Box<[u64]>,
}

impl Facts {
    pub(super) fn of(metadata: &ObjectMeta) -> Self {
        let maps = [("label", &metadata.labels), ("annotation", &metadata.annotations)];
        let pairs = maps.into_iter().flat_map(|(what, map)| {
            entries(map.as_ref()).flat_map(move |(key, value)| [hash((what, key, value)), hash((what, key))])
        });
        let owners = metadata.owner_references.iter().flatten();
        let owners = owners.flat_map(|owner| [owner_hash(owner, &owner.uid), owner_hash(owner, "")]);
        let mut facts: Vec<_> = pairs.chain(owners).collect();
        facts.sort_unstable();
        Self(facts.into())
    }

    fn contain(&self, fact: u64) -> bool {
        self.0.binary_search(&fact).is_ok()
    }
}

impl Demands {
    /// Those of a manifest whose object is owned so.
    pub(in crate::work) fn of(manifest: &ObjectMeta, ownership: &Ownership) -> Self {
        let (mut present, mut absent) = owner_demands(ownership);
        for (what, map) in [("label", &manifest.labels), ("annotation", &manifest.annotations)] {
            for (key, value) in entries(map.as_ref()) {
                match key.strip_suffix(REMOVAL) {
                    Some(removed) => absent.push(hash((what, removed))),
                    None => present.push(hash((what, key, value))),
                }
            }
        }
        Self { present: present.into(), absent: absent.into() }
    }

    pub(super) fn are_met_by(&self, facts: &Facts) -> bool {
        self.present.iter().all(|fact| facts.contain(*fact)) && !self.absent.iter().any(|fact| facts.contain(*fact))
    }
}

fn owner_demands(ownership: &Ownership) -> (Vec<u64>, Vec<u64>) {
    match ownership {
        Ownership::Owned(owner) => (vec![owner_hash(owner, &owner.uid)], Vec::new()),
        Ownership::Orphaned(owners) => (Vec::new(), owners.iter().map(|owner| owner_hash(owner, "")).collect()),
    }
}

fn owner_hash(owner: &OwnerReference, uid: &str) -> u64 {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    hash(("owner", group, &owner.kind, &owner.name, uid))
}

fn entries(map: Option<&BTreeMap<String, String>>) -> impl Iterator<Item = (&str, &str)> {
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()))
}

fn hash(fact: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    fact.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::work::ownership::tests::owner;

    fn metadata(value: &Value) -> ObjectMeta {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn met(manifest: &Value, ownership: &Ownership, object: &Value) -> bool {
        Demands::of(&metadata(manifest), ownership).are_met_by(&Facts::of(&metadata(object)))
    }

    #[test]
    fn labels_and_annotations_of_the_manifest_count_and_those_of_others_do_not() {
        let owned = Ownership::Owned(owner("hub-w", "1"));
        let manifest = json!({"labels": {"a": "1"}, "annotations": {"b": "2", "gone-": ""}});
        let with = |labels: Value, annotations: Value| {
            let object =
                json!({"labels": labels, "annotations": annotations, "ownerReferences": [owner("hub-w", "1")]});
            met(&manifest, &owned, &object)
        };
        assert!(with(json!({"a": "1", "theirs": "x"}), json!({"b": "2", "theirs": "y"})));
        assert!(!with(json!({"a": "2"}), json!({"b": "2"})), "another value");
        assert!(!with(json!({}), json!({"a": "1", "b": "2"})), "an annotation is no label");
        assert!(!with(json!({"a": "1"}), json!({"b": "2", "gone": "x"})), "the manifest requests that it is removed");
    }

    #[test]
    fn an_owned_object_has_our_reference_and_an_orphaned_one_does_not() {
        let with = |owners: &[OwnerReference]| json!({"ownerReferences": owners});
        let (ours, other) = (owner("hub-w", "1"), owner("hub-x", "2"));
        let owned = Ownership::Owned(ours.clone());
        assert!(met(&json!({}), &owned, &with(&[other.clone(), ours.clone()])));
        assert!(!met(&json!({}), &owned, &with(&[other.clone(), owner("hub-w", "former")])));
        let orphaned = Ownership::Orphaned(vec![ours.clone()]);
        assert!(met(&json!({}), &orphaned, &with(&[other])));
        assert!(!met(&json!({}), &orphaned, &with(&[owner("hub-w", "former")])));
    }
}
