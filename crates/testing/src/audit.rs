//! The audit log: what was written to a control plane, and by whom.

use std::{
    fmt,
    fs::File,
    io::{BufRead as _, BufReader, Seek as _, SeekFrom},
    path::PathBuf,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::ControlPlane;

/// The audit log of a kube-apiserver that was started with [`audit`](crate::ControlPlaneBuilder::audit): every request that
/// may write, in the order of the responses.
#[derive(Clone, Debug)]
pub struct AuditLog {
    path: PathBuf,
}

/// One request that may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The user.
    pub user: String,
    /// The resource, with its subresource after a slash, such as `managedclusters/status`.
    pub resource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Empty if the server generated the name.
    pub name: String,
    /// The HTTP status of the response.
    pub code: u16,
}

impl AuditLog {
    /// # Errors
    /// If the control plane keeps none.
    pub fn of(plane: &ControlPlane) -> Result<Self> {
        let path = plane.audit_log().context("this control plane keeps no audit log: start it with audit(true)")?;
        Ok(Self { path: path.to_owned() })
    }

    /// The current end of the log.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn position(&self) -> Result<u64> {
        let log = std::fs::metadata(&self.path)
            .with_context(|| format!("failed to read the size of {}", self.path.display()))?;
        Ok(log.len())
    }

    /// All entries.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn all(&self) -> Result<Vec<Write>> {
        self.since(0)
    }

    /// The entries after a [`position`](Self::position).
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn since(&self, position: u64) -> Result<Vec<Write>> {
        let mut file = File::open(&self.path).with_context(|| format!("failed to read {}", self.path.display()))?;
        file.seek(SeekFrom::Start(position))?;
        let mut writes = Vec::new();
        for line in BufReader::new(file).lines() {
            // The last line may be incomplete.
            writes.extend(serde_json::from_str::<Event>(&line?).map(Write::from));
        }
        Ok(writes)
    }
}

impl Write {
    /// Whether it succeeded.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.code < 300
    }

    /// Whether it renews, acquires or releases an existing lease.
    #[must_use]
    pub fn is_lease_update(&self) -> bool {
        self.resource == "leases" && (self.verb == "update" || self.verb == "patch")
    }
}

/// `verb resource`, by which writes are counted.
impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)
    }
}

impl From<Event> for Write {
    fn from(event: Event) -> Self {
        let Object { mut resource, subresource, namespace, name } = event.object_ref;
        if !subresource.is_empty() {
            resource = format!("{resource}/{subresource}");
        }
        Self {
            verb: event.verb,
            user: event.user.username,
            resource,
            namespace,
            name,
            code: event.response_status.code,
        }
    }
}

/// As kube-apiserver writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    user: User,
    #[serde(default)]
    object_ref: Object,
    #[serde(default)]
    response_status: Response,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response {
    code: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_says_who_wrote_what_and_how_it_ended() {
        let event = r#"{"verb": "patch", "user": {"username": "u"}, "responseStatus": {"code": 409}, "objectRef":
            {"resource": "managedclusters", "subresource": "status", "name": "c1"}, "stage": "ResponseComplete"}"#;
        let write = Write::from(serde_json::from_str::<Event>(event).unwrap());
        assert_eq!(write.to_string(), "patch managedclusters/status");
        assert_eq!((write.user.as_str(), write.name.as_str(), write.is_done()), ("u", "c1", false));
    }

    #[test]
    fn a_new_lease_is_not_the_update_of_one() {
        let lease = |verb: &str| Write {
            verb: verb.into(),
            user: String::new(),
            resource: "leases".into(),
            namespace: "ns".into(),
            name: "l".into(),
            code: 200,
        };
        assert!(lease("update").is_lease_update() && lease("patch").is_lease_update());
        assert!(!lease("create").is_lease_update() && !lease("delete").is_lease_update());
    }
}
