//! The proxy in front of the real server.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use kube::config::Kubeconfig;
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use super::{
    Asked, Fault, Injection, WriteCount,
    events::{self, Chunks},
    identity::Identity,
    upstream::Upstream,
};
use crate::ControlPlane;

type Answer = Response<StreamBody<Frames>>;
type Frames = std::pin::Pin<Box<dyn futures::Stream<Item = Result<Frame<Bytes>, std::io::Error>> + Send>>;

/// A proxy in front of an API server that injects faults. It ends when it is dropped.
pub struct FaultyServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl std::fmt::Debug for FaultyServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyServer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for FaultyServer {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut_all();
    }
}

struct Shared {
    upstream: Upstream,
    faults: Mutex<Vec<Fault>>,
    writes: WriteCount,
    /// Incremented to close all connections.
    cuts: watch::Sender<u64>,
    /// Whether held requests continue.
    released: watch::Sender<bool>,
    /// The responses of [`Injection::Keep`] by their paths.
    kept: Mutex<HashMap<String, Kept>>,
}

/// A response that can be sent again.
#[derive(Clone)]
struct Kept {
    headers: HeaderMap,
    body: Bytes,
}

impl Kept {
    async fn read(response: Response<Incoming>) -> Result<Self> {
        let (parts, body) = response.into_parts();
        Ok(Self { headers: parts.headers, body: body.collect().await?.to_bytes() })
    }

    fn answer(self) -> Answer {
        let body = framed(Box::pin(futures::stream::once(std::future::ready(Ok(self.body)))));
        let mut answer = Response::new(body);
        *answer.headers_mut() = self.headers;
        without_length(answer)
    }
}

impl FaultyServer {
    /// Starts one in front of `plane`, with a write count of its own.
    pub async fn start(plane: &ControlPlane) -> Result<Self> {
        Self::counting(plane, WriteCount::default()).await
    }

    /// Starts one in front of `plane` that adds its writes to `writes`.
    pub async fn counting(plane: &ControlPlane, writes: WriteCount) -> Result<Self> {
        let acceptor = TlsAcceptor::from(Arc::new(tls(plane)?));
        let listener = TcpListener::bind("127.0.0.1:0").await.context("failed to listen on loopback")?;
        let address = listener.local_addr()?;
        let upstream = Upstream::new(plane.admin_config()).await?;
        let (cuts, released) = (watch::Sender::new(0), watch::Sender::new(false));
        let shared =
            Arc::new(Shared { upstream, faults: Mutex::default(), writes, cuts, released, kept: Mutex::default() });
        let accepting = tokio::spawn(accept(listener, acceptor, shared.clone()));
        Ok(Self { address, shared, accepting })
    }

    /// The kubeconfig with the address of this server instead of the real one.
    pub fn reached_through(&self, mut kubeconfig: Kubeconfig) -> Kubeconfig {
        for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.server = Some(format!("https://{}", self.address));
        }
        kubeconfig
    }

    /// Injects a fault. Of several that match a request, the one injected first applies.
    pub fn inject(&self, fault: Fault) {
        self.faults().push(fault);
    }

    /// How many injected faults have not yet occurred as often as requested.
    pub fn outstanding(&self) -> usize {
        self.faults().iter().filter(|fault| fault.times > 0).count()
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.faults().clear();
    }

    /// Passes on held requests, and holds none from now on.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }

    /// Closes every connection.
    pub fn cut_all(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// The writes that were carried out.
    pub fn writes(&self) -> &WriteCount {
        &self.shared.writes
    }

    fn faults(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The TLS configuration of the real server, which requests client certificates of the same authority.
fn tls(plane: &ControlPlane) -> Result<ServerConfig> {
    let (certificate, key) = plane.serving_pair()?;
    let mut authorities = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(plane.certificate_authority().as_bytes()) {
        authorities.add(authority?)?;
    }
    let verifier = WebPkiClientVerifier::builder(Arc::new(authorities)).allow_unauthenticated().build()?;
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    let mut config = ServerConfig::builder().with_client_cert_verifier(verifier).with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, acceptor.clone(), shared.clone()));
    }
}

/// Serves one connection until it ends, or is closed by a fault.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let mut cuts = shared.cuts.subscribe();
    let cut = watch::Sender::new(false);
    let mut cut_seen = cut.subscribe();
    let serving = async {
        let stream = acceptor.accept(stream).await?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let identity = certificate.map(|certificate| Identity::of(certificate)).transpose()?.map(Arc::new);
        let service = service_fn(|request| answer(request, shared.clone(), identity.clone(), cut.clone()));
        let connection = auto::Builder::new(TokioExecutor::new());
        let served = connection.serve_connection(TokioIo::new(stream), service).await;
        served.map_err(|error| anyhow::anyhow!("connection ended: {error}"))
    };
    tokio::select! {
        // The client reports how a connection ended.
        _ = serving => {}
        _ = cuts.changed() => {}
        _ = cut_seen.changed() => {}
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    identity: Option<Arc<Identity>>,
    cut: watch::Sender<bool>,
) -> Result<Answer> {
    let asked = Asked::of(&request);
    let fault = shared.next_fault(&asked);
    if fault == Some(Injection::Hold) {
        shared.released.subscribe().wait_for(|released| *released).await?;
    }
    match fault {
        Some(Injection::Answer { code, reason, retry_after }) => error(code, reason, retry_after),
        Some(Injection::Hang) => std::future::pending().await,
        Some(Injection::Cut) => {
            cut.send_replace(true);
            std::future::pending().await
        }
        Some(Injection::LoseAnswer { code, reason }) => {
            shared.pass_on(request, &asked, identity.as_deref()).await?;
            error(code, reason, None)
        }
        Some(Injection::Expire) => expired(),
        Some(Injection::Keep) => {
            let kept = Kept::read(shared.pass_on(request, &asked, identity.as_deref()).await?).await?;
            shared.kept().insert(asked.path, kept.clone());
            Ok(kept.answer())
        }
        Some(Injection::Replay) => {
            let kept = shared.kept().get(&asked.path).cloned().context("no response was kept for this path")?;
            Ok(kept.answer())
        }
        other => {
            let (parts, body) = shared.pass_on(request, &asked, identity.as_deref()).await?.into_parts();
            let body = framed(tampered(events::untouched(body), other.as_ref()));
            Ok(without_length(Response::from_parts(parts, body)))
        }
    }
}

/// The body may be shorter than the header says, and HTTP/2 does not need it.
fn without_length(mut answer: Answer) -> Answer {
    answer.headers_mut().remove(header::CONTENT_LENGTH);
    answer.headers_mut().remove(header::TRANSFER_ENCODING);
    answer
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_fault(&self, asked: &Asked) -> Option<Injection> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = faults.iter_mut().find(|fault| fault.concerns(asked))?;
        fault.times -= 1;
        Some(fault.injection.clone())
    }

    async fn pass_on(
        &self,
        request: Request<Incoming>,
        asked: &Asked,
        identity: Option<&Identity>,
    ) -> Result<Response<Incoming>> {
        let write = asked.is_write().then(|| self.writes.begin());
        let response = self.upstream.pass_on(request, identity).await?;
        if write.is_some_and(|write| response.status().is_success() && write.carried_out()) {
            std::future::pending::<()>().await;
        }
        Ok(response)
    }
}

fn tampered(chunks: Chunks, injection: Option<&Injection>) -> Chunks {
    match injection {
        Some(Injection::CutAfter(bytes)) => events::first_bytes(chunks, *bytes, events::torn()),
        Some(Injection::StallAfter(bytes)) => events::first_bytes(chunks, *bytes, events::stalled()),
        Some(Injection::RepeatEvents) => events::repeated(chunks),
        Some(Injection::DelayEvents(by)) => events::delayed(chunks, *by),
        Some(Injection::LoseEvents(count)) => events::lossy(chunks, *count),
        _ => chunks,
    }
}

fn framed(chunks: Chunks) -> StreamBody<Frames> {
    StreamBody::new(Box::pin(chunks.map(|chunk| chunk.map(Frame::data))))
}

fn error(code: u16, reason: &str, retry_after: Option<u32>) -> Result<Answer> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason,
        "message": "injected by a test", "details": {"retryAfterSeconds": retry_after.unwrap_or_default()},
    });
    let mut answer = whole(StatusCode::from_u16(code)?, &status)?;
    if let Some(seconds) = retry_after {
        answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    Ok(answer)
}

fn expired() -> Result<Answer> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired",
        "message": "injected by a test"});
    whole(StatusCode::OK, &json!({"type": "ERROR", "object": status}))
}

fn whole(code: StatusCode, body: &Value) -> Result<Answer> {
    if !body.is_object() {
        bail!("an answer is an object");
    }
    let line = Bytes::from(format!("{body}\n"));
    let body = framed(Box::pin(futures::stream::once(std::future::ready(Ok(line)))));
    Ok(Response::builder().status(code).header(header::CONTENT_TYPE, "application/json").body(body)?)
}
