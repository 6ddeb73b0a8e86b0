//! Which objects an AppliedManifestWork lists.
//!
//! An object is listed before it is created, without a uid: if the agent is stopped right after the creation, and the object
//! is taken out of the work before the agent is started again, it is still found and deleted. (Only if the record owns it, as
//! with all objects that a record lists.) The status of a record cannot be written by the request that creates the record, so
//! a new one lists the objects of its first pass in an annotation, which costs no request.

use std::collections::HashSet;

use kube::ResourceExt as _;
use ocm_api::{
    annotations::FIRST_RESOURCES,
    work::v1::{AppliedManifestResourceMeta, AppliedManifestWork},
};

use super::identifier;

/// How many bytes the annotation has at most. Longer lists are written to the status.
const LONGEST: usize = 32 * 1024;

/// The objects that a record lists: those of its status, or those of its first pass while it has no status.
pub(super) fn listed(record: &AppliedManifestWork) -> Vec<AppliedManifestResourceMeta> {
    if let Some(status) = &record.status {
        return status.applied_resources.clone();
    }
    let first = record.annotations().get(FIRST_RESOURCES).and_then(|list| serde_json::from_str(list).ok());
    first.unwrap_or_default()
}

/// Lists the objects of the first pass in a record that is to be created, unless there are too many.
pub(super) fn list_first(record: &mut AppliedManifestWork, planned: &[AppliedManifestResourceMeta]) {
    // Serializing a list of texts does not fail.
    let list = serde_json::to_string(planned).unwrap_or_default();
    if !planned.is_empty() && list.len() <= LONGEST {
        record.annotations_mut().insert(FIRST_RESOURCES.to_owned(), list);
    }
}

/// The record with these objects in its status, in an order that does not change by itself.
pub(super) fn with_listed(
    record: &AppliedManifestWork,
    mut resources: Vec<AppliedManifestResourceMeta>,
) -> AppliedManifestWork {
    let mut record = record.clone();
    resources.sort_by(|a, b| key(a).cmp(&key(b)));
    if !resources.is_empty() || record.status.is_some() {
        record.status.get_or_insert_default().applied_resources = resources;
    }
    record
}

/// The record with the objects that it lacks; `None` if it lists them all.
pub(super) fn with_planned(
    record: &AppliedManifestWork,
    planned: &[AppliedManifestResourceMeta],
) -> Option<AppliedManifestWork> {
    let listed = listed(record);
    let missing = not_among(planned, &listed);
    (!missing.is_empty()).then(|| with_listed(record, [listed, missing].concat()))
}

/// The entries for objects that no entry of the other list is for.
pub(super) fn not_among(
    resources: &[AppliedManifestResourceMeta],
    others: &[AppliedManifestResourceMeta],
) -> Vec<AppliedManifestResourceMeta> {
    let others: HashSet<_> = others.iter().map(identifier::of_recorded).collect();
    resources.iter().filter(|resource| !others.contains(&identifier::of_recorded(resource))).cloned().collect()
}

fn key(resource: &AppliedManifestResourceMeta) -> [&String; 5] {
    [&resource.group, &resource.version, &resource.resource, &resource.namespace, &resource.name]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str) -> AppliedManifestResourceMeta {
        AppliedManifestResourceMeta {
            version: "v1".into(),
            resource: "configmaps".into(),
            name: name.into(),
            namespace: "ns".into(),
            ..AppliedManifestResourceMeta::default()
        }
    }

    #[test]
    fn a_new_record_lists_the_objects_of_its_first_pass_until_its_status_does() {
        let mut record = AppliedManifestWork::default();
        list_first(&mut record, &[resource("a"), resource("b")]);
        assert_eq!(listed(&record), [resource("a"), resource("b")]);
        assert_eq!(with_planned(&record, &[resource("b")]), None, "nothing to write");
        let more = with_planned(&record, &[resource("c")]).unwrap();
        assert_eq!(listed(&more), [resource("a"), resource("b"), resource("c")], "the first objects are not lost");
        let emptied = with_listed(&with_listed(&more, vec![resource("c")]), Vec::new());
        assert_eq!(listed(&emptied), [], "what the first pass applied was deleted");
    }

    #[test]
    fn a_long_list_and_a_malformed_one_are_no_annotation() {
        let mut record = AppliedManifestWork::default();
        list_first(&mut record, &vec![resource(&"x".repeat(250)); 200]);
        assert_eq!(record.metadata.annotations, None);
        record.annotations_mut().insert(FIRST_RESOURCES.into(), "[{]".into());
        assert_eq!(listed(&record), []);
    }

    #[test]
    fn a_record_lists_objects_in_an_order_that_does_not_depend_on_the_spec() {
        let record = AppliedManifestWork::default();
        assert_eq!(listed(&with_listed(&record, vec![resource("b"), resource("a")])), [resource("a"), resource("b")]);
        assert_eq!(with_listed(&record, vec![]).status, None, "nothing to record is nothing to write");
    }
}
