//! Errors, as the Status objects of a kube-apiserver.

use serde_json::{Map, Value, json};

use super::kinds::Kind;

/// Why a request is refused.
#[derive(Debug)]
pub(super) enum Failure {
    /// The API has no such path.
    NoSuchPath,
    Status(Box<Status>),
}

#[derive(Debug)]
pub(super) struct Status {
    pub(super) code: u16,
    reason: &'static str,
    message: String,
    details: Option<Map<String, Value>>,
}

impl Status {
    pub(super) fn body(self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if let Some(details) = self.details {
            body["details"] = Value::Object(details);
        }
        body
    }
}

impl Failure {
    fn status(code: u16, reason: &'static str, message: String) -> Self {
        Self::Status(Box::new(Status { code, reason, message, details: None }))
    }

    /// About the request as such.
    fn general(code: u16, reason: &'static str, message: String) -> Self {
        Self::Status(Box::new(Status { code, reason, message, details: Some(Map::new()) }))
    }

    /// A path without a kind in a group that has others.
    pub(super) fn no_such_resource() -> Self {
        Self::general(404, "NotFound", "the server could not find the requested resource".into())
    }

    /// About one object.
    fn about(kind: &Kind, name: &str, code: u16, reason: &'static str, message: String) -> Self {
        let details = Some(details(kind, name, kind.plural));
        Self::Status(Box::new(Status { code, reason, message, details }))
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::status(400, "BadRequest", message.into())
    }

    pub(super) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::general(405, "MethodNotAllowed", message.into())
    }

    pub(super) fn media_type(media: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: \
             application/merge-patch+json, not {media}"
        );
        Self::general(415, "UnsupportedMediaType", message)
    }

    pub(super) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::about(kind, name, 404, "NotFound", format!("{} {name:?} not found", kind.qualified()))
    }

    pub(super) fn exists(kind: &Kind, name: &str) -> Self {
        Self::about(kind, name, 409, "AlreadyExists", format!("{} {name:?} already exists", kind.qualified()))
    }

    /// The object is not the one that the writer has read, or was changed since.
    pub(super) fn conflict(kind: &Kind, name: &str, cause: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {cause}", kind.qualified());
        Self::about(kind, name, 409, "Conflict", message)
    }

    pub(super) fn stale(kind: &Kind, name: &str) -> Self {
        let cause = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, cause)
    }

    /// A precondition of a deletion is not met.
    pub(super) fn precondition(kind: &Kind, name: &str, cause: &str) -> Self {
        Self::conflict(kind, name, cause).calling_it(kind.kind)
    }

    /// The details identify the object; they name its kind or its resource.
    pub(super) fn calling_it(mut self, called: &str) -> Self {
        if let Self::Status(status) = &mut self
            && let Some(details) = &mut status.details
        {
            details.insert("kind".into(), called.into());
        }
        self
    }

    /// `reason` is that of the field, such as `FieldValueInvalid`.
    pub(super) fn invalid(kind: &Kind, name: &str, reason: &str, field: &str, cause: &str) -> Self {
        let message = match kind.group {
            "" => format!("{} {name:?} is invalid: {field}: {cause}", kind.kind),
            group => format!("{}.{group} {name:?} is invalid: {field}: {cause}", kind.kind),
        };
        let mut details = details(kind, name, kind.kind);
        details.insert("causes".into(), json!([{"reason": reason, "message": cause, "field": field}]));
        Self::Status(Box::new(Status { code: 422, reason: "Invalid", message, details: Some(details) }))
    }

    pub(super) fn terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let message = format!(
            "{} {name:?} is forbidden: unable to create new content in namespace {namespace} because it is being \
             terminated",
            kind.qualified()
        );
        let mut details = details(kind, name, kind.plural);
        let cause = format!("namespace {namespace} is being terminated");
        let causes = json!([{"reason": "NamespaceTerminating", "message": cause, "field": "metadata.namespace"}]);
        details.insert("causes".into(), causes);
        Self::Status(Box::new(Status { code: 403, reason: "Forbidden", message, details: Some(details) }))
    }
}

/// The details of a Status about its object.
pub(super) fn details(kind: &Kind, name: &str, called: &str) -> Map<String, Value> {
    let group = Some(kind.group).filter(|group| !group.is_empty());
    let entries = [("name", Some(name).filter(|name| !name.is_empty())), ("group", group), ("kind", Some(called))];
    entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into()))).collect()
}
