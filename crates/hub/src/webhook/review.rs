//! What reviews of conversion and of admission have in common.

use kube::core::TypeMeta;
use ocm_api::webhooks::REVIEW_VERSIONS;
use serde::{Serialize, de::DeserializeOwned};

/// Why a request gets no review as its answer.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// It is no JSON, or not that of a review.
    #[error("the request is no {kind}: {source}")]
    Unreadable {
        /// What it should be.
        kind: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// It is another kind, or another version of it.
    #[error("the request is a {found} of {api_version}; this webhook answers {kind} of {group}/v1 and v1beta1 only")]
    Unknown {
        /// Its API version.
        api_version: String,
        /// Its kind.
        found: String,
        /// The group that it should be of.
        group: &'static str,
        /// What it should be.
        kind: &'static str,
    },
    /// It has no request.
    #[error("the {kind} has no request")]
    NoRequest {
        /// What it is.
        kind: &'static str,
    },
    /// The answer could not be written.
    #[error("failed to write the answer: {0}")]
    Unwritable(String),
}

/// What to answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// A review, as JSON.
    pub body: Vec<u8>,
    /// Why the change or conversion was refused, if it was.
    pub failure: Option<String>,
}

/// A kind of review.
#[derive(Clone, Copy, Debug)]
pub(super) struct Review {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
}

impl Review {
    pub(super) fn read<R: DeserializeOwned>(self, body: &[u8]) -> Result<R, ReviewError> {
        serde_json::from_slice(body).map_err(|source| ReviewError::Unreadable { kind: self.kind, source })
    }

    /// Refuses other kinds, and versions that nobody here knows.
    pub(super) fn check(self, types: &TypeMeta) -> Result<(), ReviewError> {
        let version = types.api_version.strip_prefix(self.group).and_then(|rest| rest.strip_prefix('/'));
        if types.kind == self.kind && version.is_some_and(|version| REVIEW_VERSIONS.contains(&version)) {
            return Ok(());
        }
        let (api_version, found) = (types.api_version.clone(), types.kind.clone());
        Err(ReviewError::Unknown { api_version, found, group: self.group, kind: self.kind })
    }

    pub(super) fn no_request(self) -> ReviewError {
        ReviewError::NoRequest { kind: self.kind }
    }
}

pub(super) fn json(review: &impl Serialize) -> Result<Vec<u8>, ReviewError> {
    serde_json::to_vec(review).map_err(|error| ReviewError::Unwritable(error.to_string()))
}
