//! Accepts connections, and serves a router on each. A client that stalls, at any step, delays no other: each connection has
//! its own task and time limits, and their number is limited.

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
/// How long the head of a request may take to arrive, after the connection was accepted or the last response was sent.
const HEAD: Duration = Duration::from_secs(32);
/// How long a request may take, its body included.
const REQUEST: Duration = Duration::from_secs(60);
/// How many connections are served at a time. Further ones wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 1024;
/// How long requests in progress have to be finished when the context ends.
const GRACE: Duration = Duration::from_secs(10);
/// How often the certificate's files are read.
const RELOAD_PERIOD: Duration = Duration::from_secs(10);
/// The wait after a connection could not be accepted.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Serves `router` on the connections that come to `tcp`, until the context ends.
pub(super) fn serve(context: &Context, tcp: TcpListener, tls: Option<&Tls>, router: Router) {
    let acceptor = tls.map(|tls| TlsAcceptor::from(tls.config.clone()));
    let server = Server { context: context.clone(), acceptor, router };
    context.spawn(server.accept(tcp));
    if let Some(certificate) = tls.map(|tls| tls.certificate.clone()).filter(|certificate| certificate.may_change()) {
        context.spawn(async move {
            loop {
                sleep(RELOAD_PERIOD).await;
                certificate.reload();
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
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        while let Ok(permit) = permits.clone().acquire_owned().await {
            let (stream, peer) = match tcp.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    warn!(%error, "cannot accept a connection, trying again");
                    sleep(RETRY_DELAY).await;
                    continue;
                }
            };
            let server = self.clone();
            self.context.spawn_to_completion(async move {
                server.serve_peer(stream, peer).await;
                drop(permit);
            });
        }
    }

    async fn serve_peer(&self, stream: TcpStream, peer: SocketAddr) {
        let Some(acceptor) = &self.acceptor else { return self.serve_connection(stream).await };
        let handshake = tokio::select! {
            handshake = timeout(HANDSHAKE, acceptor.accept(stream)) => handshake,
            () = self.context.ended() => return,
        };
        match handshake {
            Ok(Ok(stream)) => self.serve_connection(stream).await,
            Ok(Err(error)) => debug!(%peer, %error, "a TLS handshake failed"),
            Err(_) => debug!(%peer, "a TLS handshake took too long"),
        }
    }

    /// Answers the requests of a connection until either side closes it.
    async fn serve_connection(&self, stream: impl AsyncRead + AsyncWrite + Unpin) {
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
            debug!(%error, "a connection was aborted");
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

    /// The response to a client that sends this and then nothing, and after how long the server closes the connection.
    async fn response_to(sent: &str) -> (String, Duration) {
        let router = Router::new().route("/", post(|body: String| async move { body }));
        let server = Server { context: Context::new(), acceptor: None, router };
        let (mut ours, theirs) = tokio::io::duplex(4096);
        let served = tokio::spawn(async move { server.serve_connection(theirs).await });
        ours.write_all(sent.as_bytes()).await.unwrap();
        let (start, mut response) = (Instant::now(), String::new());
        ours.read_to_string(&mut response).await.unwrap();
        served.await.unwrap();
        (response, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn connections_without_a_complete_request_are_closed() {
        for sent in ["", "POST / HTTP/1.1\r\nhost:"] {
            let (response, after) = response_to(sent).await;
            assert!(!response.contains("200"), "{response}");
            assert!(after <= HEAD + Duration::from_secs(1), "{sent:?} is closed after {after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_are_closed() {
        let (response, after) = response_to("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi").await;
        assert!(response.starts_with("HTTP/1.1 200") && response.ends_with("hi"), "{response}");
        assert!(after <= HEAD + Duration::from_secs(1), "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_whose_body_does_not_arrive_is_refused() {
        let (response, after) = response_to("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nh").await;
        assert!(response.starts_with("HTTP/1.1 408"), "{response}");
        assert!(after <= REQUEST + HEAD + Duration::from_secs(1), "{after:?}");
    }
}
