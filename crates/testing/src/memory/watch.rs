//! Watches: the events of the objects of a kind after a resource version.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, stream};
use hyper::body::{Bytes, Frame};
use serde_json::{Value, json};
use tokio::sync::watch as signal;
use tokio::time::{Instant, sleep_until};

use super::MemoryCluster;
use super::answer::{Answer, Shape, frame};
use super::call::Call;
use super::failure::Failure;
use super::kinds::Kind;
use super::select::Selection;
use super::store::{Event, State};

/// How often a watch that asks for bookmarks gets one.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// How long a watch lasts whose request sets no timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1800);
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// One watch.
pub(super) struct Watch {
    cluster: MemoryCluster,
    filter: Filter,
    /// Events up to this version have been sent.
    position: u64,
    /// The events to send first: the initial objects.
    first: String,
    bookmarks: bool,
    bookmark_at: Instant,
    deadline: Instant,
    changes: signal::Receiver<u64>,
    is_over: bool,
}

/// Which objects are watched, and in which form they are sent.
struct Filter {
    id: usize,
    kind: Kind,
    namespace: String,
    selection: Selection,
    shape: Shape,
}

pub(super) fn start(cluster: &MemoryCluster, call: &Call) -> Result<Answer, Failure> {
    let filter = Filter {
        id: call.id,
        kind: call.kind,
        namespace: call.namespace.clone(),
        selection: Selection::read(&call.query)?,
        shape: call.shape,
    };
    let changes = cluster.newest.subscribe();
    let (position, first) = beginning(&cluster.lock(), call, &filter)?;
    let timeout = call.query.get("timeoutSeconds").and_then(|seconds| seconds.parse().ok());
    let now = Instant::now();
    Ok(Answer::Watch(Box::new(Watch {
        cluster: cluster.clone(),
        filter,
        position,
        first,
        bookmarks: call.query.flag("allowWatchBookmarks"),
        bookmark_at: now + BOOKMARK_PERIOD,
        deadline: now + timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
        changes,
        is_over: false,
    })))
}

/// The version at which a watch begins, and the events that it sends first.
fn beginning(state: &State, call: &Call, filter: &Filter) -> Result<(u64, String), Failure> {
    let from = match call.query.get("resourceVersion").unwrap_or("0").parse() {
        Ok(version) => version,
        Err(_) => return Err(Failure::bad_request("resourceVersion: Invalid value: it is not a number")),
    };
    let with_initial = call.query.flag("sendInitialEvents");
    if from != 0 && !with_initial {
        return Ok((from, String::new()));
    }
    let objects = state.list(filter.id, &filter.namespace).filter(|(_, object)| filter.selection.matches(object));
    let mut first: String = objects.map(|(_, object)| filter.line("ADDED", object)).collect();
    if with_initial {
        first.push_str(&filter.bookmark(state.version(), &json!({INITIAL_EVENTS_END: "true"})));
    }
    Ok((state.version(), first))
}

impl Filter {
    /// One event on the wire.
    fn line(&self, type_: &str, object: &Value) -> String {
        let mut line = json!({"type": type_, "object": self.shape.of(object)}).to_string();
        line.push('\n');
        line
    }

    fn bookmark(&self, version: u64, annotations: &Value) -> String {
        let mut object = json!({
            "kind": self.kind.kind, "apiVersion": self.kind.api_version(),
            "metadata": {"resourceVersion": version.to_string(), "creationTimestamp": null},
        });
        if !annotations.is_null() {
            object["metadata"]["annotations"] = annotations.clone();
        }
        self.line("BOOKMARK", &object)
    }

    fn wants(&self, object: Option<&Arc<Value>>) -> bool {
        object.is_some_and(|object| {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            (self.namespace.is_empty() || self.namespace == namespace) && self.selection.matches(object)
        })
    }

    /// The event as this watch sends it: an object that no longer matches is deleted for it.
    fn event(&self, event: &Event) -> Option<String> {
        if event.kind != self.id {
            return None;
        }
        let (old, new) = (event.old.as_ref(), event.new.as_ref());
        match (self.wants(old), self.wants(new)) {
            (false, true) => Some(self.line("ADDED", new?)),
            (true, true) => Some(self.line("MODIFIED", new?)),
            (true, false) => {
                let mut last = Value::clone(old?);
                last["metadata"]["resourceVersion"] = json!(event.version.to_string());
                Some(self.line("DELETED", &last))
            }
            (false, false) => None,
        }
    }
}

impl Watch {
    pub(super) fn frames(self) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
        stream::unfold(self, |mut watch| async move {
            let text = watch.next().await?;
            Some((frame(text), watch))
        })
    }

    async fn next(&mut self) -> Option<String> {
        let first = std::mem::take(&mut self.first);
        if !first.is_empty() {
            return Some(first);
        }
        while !self.is_over {
            let events = self.new_events();
            if !events.is_empty() {
                return Some(events);
            }
            tokio::select! {
                // The sender lives as long as the cluster, which this holds.
                _ = self.changes.changed() => {}
                () = sleep_until(self.bookmark_at), if self.bookmarks => {
                    self.bookmark_at += BOOKMARK_PERIOD;
                    return Some(self.bookmark());
                }
                () = sleep_until(self.deadline) => {
                    self.is_over = true;
                    return self.bookmarks.then(|| self.bookmark());
                }
            }
        }
        None
    }

    fn bookmark(&self) -> String {
        self.filter.bookmark(self.position, &Value::Null)
    }

    /// The events since the last call.
    fn new_events(&mut self) -> String {
        let state = self.cluster.lock();
        let Some(events) = state.since(self.position) else {
            self.is_over = true;
            return expired(self.position);
        };
        let lines = events.filter_map(|event| self.filter.event(event)).collect();
        self.position = self.position.max(state.version());
        lines
    }
}

fn expired(version: u64) -> String {
    let message = format!("too old resource version: {version}");
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "Expired", "code": 410,
    });
    format!("{}\n", json!({"type": "ERROR", "object": status}))
}
