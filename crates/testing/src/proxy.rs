//! An HTTP proxy on loopback that asks for a login.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

const CONNECTED: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
const NO_LOGIN: &[u8] = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";

/// A proxy for CONNECT requests. Every host name leads to this machine, so that servers can be reached by names that nothing
/// else resolves. It ends when it is dropped.
#[derive(Debug)]
pub struct ConnectProxy {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Seen {
    targets: Vec<String>,
    refused: usize,
}

impl Drop for ConnectProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl ConnectProxy {
    /// Starts one for clients that log in as `user:password`.
    pub async fn start(login: &str) -> Result<Self> {
        Self::serve(login, None).await
    }

    /// Starts one that speaks TLS, with this certificate and key, both PEM.
    pub async fn start_with_tls(login: &str, certificate: &str, key: &str) -> Result<Self> {
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
        Self::serve(login, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn serve(login: &str, tls: Option<TlsAcceptor>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("failed to listen on loopback")?;
        let (address, seen) = (listener.local_addr()?, Arc::<Mutex<Seen>>::default());
        let header = format!("Basic {}", STANDARD.encode(login));
        Ok(Self { address, accepting: tokio::spawn(accept(listener, tls, header, seen.clone())), seen })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The servers that it was asked to connect to, as `host:port`, each once and sorted.
    #[must_use]
    pub fn targets(&self) -> Vec<String> {
        let mut targets = self.seen().targets.clone();
        targets.sort();
        targets.dedup();
        targets
    }

    /// How many requests it refused, since they had another login or none.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.seen().refused
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, login: String, seen: Arc<Mutex<Seen>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, login, seen) = (tls.clone(), login.clone(), seen.clone());
        tokio::spawn(async move {
            // A client that breaks off sees that itself.
            let _ = match tls {
                None => pass(stream, &login, &seen).await,
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => pass(stream, &login, &seen).await,
                    Err(error) => Err(error.into()),
                },
            };
        });
    }
}

async fn pass(client: impl AsyncRead + AsyncWrite + Unpin, login: &str, seen: &Mutex<Seen>) -> Result<()> {
    let mut client = BufReader::new(client);
    let (target, authorization) = read_head(&mut client).await?;
    if authorization.as_deref() != Some(login) {
        seen.lock().unwrap_or_else(PoisonError::into_inner).refused += 1;
        return Ok(client.write_all(NO_LOGIN).await?);
    }
    seen.lock().unwrap_or_else(PoisonError::into_inner).targets.push(target.clone());
    let (_, port) = target.rsplit_once(':').context("the target has no port")?;
    let mut server = TcpStream::connect(("127.0.0.1", port.parse()?)).await?;
    client.write_all(CONNECTED).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// The target and the login of a CONNECT request.
async fn read_head(client: &mut (impl AsyncBufRead + Unpin)) -> Result<(String, Option<String>)> {
    let (mut lines, mut authorization) = (client.lines(), None);
    let request = lines.next_line().await?.context("no request")?;
    while let Some(line) = lines.next_line().await?.filter(|line| !line.is_empty()) {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("proxy-authorization")
        {
            authorization = Some(value.trim().to_owned());
        }
    }
    let target = request.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
    Ok((target.context("not a CONNECT request")?.to_owned(), authorization))
}
