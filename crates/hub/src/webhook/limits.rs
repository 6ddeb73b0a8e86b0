//! Limits of memory and time for requests.
//!
//! Everyone who can reach the webhook can send requests. The memory for a request is reserved before it is read, so what does not
//! fit waits outside, and is refused after a while. The API server counts a refusal as no answer, and refuses the change.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes, HttpBody as _, to_bytes},
    extract::Request,
    http::StatusCode,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::Refusal;

/// How large a review of admission may be. It has an object as it is sent, for which API servers accept 3 MiB, and as it was, which
/// etcd stores with at most 1.5 MiB unless configured otherwise; a part of it may be escaped.
pub const LARGEST_ADMISSION: usize = 8 << 20;
/// How large a review of conversion may be. It may have all objects of a list.
pub const LARGEST_CONVERSION: usize = 16 << 20;
/// How much of them is in memory at a time. What they are parsed into takes some times as much.
const AT_A_TIME: usize = 48 << 20;
/// The unit in which memory is reserved, and the least that is.
const UNIT: usize = 4 << 10;
/// How long a request may wait for memory, take to arrive, and take to be answered; API servers wait as long for an admission.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The memory for requests. Cheap to clone; all clones share it.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    units: Arc<Semaphore>,
    patience: Duration,
}

/// A request that was read. Its memory is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) body: Bytes,
    _reserved: OwnedSemaphorePermit,
}

impl Default for Limits {
    fn default() -> Self {
        Self { units: Arc::new(Semaphore::new(AT_A_TIME / UNIT)), patience: PATIENCE }
    }
}

impl Limits {
    /// Reads a request, if it has at most that many bytes.
    pub(super) async fn read(&self, request: Request, largest: usize) -> Result<Received, Refusal> {
        let body = request.into_body();
        // `None` where the sender does not say.
        let announced = body.size_hint().upper().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let bytes = announced.unwrap_or(largest);
        if bytes > largest {
            return Err(too_large(largest));
        }
        let reserved = self.reserve(bytes).await?;
        Ok(Received { body: self.collect(body, largest).await?, _reserved: reserved })
    }

    async fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let units = u32::try_from(bytes / UNIT + 1).unwrap_or(u32::MAX);
        match timeout(self.patience, self.units.clone().acquire_many_owned(units)).await {
            Ok(Ok(reserved)) => Ok(reserved),
            _ => Err(Refusal {
                code: StatusCode::SERVICE_UNAVAILABLE,
                cause: "too many requests are being answered: try again later".into(),
            }),
        }
    }

    async fn collect(&self, body: Body, largest: usize) -> Result<Bytes, Refusal> {
        match timeout(self.patience, to_bytes(body, largest)).await {
            Ok(Ok(body)) => Ok(body),
            // Only one of unknown size can be too large here.
            Ok(Err(error)) if is_too_large(&error) => Err(too_large(largest)),
            Ok(Err(error)) => {
                Err(Refusal { code: StatusCode::BAD_REQUEST, cause: format!("the request cannot be read: {error}") })
            }
            Err(_) => {
                let cause = format!("the request did not arrive within {} s", self.patience.as_secs());
                Err(Refusal { code: StatusCode::REQUEST_TIMEOUT, cause })
            }
        }
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    error.to_string().contains("length limit exceeded")
}

fn too_large(largest: usize) -> Refusal {
    let cause = format!("the request is larger than {} MiB: ask for fewer objects at a time", largest >> 20);
    Refusal { code: StatusCode::PAYLOAD_TOO_LARGE, cause }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;

    use super::*;

    const LARGEST: usize = 1 << 20;

    fn request(body: Body) -> Request {
        Request::new(body)
    }

    /// Does not say how large it is.
    fn streamed(bytes: usize) -> Request {
        request(Body::from_stream(stream::iter([Ok::<_, Infallible>(vec![0; bytes])])))
    }

    /// Never arrives.
    fn endless() -> Request {
        request(Body::from_stream(stream::pending::<Result<Bytes, Infallible>>()))
    }

    /// The same limits, where nothing may wait.
    fn hasty(limits: &Limits) -> Limits {
        Limits { patience: Duration::ZERO, ..limits.clone() }
    }

    fn code(outcome: &Result<Received, Refusal>) -> u16 {
        outcome.as_ref().map_or_else(|refusal| refusal.code.as_u16(), |_| 200)
    }

    #[tokio::test]
    async fn a_request_that_is_too_large_is_refused_whether_or_not_it_says_so() {
        let limits = Limits::default();
        for (bytes, expected) in [(LARGEST, 200), (LARGEST + 1, 413)] {
            let whole = limits.read(request(Body::from(vec![0; bytes])), LARGEST).await;
            assert_eq!((code(&whole), code(&limits.read(streamed(bytes), LARGEST).await)), (expected, expected));
        }
        assert_eq!(limits.units.available_permits(), AT_A_TIME / UNIT, "all memory is free again");
    }

    #[tokio::test]
    async fn what_does_not_fit_into_memory_waits_and_is_refused_after_a_while() {
        let limits = Limits::default();
        let mut received = Vec::new();
        while limits.units.available_permits() > LARGEST / UNIT {
            received.push(limits.read(request(Body::from(vec![0; LARGEST])), LARGEST).await.unwrap());
        }
        assert!(received.len() * LARGEST <= AT_A_TIME);
        assert_eq!(code(&hasty(&limits).read(request(Body::from(vec![0; LARGEST])), LARGEST).await), 503);
        let waiting = limits.read(request(Body::from(vec![0; LARGEST])), LARGEST);
        let freed = async { drop(received.pop()) };
        assert_eq!(code(&tokio::join!(waiting, freed).0), 200);
    }

    #[tokio::test]
    async fn a_request_that_does_not_arrive_keeps_its_memory_for_a_while_only() {
        let limits = Limits::default();
        assert_eq!(code(&hasty(&limits).read(endless(), LARGEST).await), 408);
        assert_eq!(limits.units.available_permits(), AT_A_TIME / UNIT);
    }
}
