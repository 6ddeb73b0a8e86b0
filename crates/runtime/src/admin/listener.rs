//! Accepting connections, and serving a router on each. Who stalls, at whatever step, is in nobody's way: each connection
//! has a task of its own, limits of time, and a place among so many.

use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;
use tower_http::timeout::TimeoutLayer;
use tracing::{debug, warn};

use super::tls::Tls;
use crate::context::Context;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long the head of a request may take to come, from the moment the connection is there or the last answer is sent.
const HEAD: Duration = Duration::from_secs(32);
/// How long a request may take, its body included.
const REQUEST: Duration = Duration::from_secs(60);
/// How many connections there are at a time; who comes then waits in the kernel's queue.
const PLACES: usize = 1024;
/// How long requests in progress have to be finished when the context ends.
const GRACE: Duration = Duration::from_secs(10);
/// How often the certificate's files are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// The wait after the machine could not give us a connection.
const PAUSE: Duration = Duration::from_millis(500);

/// Serves `router` on the connections that come to `tcp`, until the context ends.
pub(super) fn serve(context: &Context, tcp: TcpListener, tls: Option<&Tls>, router: Router) {
    let acceptor = tls.map(|tls| TlsAcceptor::from(tls.config.clone()));
    let server = Server { context: context.clone(), acceptor, router };
    context.spawn(server.accept(tcp));
    if let Some(certificate) = tls.map(|tls| tls.certificate.clone()).filter(|certificate| certificate.may_change()) {
        context.spawn(async move {
            loop {
                sleep(LOOK).await;
                certificate.look();
            }
        });
    }
}

#[derive(Clone)]
struct Server {
    context: Context,
    acceptor: Option<TlsAcceptor>,
    router: Router,
}

impl Server {
    async fn accept(self, tcp: TcpListener) {
        let places = Arc::new(Semaphore::new(PLACES));
        while let Ok(place) = places.clone().acquire_owned().await {
            let (stream, peer) = match tcp.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    warn!(%error, "cannot accept a connection, trying again");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let server = self.clone();
            self.context.spawn_to_completion(async move {
                server.connected(stream, peer).await;
                drop(place);
            });
        }
    }

    async fn connected(&self, stream: TcpStream, peer: SocketAddr) {
        let Some(acceptor) = &self.acceptor else { return self.converse(stream).await };
        let shaken = tokio::select! {
            shaken = timeout(HANDSHAKE, acceptor.accept(stream)) => shaken,
            () = self.context.ended() => return,
        };
        match shaken {
            Ok(Ok(stream)) => self.converse(stream).await,
            Ok(Err(error)) => debug!(%peer, %error, "a TLS handshake failed"),
            Err(_) => debug!(%peer, "a TLS handshake took too long"),
        }
    }

    /// Answers what comes over a connection, until either side has had enough.
    async fn converse(&self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let router = self.router.clone().layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, REQUEST));
        let service = router.map_request(|request: Request<Incoming>| request.map(Body::new));
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)));
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = self.context.ended() => {
                connection.as_mut().graceful_shutdown();
                let Ok(served) = timeout(GRACE, connection).await else {
                    return warn!("a request was not finished in time");
                };
                served
            }
        };
        if let Err(error) = served {
            debug!(%error, "a connection was broken off");
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::post;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        time::Instant,
    };

    use super::*;

    /// What a server says to somebody who sends this and then nothing, and after how long it closes the connection.
    async fn said(sent: &str) -> (String, Duration) {
        let router = Router::new().route("/", post(|body: String| async move { body }));
        let server = Server { context: Context::new(), acceptor: None, router };
        let (mut ours, theirs) = tokio::io::duplex(4096);
        let served = tokio::spawn(async move { server.converse(theirs).await });
        ours.write_all(sent.as_bytes()).await.unwrap();
        let (start, mut said) = (Instant::now(), String::new());
        ours.read_to_string(&mut said).await.unwrap();
        served.await.unwrap();
        (said, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_ask_nothing_or_half_a_question_are_closed() {
        for sent in ["", "POST / HTTP/1.1\r\nhost:"] {
            let (said, after) = said(sent).await;
            assert!(!said.contains("200"), "{said}");
            assert!(after <= HEAD + Duration::from_secs(1), "{sent:?} is closed after {after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_ask_no_more_are_closed() {
        let (said, after) = said("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi").await;
        assert!(said.starts_with("HTTP/1.1 200") && said.ends_with("hi"), "{said}");
        assert!(after <= HEAD + Duration::from_secs(1), "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_whose_body_does_not_come_is_refused() {
        let (said, after) = said("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nh").await;
        assert!(said.starts_with("HTTP/1.1 408"), "{said}");
        assert!(after <= REQUEST + HEAD + Duration::from_secs(1), "{after:?}");
    }
}
