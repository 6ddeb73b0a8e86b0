//! The latest recoveries of a cluster, in an annotation of its namespace.
//!
//! There are never more than the policy allows within its window, and older ones are dropped, so the annotation stays small.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::Time};
use kube::ResourceExt as _;
use ocm_api::recovery::RECORD_ANNOTATION;
use serde::{Deserialize, Serialize};

/// One recovery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Recovery {
    pub(super) at: Time,
    /// The name and the uid of the request that was approved.
    pub(super) request: String,
    pub(super) uid: String,
    /// Who made it.
    pub(super) requester: String,
    /// The SHA-256 of the former certificate.
    pub(super) certificate: String,
}

/// The recoveries of a cluster, the oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Recoveries(Vec<Recovery>);

impl Recoveries {
    /// Reads those within the window; `None` if the annotation cannot be read.
    pub(super) fn of(namespace: &Namespace, now: Timestamp, window: Duration) -> Option<Self> {
        let Some(text) = namespace.annotations().get(RECORD_ANNOTATION) else { return Some(Self::default()) };
        let mut all: Vec<Recovery> = serde_json::from_str(text).ok()?;
        all.retain(|recovery| is_within(recovery.at.0, now, window));
        Some(Self(all))
    }

    /// Whether this request was recorded: the hub was stopped before it approved it.
    pub(super) fn has(&self, uid: &str) -> bool {
        self.0.iter().any(|recovery| recovery.uid == uid)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// When the number of recoveries is less than now.
    pub(super) fn until(&self, window: Duration) -> Option<Timestamp> {
        self.0.iter().map(|recovery| recovery.at.0).min()?.checked_add(window).ok()
    }

    /// The namespace with one more.
    pub(super) fn with(mut self, new: Recovery, namespace: &Namespace) -> Namespace {
        self.0.push(new);
        let mut namespace = namespace.clone();
        // Strings and times always serialize.
        let text = serde_json::to_string(&self.0).unwrap_or_default();
        namespace.annotations_mut().insert(RECORD_ANNOTATION.into(), text);
        namespace
    }
}

/// One from the future counts: clocks are set back.
fn is_within(at: Timestamp, now: Timestamp, window: Duration) -> bool {
    at.checked_add(window).is_ok_and(|until| until > now)
}
