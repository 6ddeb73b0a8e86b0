//! What a watch has brought of an object.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde_json::Value;

use super::facts::Facts;

/// Kubernetes records writes to the status under this subresource.
const STATUS: &str = "status";
/// The parts of an object that are not its body, as managed fields name them.
const NOT_BODY: [&str; 2] = ["f:metadata", "f:status"];

/// The state of an object, as small as it can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) uid: Box<str>,
    pub(super) version: Box<str>,
    pub(super) generation: Option<i64>,
    /// A digest of who wrote the body, and when; `None` where the server does not say.
    pub(super) writers: Option<u64>,
    /// Whether the second of the last write to the body was over. Another write by the same manager in the same second does not
    /// change the writers, since the times of managed fields have whole seconds.
    pub(super) is_settled: bool,
    pub(super) facts: Facts,
    pub(super) is_deleted: bool,
}

impl Seen {
    pub(super) fn of(metadata: &ObjectMeta) -> Self {
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        let entries = metadata.managed_fields.as_deref().unwrap_or_default();
        Self {
            uid: text(&metadata.uid),
            version: text(&metadata.resource_version),
            generation: metadata.generation,
            writers: writers(entries),
            is_settled: last(entries) > last(entries.iter().filter(|entry| is_of_body(entry))),
            facts: Facts::of(metadata),
            is_deleted: false,
        }
    }

    /// The same object, which is gone.
    pub(super) fn deleted(self) -> Self {
        Self { is_deleted: true, ..self }
    }
}

/// Whether one version of an object is older than another. `false` where versions are not numbers.
pub(super) fn is_older(version: &str, than: &str) -> bool {
    let number = |version: &str| version.parse::<u64>().ok();
    number(version).zip(number(than)).is_some_and(|(version, than)| version < than)
}

/// A write that changes the body changes the entry of its manager: its fields, or the time. One that changes nothing but
/// metadata or status does not count.
fn writers(entries: &[ManagedFieldsEntry]) -> Option<u64> {
    // Servers list them in an order that depends on the times of all of them.
    let of_body = entries.iter().filter_map(writer);
    (!entries.is_empty()).then(|| of_body.fold(0, u64::wrapping_add))
}

/// The second of the last write.
fn last<'a>(entries: impl IntoIterator<Item = &'a ManagedFieldsEntry>) -> Option<i64> {
    entries.into_iter().filter_map(|entry| entry.time.as_ref()).map(|time| time.0.as_second()).max()
}

fn is_of_body(entry: &ManagedFieldsEntry) -> bool {
    body(entry).next().is_some()
}

/// The fields of the body that the manager of the entry has written.
fn body(entry: &ManagedFieldsEntry) -> impl Iterator<Item = (&String, &Value)> {
    let fields = entry.fields_v1.as_ref().filter(|_| entry.subresource.as_deref() != Some(STATUS));
    let fields = fields.and_then(|fields| fields.0.as_object()).into_iter().flatten();
    fields.filter(|(field, _)| !NOT_BODY.contains(&field.as_str()))
}

fn writer(entry: &ManagedFieldsEntry) -> Option<u64> {
    let mut body = body(entry).peekable();
    body.peek()?;
    let mut hasher = DefaultHasher::new();
    (&entry.manager, &entry.operation, &entry.subresource).hash(&mut hasher);
    entry.time.as_ref().map(|time| time.0.as_second()).hash(&mut hasher);
    body.for_each(|(field, value)| hash_json(&mut hasher, field, value));
    Some(hasher.finish())
}

/// Hashes a field of a JSON object without making a text of it.
pub(super) fn hash_json(hasher: &mut DefaultHasher, field: &str, value: &Value) {
    field.hash(hasher);
    // Serializing a JSON value does not fail.
    serde_json::to_writer(IntoHasher(hasher), value).unwrap_or_default();
}

struct IntoHasher<'a>(&'a mut DefaultHasher);

impl io::Write for IntoHasher<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, subresource: &str, second: u8, fields: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "subresource": subresource, "time": format!("2026-01-01T00:00:0{second}Z"), "fieldsV1": fields})
    }

    fn writers_of(entries: &[Value]) -> Option<u64> {
        Seen::of(&serde_json::from_value(json!({"managedFields": entries})).unwrap()).writers
    }

    #[test]
    fn who_writes_metadata_or_status_is_no_writer_of_the_body() {
        let ours = entry("work-agent", "", 1, &json!({"f:spec": {"f:replicas": {}}, "f:metadata": {"f:labels": {}}}));
        let status = entry("kcm", "status", 2, &json!({"f:status": {"f:replicas": {}}}));
        let labels = entry("kubectl", "", 3, &json!({"f:metadata": {"f:labels": {"f:x": {}}}}));
        let inline_status = entry("controller", "", 3, &json!({"f:status": {"f:phase": {}}}));
        let before = writers_of(std::slice::from_ref(&ours));
        assert!(before.is_some());
        assert_eq!(writers_of(&[labels, status, inline_status, ours]), before);
    }

    #[test]
    fn a_write_to_the_body_changes_the_writers() {
        let of = |manager, second, fields| writers_of(&[entry(manager, "", second, fields)]);
        let replicas = &json!({"f:spec": {"f:replicas": {}}});
        let before = of("a", 1, replicas);
        assert_ne!(of("b", 1, replicas), before);
        assert_ne!(of("a", 2, replicas), before, "the same field again");
        assert_ne!(of("a", 1, &json!({"f:spec": {}})), before);
        let scale = writers_of(&[entry("hpa", "scale", 2, replicas), entry("a", "", 1, replicas)]);
        assert_ne!(scale, before, "a subresource may change the body");
    }

    #[test]
    fn a_later_write_of_anything_shows_that_the_second_of_the_last_write_to_the_body_was_over() {
        let is_settled = |entries: &[Value]| {
            Seen::of(&serde_json::from_value(json!({ "managedFields": entries })).unwrap()).is_settled
        };
        let body = |second| entry("a", "", second, &json!({"f:data": {"f:a": {}}}));
        let status = |second| entry("kcm", "status", second, &json!({"f:status": {"f:x": {}}}));
        assert!(!is_settled(&[body(1)]) && !is_settled(&[body(1), status(1)]) && !is_settled(&[status(1), body(2)]));
        assert!(is_settled(&[body(1), status(2)]));
        assert!(!is_settled(&[]), "nothing is known");
    }

    #[test]
    fn a_server_without_managed_fields_says_nothing_about_writers() {
        assert_eq!(writers_of(&[]), None);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(is_older("9", "10") && !is_older("10", "9") && !is_older("10", "10"));
        assert!(!is_older("a", "10"), "nothing is known about the order of texts");
    }
}
