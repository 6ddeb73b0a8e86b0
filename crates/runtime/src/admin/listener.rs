//! A listener whose connections have finished their TLS handshake.

use std::{future::pending, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tracing::{debug, warn};

use super::tls::Tls;
use crate::context::Context;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How many handshakes are under way at a time; who comes then waits in the kernel's queue.
const AT_ONCE: usize = 256;
/// How often the certificate's files are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// The wait after the machine could not give us a connection.
const PAUSE: Duration = Duration::from_millis(500);

type Connection = (TlsStream<TcpStream>, SocketAddr);

/// Hands out connections when their handshake is done: each has a task of its own for that, and a
/// time limit, so that who stalls is in nobody's way.
pub(super) struct TlsListener {
    address: SocketAddr,
    connections: mpsc::Receiver<Connection>,
}

impl TlsListener {
    pub(super) fn start(context: &Context, tcp: TcpListener, address: SocketAddr, tls: &Tls) -> Self {
        let (done, connections) = mpsc::channel(AT_ONCE);
        let acceptor = TlsAcceptor::from(tls.config.clone());
        context.spawn(accept(context.clone(), tcp, acceptor, done));
        if tls.certificate.may_change() {
            let certificate = tls.certificate.clone();
            context.spawn(async move {
                loop {
                    sleep(LOOK).await;
                    certificate.look();
                }
            });
        }
        Self { address, connections }
    }
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> Connection {
        match self.connections.recv().await {
            Some(connection) => connection,
            // The context has ended, and the server with it.
            None => pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        Ok(self.address)
    }
}

async fn accept(context: Context, tcp: TcpListener, acceptor: TlsAcceptor, done: mpsc::Sender<Connection>) {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    while let Ok(turn) = turns.clone().acquire_owned().await {
        let (stream, peer) = match tcp.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "cannot accept a connection, trying again");
                sleep(PAUSE).await;
                continue;
            }
        };
        let (acceptor, done) = (acceptor.clone(), done.clone());
        context.spawn(async move {
            match timeout(HANDSHAKE, acceptor.accept(stream)).await {
                // Fails only when the server has ended.
                Ok(Ok(stream)) => _ = done.send((stream, peer)).await,
                Ok(Err(error)) => debug!(%peer, %error, "a TLS handshake failed"),
                Err(_) => debug!(%peer, "a TLS handshake took too long"),
            }
            drop(turn);
        });
    }
}
