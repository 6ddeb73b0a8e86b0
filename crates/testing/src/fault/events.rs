//! Changes to responses while they are received: truncation, and the events of watches.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

/// The bytes of a body as they are received; an error closes the connection.
pub(super) type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, std::io::Error>> + Send>>;

/// The unchanged bytes of a response.
pub(super) fn untouched(body: Incoming) -> Chunks {
    let data = body.into_data_stream();
    Box::pin(data.map(|chunk| chunk.map_err(std::io::Error::other)))
}

/// So many bytes, then `last`.
pub(super) fn first_bytes(chunks: Chunks, count: usize, last: Chunks) -> Chunks {
    let limited = chunks.scan(count, |left, chunk| {
        let next = match chunk {
            _ if *left == 0 => None,
            Ok(mut chunk) => {
                chunk.truncate(*left);
                *left -= chunk.len();
                Some(Ok(chunk))
            }
            Err(error) => Some(Err(error)),
        };
        std::future::ready(next)
    });
    Box::pin(limited.chain(last))
}

/// A response that ends in an error, which closes its connection.
pub(super) fn torn() -> Chunks {
    Box::pin(stream::once(std::future::ready(Err(std::io::Error::other("cut by a test")))))
}

/// A response that stalls.
pub(super) fn stalled() -> Chunks {
    Box::pin(stream::pending())
}

/// Every line twice.
pub(super) fn repeated(chunks: Chunks) -> Chunks {
    Box::pin(Lines::of(chunks).map(|line| line.map(|line| Bytes::from([&line[..], &line[..]].concat()))))
}

/// Every line later.
pub(super) fn delayed(chunks: Chunks, by: Duration) -> Chunks {
    Box::pin(Lines::of(chunks).then(move |line| async move {
        tokio::time::sleep(by).await;
        line
    }))
}

/// So many lines are lost, then the response ends.
pub(super) fn lossy(chunks: Chunks, lose: usize) -> Chunks {
    Box::pin(Lines::of(chunks).take(lose).filter(|_| std::future::ready(false)))
}

/// A response split into lines: the events of a watch.
struct Lines {
    chunks: Chunks,
    buffer: Vec<u8>,
    ready: VecDeque<Bytes>,
}

impl Lines {
    fn of(chunks: Chunks) -> Self {
        Self { chunks, buffer: Vec::new(), ready: VecDeque::new() }
    }

    fn take_in(&mut self, chunk: &[u8]) {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.buffer.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.ready.push_back(Bytes::from(std::mem::take(&mut self.buffer)));
            }
        }
    }
}

impl Stream for Lines {
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(line)));
            }
            match self.chunks.as_mut().poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(chunk))) => self.take_in(&chunk),
                Poll::Ready(end) => return Poll::Ready(end),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(parts: &[&'static str]) -> Chunks {
        let parts: Vec<_> = parts.iter().map(|part| Ok(Bytes::from_static(part.as_bytes()))).collect();
        Box::pin(stream::iter(parts))
    }

    async fn text(chunks: Chunks) -> String {
        let parts: Vec<_> = chunks.filter_map(|chunk| std::future::ready(chunk.ok())).collect().await;
        String::from_utf8(parts.concat()).unwrap()
    }

    #[tokio::test]
    async fn events_are_repeated_whole_however_they_arrive() {
        assert_eq!(text(repeated(chunks(&["a", "b\nc", "\n"]))).await, "ab\nab\nc\nc\n");
    }

    #[tokio::test]
    async fn lost_events_end_the_watch() {
        assert_eq!(text(lossy(chunks(&["a\nb\nc\n"]), 2)).await, "");
    }

    #[tokio::test]
    async fn an_answer_is_cut_in_the_middle() {
        assert_eq!(text(first_bytes(chunks(&["abc", "def"]), 4, torn())).await, "abcd");
    }
}
