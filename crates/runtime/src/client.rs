//! Clients to Kubernetes API servers.
//!
//! An [`Endpoint`] is one identity at one API server. All its clients share one HTTP/2 connection,
//! however many watches they hold; where the server (or a proxy before it) only speaks HTTP/1.1,
//! that is used. [`Endpoint::replace`] takes up new credentials: requests from then on go over a new
//! connection, while watches that are open end their life on the old one.
//!
//! `kube::Client` over a [`tower::Service`] is the only way any controller reaches an API server, so
//! whatever else answers the same requests (a mock in tests, another transport) can stand in.
//!
//! An endpoint that is [`counted`](Endpoint::counted) counts the writes of its clients.
//!
//! A server that is too busy and says when to ask again is asked again then.

mod counting;
mod patient;

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use arc_swap::ArcSwap;
use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderValue, Request, Response, Uri, header::USER_AGENT};
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};
use hyper::body::{Body as HttpBody, Bytes};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client as HttpClient,
        connect::{HttpConnector, proxy::Tunnel},
    },
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ConfigExt as _},
};
use tokio::time::timeout;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _, util::BoxCloneSyncService};
use tower_http::timeout::TimeoutBody;

use self::{
    counting::{Counter, Counting},
    patient::Patient,
};
use crate::context;

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the answer to a read may take to begin, and every answer to go on.
const READ_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the answer to a write may take to begin. The API server itself gives up after a minute; a write that is
/// given up sooner, while it waits for an admission webhook, is cancelled there and never made.
const WRITE_TIMEOUT: Duration = Duration::from_secs(65);
/// How long a watch may be silent. API servers send a bookmark about every minute, so one that is
/// silent for longer is not watching, whatever the connection says.
const WATCH_TIMEOUT: Duration = Duration::from_secs(100);
/// A connection that has been silent for this long is asked whether it is alive.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// A connection that does not answer that question within this time is given up.
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// Why a client could not be built from a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A certificate, a key or a token in it cannot be used.
    #[error("failed to use the credentials for {server}")]
    Credentials {
        /// The API server's address.
        server: String,
        /// What is wrong.
        #[source]
        source: Box<kube::Error>,
    },
    /// The server name to verify is not a name.
    #[error("failed to use tls-server-name {name:?} for {server}")]
    ServerName {
        /// The API server's address.
        server: String,
        /// The name as given.
        name: String,
    },
    /// `proxy-url` names a protocol that is not spoken.
    #[error("failed to use proxy-url {proxy}: only http:// proxies are supported")]
    Proxy {
        /// The proxy as given.
        proxy: String,
    },
    /// The user agent holds characters that a header cannot.
    #[error("failed to use user agent {0:?}")]
    UserAgent(String),
}

type HttpService = BoxCloneSyncService<Request<Body>, Response<AnswerBody>, BoxError>;
type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// One identity at one API server; all its clients share a connection.
#[derive(Clone)]
pub struct Endpoint {
    server: Uri,
    namespace: String,
    http: Arc<ArcSwap<HttpService>>,
    counter: Counter,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Prepares connections as `config` says; none is opened before the first request.
    ///
    /// # Errors
    /// [`ClientError`] when the configuration cannot be used.
    pub fn new(config: &Config) -> Result<Self, ClientError> {
        Ok(Self {
            server: config.cluster_url.clone(),
            namespace: config.default_namespace.clone(),
            http: Arc::new(ArcSwap::from_pointee(http_service(config)?)),
            counter: Counter::default(),
        })
    }

    /// Counts what its clients write in the metrics of `context`.
    #[must_use]
    pub fn counted(self, context: &context::Context) -> Self {
        Self { counter: Counter::of(context), ..self }
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
        let http = Arc::new(ArcSwap::from_pointee(boxed(service)));
        Self { server, namespace: namespace.into(), http, counter: Counter::default() }
    }

    /// Takes up new credentials for the same server, without disturbing open watches.
    ///
    /// # Errors
    /// [`ClientError`] when the configuration cannot be used; the old one then stays.
    pub fn replace(&self, config: &Config) -> Result<(), ClientError> {
        self.http.store(Arc::new(http_service(config)?));
        Ok(())
    }

    /// The API server's address.
    #[must_use]
    pub fn server(&self) -> &Uri {
        &self.server
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
            .layer_fn(Patient::new)
            .layer_fn(|service| Counting::new(service, self.counter.clone()))
            .service(Current(self.http.clone()));
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
struct Current(Arc<ArcSwap<HttpService>>);

impl Service<Request<Body>> for Current {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let silence = if is_watch(&request) { WATCH_TIMEOUT } else { READ_TIMEOUT };
        let limit = if request.method().is_safe() { READ_TIMEOUT } else { WRITE_TIMEOUT };
        let answer = HttpService::clone(&self.0.load()).oneshot(request);
        async move {
            let response = timeout(limit, answer).await.map_err(|_| NoAnswer(limit))??;
            Ok(response.map(|body| TimeoutBody::new(silence, body).boxed_unsync()))
        }
        .boxed()
    }
}

/// The server accepted a request and does not answer it.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", .0.as_secs())]
struct NoAnswer(Duration);

fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|parameter| parameter == "watch=true")
}

fn http_service(config: &Config) -> Result<HttpService, ClientError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    match &config.proxy_url {
        None => layered(config, tls(config, tcp)?),
        Some(proxy) if proxy.scheme_str() == Some("http") => {
            layered(config, tls(config, Tunnel::new(proxy.clone(), tcp))?)
        }
        Some(proxy) => Err(ClientError::Proxy { proxy: proxy.to_string() }),
    }
}

fn tls<C>(config: &Config, transport: C) -> Result<HttpsConnector<C>, ClientError> {
    let tls = config.rustls_client_config().map_err(credentials(config))?;
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let invalid = |_| ClientError::ServerName { server: config.cluster_url.to_string(), name: name.clone() };
        let name = name.clone().try_into().map_err(invalid)?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_all_versions().wrap_connector(transport))
}

fn layered<C>(config: &Config, connector: C) -> Result<HttpService, ClientError>
where
    C: hyper_util::client::legacy::connect::Connect + Clone + Send + Sync + 'static,
{
    let http = HttpClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_adaptive_window(true)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build::<_, Body>(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(credentials(config))?)
        .layer(config.extra_headers_layer().map_err(credentials(config))?)
        .map_err(BoxError::from)
        .service(http);
    Ok(boxed(service))
}

fn boxed<S, B>(service: S) -> HttpService
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let answer = |response: Response<B>| response.map(|body| body.map_err(Into::into).boxed_unsync());
    BoxCloneSyncService::new(service.map_response(answer).map_err(Into::into))
}

fn credentials(config: &Config) -> impl FnOnce(kube::Error) -> ClientError {
    let server = config.cluster_url.to_string();
    move |source| ClientError::Credentials { server, source: Box::new(source) }
}

#[cfg(test)]
mod tests;
