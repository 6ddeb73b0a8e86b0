//! Clients to Kubernetes API servers.
//!
//! An [`Endpoint`] is one identity at one API server: the server, the kubeconfig's context that it was chosen by, the
//! credentials and the proxy. All its clients share one HTTP/2 connection, however many watches they hold; where the server
//! (or a proxy before it) only speaks HTTP/1.1, that is used.
//!
//! Server and context never change: [`Endpoint::reload`] takes new credentials from the kubeconfig, and refuses those for
//! another server. Requests from then on use a new connection, while open watches go on with the old one. What an exec
//! plugin gave out is renewed before it expires, and when the server refuses it (401).
//!
//! `kube::Client` over a [`tower::Service`] is the only way any controller reaches an API server, so
//! whatever else answers the same requests (a mock in tests, another transport) can stand in.
//!
//! An endpoint that is [`counted`](Endpoint::counted) counts the writes of its clients.
//!
//! A server that is too busy and says when to ask again is asked again then.

mod counting;
mod exec;
mod identity;
mod proxy;
mod reloading;
mod retry;
#[cfg(test)]
mod testing;
mod token_file;
mod transport;
mod verifier;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    task::{Context as Task, Poll},
    time::Duration,
};

use arc_swap::ArcSwap;
use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderValue, Request, Response, StatusCode, Uri, header::USER_AGENT};
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};
use hyper::body::{Body as HttpBody, Bytes};
use jiff::Timestamp;
use kube::{Client, Config, client::Body};
use tokio::time::timeout;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _, retry::RetryLayer};
use tower_http::timeout::TimeoutBody;

use self::{
    counting::{Counter, Counting},
    identity::Identity,
    retry::{RetryAfter, copy},
    transport::{Session, Transport, boxed},
};
pub use self::{exec::PluginError, proxy::Proxies};
use crate::{
    Clock, Context,
    kubeconfig::{self, Fingerprint, KubeconfigError},
};

/// How long the answer to a read may take to begin, and every answer to go on.
const READ_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the answer to a write may take to begin. The API server itself gives up after a minute; a write that is
/// given up sooner, while it waits for an admission webhook, is cancelled there and never made.
const WRITE_TIMEOUT: Duration = Duration::from_secs(65);
/// How long a watch may be silent. API servers send a bookmark about every minute, so one that is
/// silent for longer is not watching, whatever the connection says.
const WATCH_TIMEOUT: Duration = Duration::from_secs(100);

/// Why a client could not be built from a configuration.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] Arc<KubeconfigError>),
    /// A certificate, a key or a token in it cannot be used.
    #[error("failed to use the credentials for {server}")]
    Credentials {
        /// The API server's address.
        server: String,
        /// What is wrong.
        #[source]
        source: Arc<kube::Error>,
    },
    /// The certificate authority of the configuration cannot be used.
    #[error("failed to use the certificate authority for {server}")]
    Authority {
        /// The API server's address.
        server: String,
        /// What is wrong.
        #[source]
        source: Arc<rustls::client::VerifierBuilderError>,
    },
    /// The server name to verify is not a name.
    #[error("failed to use tls-server-name {name:?} for {server}")]
    ServerName {
        /// The API server's address.
        server: String,
        /// The name as given.
        name: String,
    },
    /// The proxy's URL is malformed, or names a protocol that is not supported.
    #[error("failed to use proxy {proxy}: it must be a URL that begins with http://, https:// or socks5://")]
    Proxy {
        /// The proxy as given, without the password.
        proxy: String,
    },
    /// The file with the token cannot be used.
    #[error("failed to read a token from {path}: {problem}")]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// An exec plugin gave out no credential.
    #[error(transparent)]
    Plugin(Arc<PluginError>),
    /// New credentials are for another API server than this endpoint was made for.
    #[error(
        "{origin} leads to {found} now, and no longer to {server}, for which this process was started; restart the process \
         if it is to use {found}, or else correct the kubeconfig"
    )]
    OtherServer {
        /// Where the credentials come from.
        origin: String,
        /// The API server of this endpoint.
        server: String,
        /// The API server that the new credentials are for.
        found: String,
    },
    /// The user agent holds characters that a header cannot.
    #[error("failed to use user agent {0:?}")]
    UserAgent(String),
}

impl From<KubeconfigError> for ClientError {
    fn from(error: KubeconfigError) -> Self {
        Self::Kubeconfig(Arc::new(error))
    }
}

type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// One identity at one API server; all its clients share a connection. Cheap to clone.
#[derive(Clone)]
pub struct Endpoint {
    identity: Arc<Identity>,
    namespace: String,
    transport: Arc<ArcSwap<Transport>>,
    /// What the kubeconfig said when its credentials were last taken.
    fingerprint: Arc<ArcSwap<Option<Fingerprint>>>,
    root_certificates: Option<Arc<[Vec<u8>]>>,
    counter: Counter,
    clock: Clock,
    proxies: Proxies,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint of the current context of the kubeconfig at `path`, or of the pod's service account when no path is
    /// given. The context stays the one that is current now. Writes count in the metrics of `context`. No connection is
    /// opened before the first request.
    ///
    /// # Errors
    /// [`ClientError`] if the kubeconfig or what it names cannot be used.
    pub fn load(context: &Context, path: Option<&Path>) -> Result<Self, ClientError> {
        let Some(path) = path else {
            let config = Config::incluster().map_err(KubeconfigError::NotInCluster)?;
            return Self::build(Identity::service_account(&config), config, context);
        };
        // First: what changes while the rest is read is found to have changed.
        let fingerprint = Fingerprint::of(path, None).ok();
        let selected = kubeconfig::select(path, None)?;
        let config = kubeconfig::config(path, &selected)?;
        let endpoint = Self::build(Identity::of_context(path, &selected.name, &config), config, context)?;
        endpoint.fingerprint.store(Arc::new(fingerprint));
        Ok(endpoint)
    }

    fn build(identity: Identity, mut config: Config, context: &Context) -> Result<Self, ClientError> {
        context.proxies().complete(&mut config)?;
        let transport = Transport::new(&config, context.clock())?;
        let endpoint = Self::with_transport(identity, &config.default_namespace, transport);
        Ok(Self {
            root_certificates: config.root_cert.map(Into::into),
            counter: Counter::of(context),
            clock: context.clock().clone(),
            proxies: context.proxies().clone(),
            ..endpoint
        })
    }

    /// An endpoint for a configuration that comes from elsewhere. There is nothing to reload.
    ///
    /// # Errors
    /// [`ClientError`] if the configuration cannot be used.
    pub fn new(config: &Config) -> Result<Self, ClientError> {
        let transport = Transport::new(config, &Clock::System)?;
        Ok(Self::with_transport(Identity::given(config), &config.default_namespace, transport))
    }

    /// An endpoint that is answered by `service`: another transport, or a server in this process.
    ///
    /// `server` is what the endpoint says its address is, `namespace` the default one of its clients.
    pub fn over<S, B>(server: Uri, namespace: &str, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let identity = Identity::given(&Config::new(server.clone()));
        Self::with_transport(identity, namespace, Transport::over(server, boxed(service)))
    }

    fn with_transport(identity: Identity, namespace: &str, transport: Transport) -> Self {
        Self {
            identity: Arc::new(identity),
            namespace: namespace.into(),
            transport: Arc::new(ArcSwap::from_pointee(transport)),
            fingerprint: Arc::default(),
            root_certificates: None,
            counter: Counter::default(),
            clock: Clock::System,
            proxies: Proxies::default(),
        }
    }

    /// Counts what its clients write in the metrics of `context`.
    #[must_use]
    pub fn counted(self, context: &Context) -> Self {
        Self { counter: Counter::of(context), ..self }
    }

    /// [Reloads](Self::reload) whenever the kubeconfig's context, or a file that it names, changes, until `context` ends.
    /// The credentials of a pod's service account are read again without this.
    #[must_use]
    pub fn reloading(self, context: &Context) -> Self {
        if self.identity.kubeconfig().is_some() {
            context.spawn(reloading::follow(self.clone()));
        }
        self
    }

    /// Uses what the kubeconfig's context says now, if that is not in use yet, and returns whether it was not. Open
    /// watches go on with the old credentials.
    ///
    /// # Errors
    /// [`ClientError`] if that cannot be used, or is for another server: the old credentials then stay in use.
    pub async fn reload(&self) -> Result<bool, ClientError> {
        let Some((path, context)) = self.identity.kubeconfig() else { return Ok(false) };
        let found = Some(Fingerprint::of(path, Some(context))?);
        if **self.fingerprint.load() == found {
            return Ok(false);
        }
        let mut config = kubeconfig::config(path, &kubeconfig::select(path, Some(context))?)?;
        self.proxies.complete(&mut config)?;
        let transport = self.checked(&config)?;
        // A plugin that fails must not replace credentials that work.
        transport.session().await?;
        self.transport.store(Arc::new(transport));
        self.fingerprint.store(Arc::new(found));
        Ok(true)
    }

    /// Uses new credentials for the same server. Open watches go on with the old ones.
    ///
    /// # Errors
    /// [`ClientError`] if the configuration cannot be used, or is for another server; the old one then stays in use.
    pub fn replace(&self, config: &Config) -> Result<(), ClientError> {
        self.transport.store(Arc::new(self.checked(config)?));
        Ok(())
    }

    fn checked(&self, config: &Config) -> Result<Transport, ClientError> {
        self.identity.check(config)?;
        Transport::new(config, &self.clock)
    }

    /// The API server's address.
    #[must_use]
    pub fn server(&self) -> &Uri {
        self.identity.server()
    }

    /// The kubeconfig and the context in it, if that is where the endpoint comes from.
    #[must_use]
    pub fn kubeconfig(&self) -> Option<(&Path, &str)> {
        self.identity.kubeconfig()
    }

    /// Where the credentials come from, for people: `context hub of /some/kubeconfig`.
    #[must_use]
    pub fn origin(&self) -> String {
        self.identity.to_string()
    }

    /// Runs the exec plugin of the kubeconfig, if there is one and it has not given out a credential yet.
    ///
    /// # Errors
    /// [`ClientError::Plugin`].
    pub async fn authenticate(&self) -> Result<(), ClientError> {
        self.transport.load_full().session().await.map(drop)
    }

    /// Until when the credential in use can be used, where an exec plugin gave it out and said so.
    #[must_use]
    pub fn expires(&self) -> Option<Timestamp> {
        self.transport.load().expires()
    }

    /// The certificates (DER) that the API server was recognized by at the start; none for those of the system.
    #[must_use]
    pub fn root_certificates(&self) -> Option<&[Vec<u8>]> {
        self.root_certificates.as_deref()
    }

    /// A client over this endpoint's connection. The part of `user_agent` before a slash is the
    /// field manager of what it writes. Must be called inside the Tokio runtime that will use it.
    ///
    /// # Errors
    /// [`ClientError::UserAgent`] when it is not a header value.
    pub fn client(&self, user_agent: &str) -> Result<Client, ClientError> {
        let agent = HeaderValue::from_str(user_agent).map_err(|_| ClientError::UserAgent(user_agent.into()))?;
        let service = ServiceBuilder::new()
            .map_request(move |mut request: Request<Body>| {
                request.headers_mut().insert(USER_AGENT, agent.clone());
                request
            })
            .layer(RetryLayer::new(RetryAfter::new()))
            .layer_fn(|service| Counting::new(service, self.counter.clone()))
            .service(Current(self.transport.clone()));
        Ok(Client::new(service, self.namespace.clone()))
    }
}

/// A client of its own connection, for commands that need one and nothing else.
///
/// # Errors
/// See [`Endpoint::new`].
pub fn connect(config: &Config, user_agent: &str) -> Result<Client, ClientError> {
    Endpoint::new(config)?.client(user_agent)
}

/// Makes aws-lc-rs the TLS provider of the process. Binaries and tests call it before the first
/// client; calling it again does nothing.
pub fn install_crypto_provider() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Sends every request over the connection of the credentials that are current at that moment.
#[derive(Clone)]
struct Current(Arc<ArcSwap<Transport>>);

impl Service<Request<Body>> for Current {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Task<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        send(self.0.load_full(), request).boxed()
    }
}

/// Sends a request, and again with a new credential if the one in use is refused and can be renewed.
async fn send(transport: Arc<Transport>, request: Request<Body>) -> Result<Response<AnswerBody>, BoxError> {
    let session = transport.session().await?;
    let again = transport.has_plugin().then(|| copy(&request)).flatten();
    let response = send_over(&session, request).await?;
    let Some(again) = again.filter(|_| response.status() == StatusCode::UNAUTHORIZED) else { return Ok(response) };
    match transport.after_refusal(session).await {
        Some(renewed) => send_over(&renewed, again).await,
        None => Ok(response),
    }
}

async fn send_over(session: &Session, request: Request<Body>) -> Result<Response<AnswerBody>, BoxError> {
    let silence = if is_watch(&request) { WATCH_TIMEOUT } else { READ_TIMEOUT };
    let limit = if request.method().is_safe() { READ_TIMEOUT } else { WRITE_TIMEOUT };
    let answer = session.http.clone().oneshot(request);
    let response = timeout(limit, answer).await.map_err(|_| NoAnswer(limit))??;
    Ok(response.map(|body| TimeoutBody::new(silence, body).boxed_unsync()))
}

/// The server accepted a request and does not answer it.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", .0.as_secs())]
struct NoAnswer(Duration);

fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|parameter| parameter == "watch=true")
}

#[cfg(test)]
mod tests;
