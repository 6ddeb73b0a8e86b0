//! Asks an API server for its version: the cheapest request that shows whether it answers, and what its clock shows.

use http::{Request, StatusCode, header::DATE};
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::{
    Client,
    client::Body,
    core::{Status, response::StatusSummary},
};

use crate::Clock;

/// The resolution of the header `Date`.
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// An API server's answer.
#[derive(Clone, Debug)]
pub struct Answer {
    status: StatusCode,
    /// What the server's clock showed.
    date: Option<Timestamp>,
    /// What the clock of this machine showed before and after.
    between: (Timestamp, Timestamp),
    body: Bytes,
}

/// Asks for the version.
///
/// # Errors
/// If there is no answer. An answer that is an error is none here, see [`Answer::version`].
pub async fn probe(client: &Client, clock: &Clock) -> kube::Result<Answer> {
    let request = Request::get("/version").body(Body::empty()).map_err(kube::Error::HttpError)?;
    let sent = clock.now();
    let response = client.send(request).await?;
    let between = (sent, clock.now());
    let (parts, body) = response.into_parts();
    let date = parts.headers.get(DATE).and_then(|value| date(value.as_bytes()));
    Ok(Answer { status: parts.status, date, between, body: body.collect().await?.to_bytes() })
}

fn date(header: &[u8]) -> Option<Timestamp> {
    DateTimeParser::new().parse_timestamp(header).ok()
}

impl Answer {
    /// The version of the server.
    ///
    /// # Errors
    /// If the answer is an error, or not that of an API server.
    pub fn version(&self) -> kube::Result<Info> {
        if self.status.is_success() {
            return serde_json::from_slice(&self.body).map_err(kube::Error::SerdeError);
        }
        let unknown = || Status {
            status: Some(StatusSummary::Failure),
            code: self.status.as_u16(),
            message: format!("it answers {}", self.status),
            ..Status::default()
        };
        let status = serde_json::from_slice(&self.body).ok().filter(|status: &Status| status.code != 0);
        Err(kube::Error::Api(Box::new(status.unwrap_or_else(unknown))))
    }

    /// How far the clock of this machine is ahead of the server's; negative if it is behind. `None` if the server did not
    /// say what its clock shows. The time that the request took is no difference.
    #[must_use]
    pub fn ahead(&self) -> Option<SignedDuration> {
        let ((sent, received), earliest) = (self.between, self.date?);
        let latest = earliest.checked_add(SECOND).ok()?;
        Some(if received < earliest {
            received.duration_since(earliest)
        } else if sent > latest {
            sent.duration_since(latest)
        } else {
            SignedDuration::ZERO
        })
    }

    /// What the server's clock showed.
    #[must_use]
    pub fn date(&self) -> Option<Timestamp> {
        self.date
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(sent: &str, received: &str, date: Option<&str>) -> Answer {
        let date = date.map(|date| super::date(date.as_bytes()).unwrap());
        let between = (sent.parse().unwrap(), received.parse().unwrap());
        Answer { status: StatusCode::OK, date, between, body: Bytes::new() }
    }

    #[test]
    fn clocks_differ_by_what_neither_the_way_nor_the_resolution_explains() {
        let ahead = |sent: &str, received: &str| {
            let answer = answer(sent, received, Some("Sun, 22 Nov 2026 10:00:00 GMT"));
            answer.ahead().unwrap().as_secs()
        };
        assert_eq!(ahead("2026-11-22T10:00:00Z", "2026-11-22T10:00:00.1Z"), 0);
        assert_eq!(ahead("2026-11-22T10:00:00.9Z", "2026-11-22T10:00:00.95Z"), 0, "the header has no fractions");
        assert_eq!(ahead("2026-11-22T09:59:50Z", "2026-11-22T10:00:05Z"), 0, "the way took fifteen seconds");
        assert_eq!(ahead("2026-11-22T10:10:00Z", "2026-11-22T10:10:01Z"), 599);
        assert_eq!(ahead("2026-11-22T09:00:00Z", "2026-11-22T09:00:01Z"), -3599);
    }

    #[test]
    fn a_server_that_does_not_say_what_its_clock_shows_is_not_compared() {
        assert_eq!(answer("2026-11-22T10:00:00Z", "2026-11-22T10:00:00Z", None).ahead(), None);
        assert_eq!(date(b"yesterday"), None);
    }

    #[test]
    fn an_answer_that_is_no_version_is_an_error_with_its_code() {
        let answer = |code: u16, body: &str| Answer {
            status: StatusCode::from_u16(code).unwrap(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            ..answer("2026-11-22T10:00:00Z", "2026-11-22T10:00:00Z", None)
        };
        let text = |answer: &Answer| crate::error::chain(&answer.version().unwrap_err());
        assert_eq!(text(&answer(503, "busy")), "it answers 503 Service Unavailable");
        let status = r#"{"kind": "Status", "status": "Failure", "message": "Unauthorized", "code": 401}"#;
        assert_eq!(text(&answer(401, status)), "Unauthorized");
        assert!(matches!(answer(200, "<html>").version(), Err(kube::Error::SerdeError(_))));
    }
}
