//! Responses, and their form on the wire.

use std::convert::Infallible;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use serde_json::{Value, json};

use super::failure::Failure;
use super::watch::Watch;

/// The body of an answer: all at once, or a watch's events as they come.
pub type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;

/// The response to a request.
pub(super) enum Answer {
    Json(u16, Value),
    Text(u16, &'static str),
    Watch(Box<Watch>),
}

/// The form in which objects are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Whole,
    /// Only their metadata.
    Metadata,
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoSuchPath => Self::Text(404, "404 page not found\n"),
            Failure::Status(status) => Self::Json(status.code, status.body()),
        }
    }
}

impl Answer {
    pub(super) fn into_response(self) -> Response<AnswerBody> {
        let (code, media, body) = match self {
            Self::Json(code, value) => (code, "application/json", whole(value.to_string())),
            Self::Text(code, text) => (code, "text/plain; charset=utf-8", whole(text.to_owned())),
            Self::Watch(watch) => (200, "application/json", StreamBody::new(watch.frames()).boxed_unsync()),
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
        response
    }
}

fn whole(text: String) -> AnswerBody {
    Full::new(Bytes::from(text)).boxed_unsync()
}

/// One chunk of a stream.
pub(super) fn frame(text: String) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(Bytes::from(text)))
}

impl Shape {
    /// The object as asked for.
    pub(super) fn of(self, object: &Value) -> Value {
        match self {
            Self::Whole => object.clone(),
            Self::Metadata => {
                let metadata = &object["metadata"];
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
        }
    }
}
