//! Servers and proxies in this process, for tests of connections.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use http::{Request, Response, header::AUTHORIZATION};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::WebPkiClientVerifier,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

/// A folder that is removed at the end.
pub(super) struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ocm-client-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

/// A certificate that is its own issuer and no authority, and its key.
pub(super) struct Identity {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) pem: String,
    pub(super) key_pem: String,
}

impl Identity {
    pub(super) fn new(name: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let key_pem = made.signing_key.serialize_pem();
        Self { certificate: made.cert.der().clone(), pem: made.cert.pem(), key_pem }
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        rustls::pki_types::pem::PemObject::from_pem_slice(self.key_pem.as_bytes()).unwrap()
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        acceptor_of(&self.certificate, &self.key_pem)
    }

    /// Asks clients for a certificate that one of `clients` issued.
    pub(super) fn acceptor_for(&self, clients: &[&CertificateDer<'static>]) -> TlsAcceptor {
        crate::client::install_crypto_provider();
        let mut roots = RootCertStore::empty();
        clients.iter().for_each(|der| roots.add((*der).clone()).unwrap());
        let clients = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
        let config = ServerConfig::builder().with_client_cert_verifier(clients);
        acceptor(config.with_single_cert(vec![self.certificate.clone()], self.key()).unwrap())
    }
}

/// Shows this certificate, and asks clients for none.
pub(super) fn acceptor_of(certificate: &CertificateDer<'static>, key_pem: &str) -> TlsAcceptor {
    crate::client::install_crypto_provider();
    let key = rustls::pki_types::pem::PemObject::from_pem_slice(key_pem.as_bytes()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    acceptor(config.with_single_cert(vec![certificate.clone()], key).unwrap())
}

fn acceptor(mut config: ServerConfig) -> TlsAcceptor {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// A server that answers requests with what they show as authorization, or else with the subject of the client's
/// certificate, and refuses (401) one authorization.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) address: String,
    refused: Arc<Mutex<Option<String>>>,
    asked: Arc<Mutex<usize>>,
    accepted: Arc<Mutex<usize>>,
}

impl Server {
    pub(super) async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = Self { address, refused: Arc::default(), asked: Arc::default(), accepted: Arc::default() };
        let own = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *own.accepted.lock().unwrap() += 1;
                tokio::spawn(own.clone().accept(stream, tls.clone()));
            }
        });
        server
    }

    /// Refuses this authorization from now on.
    pub(super) fn refuse(&self, authorization: &str) {
        *self.refused.lock().unwrap() = Some(authorization.to_owned());
    }

    pub(super) fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }

    /// The number of connections.
    pub(super) fn accepted(&self) -> usize {
        *self.accepted.lock().unwrap()
    }

    async fn accept(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        let Some(tls) = tls else { return self.serve(stream, String::new()).await };
        let Ok(stream) = tls.accept(stream).await else { return };
        let client = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()).map(|der| der.to_vec());
        self.serve(stream, format!("{client:?}")).await;
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, client: String) {
        let service = hyper::service::service_fn(move |request| {
            let answer = self.answer(&request, &client);
            async { Ok::<_, Infallible>(answer) }
        });
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    fn answer(&self, request: &Request<Incoming>, client: &str) -> Response<Full<Bytes>> {
        *self.asked.lock().unwrap() += 1;
        let shown = request.headers().get(AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
        let is_refused = shown.is_some() && *self.refused.lock().unwrap() == shown;
        let body = shown.unwrap_or_else(|| client.to_owned());
        Response::builder().status(if is_refused { 401 } else { 200 }).body(Full::new(body.into())).unwrap()
    }
}

/// A proxy that is asked with CONNECT. It notes the heads of the requests.
#[derive(Clone)]
pub(super) struct ConnectProxy {
    pub(super) address: String,
    pub(super) heads: Arc<Mutex<Vec<String>>>,
    /// The login that it asks for.
    login: Option<&'static str>,
}

impl ConnectProxy {
    pub(super) async fn start(tls: Option<TlsAcceptor>) -> Self {
        Self::serve(tls, None).await
    }

    pub(super) async fn asking_for_login(login: &'static str) -> Self {
        Self::serve(None, Some(login)).await
    }

    async fn serve(tls: Option<TlsAcceptor>, login: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self { address: listener.local_addr().unwrap().to_string(), heads: Arc::default(), login };
        let own = proxy.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (own, tls) = (own.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => own.pass(stream).await,
                        Some(tls) => own.pass(tls.accept(stream).await.unwrap()).await,
                    }
                });
            }
        });
        proxy
    }

    async fn pass(&self, mut client: impl AsyncRead + AsyncWrite + Unpin) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let target = head.split(' ').nth(1).unwrap().to_owned();
        let is_allowed = self.login.is_none_or(|login| head.contains(&format!("Proxy-Authorization: {login}\r\n")));
        self.heads.lock().unwrap().push(head);
        if !is_allowed {
            return client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await.unwrap();
        }
        let mut server = TcpStream::connect(target).await.unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }

    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// What the server answers to a client of `endpoint`.
pub(super) async fn ask(endpoint: &super::Endpoint) -> Result<String, String> {
    let request = Request::get("/").body(Vec::new()).unwrap();
    let answer = endpoint.client("test").unwrap().request_text(request).await;
    answer.map_err(|error| crate::error::chain(&error))
}

/// A SOCKS 5 proxy that asks for a user and a password. It notes both, and the host that it is to connect to; it connects to
/// `target`.
pub(super) struct SocksProxy {
    pub(super) address: String,
    pub(super) asked: Arc<Mutex<Vec<String>>>,
}

impl SocksProxy {
    pub(super) async fn start(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self { address: listener.local_addr().unwrap().to_string(), asked: Arc::default() };
        let asked = proxy.asked.clone();
        tokio::spawn(async move {
            let mut client = listener.accept().await.unwrap().0;
            let note = async |client: &mut TcpStream| {
                let mut text = vec![0; client.read_u8().await.unwrap().into()];
                client.read_exact(&mut text).await.unwrap();
                asked.lock().unwrap().push(String::from_utf8(text).unwrap());
            };
            // Version, the number of methods, the method.
            client.read_exact(&mut [0; 3]).await.unwrap();
            client.write_all(&[5, 2]).await.unwrap();
            client.read_u8().await.unwrap();
            note(&mut client).await;
            note(&mut client).await;
            client.write_all(&[1, 0]).await.unwrap();
            // Version, command, reserved, kind of address; after the host the port.
            client.read_exact(&mut [0; 4]).await.unwrap();
            note(&mut client).await;
            client.read_u16().await.unwrap();
            client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
            let mut server = TcpStream::connect(target).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        });
        proxy
    }
}
