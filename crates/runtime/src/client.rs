//! Clients to Kubernetes API servers.
//!
//! An [`Endpoint`] is one identity at one API server: the server, the kubeconfig context that named it, the credentials and
//! the proxy. All its clients share one HTTP/2 connection, however many watches they hold; HTTP/1.1 is used if the server (or
//! a proxy before it) does not support HTTP/2.
//!
//! Server and context never change: [`Endpoint::reload`] reads new credentials from the kubeconfig, and refuses those for
//! another server. Later requests use a new connection, while open watches continue on the old one. Credentials from an exec
//! plugin are renewed before they expire, and when the server rejects them (401).
//!
//! Controllers reach an API server only by a `kube::Client` over a [`tower::Service`], so a mock or another transport can
//! replace the server.
//!
//! Writes are counted in the metrics of a [`Context`]. A request that a busy server rejects with `Retry-After` is sent again
//! after that time.

mod counting;
mod error;
mod exec;
mod expiry;
mod identity;
mod probe;
mod problem;
pub(crate) mod proxy;
mod reloading;
mod retry;
mod send;
#[cfg(test)]
mod testing;
mod token_file;
mod transport;
mod verifier;

use std::{path::Path, sync::Arc};

use arc_swap::ArcSwap;
use http::{HeaderValue, Request, Response, Uri, header::USER_AGENT};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body as HttpBody, Bytes};
use jiff::Timestamp;
use kube::{Client, Config, client::Body};
use tower::{BoxError, Service, ServiceBuilder, retry::RetryLayer};

use self::{
    counting::{Counter, Counting},
    identity::Identity,
    retry::RetryAfter,
    send::Current,
    transport::{Transport, boxed},
};
pub use self::{
    error::ClientError,
    exec::PluginError,
    expiry::expiry,
    identity::is_same_server,
    probe::{Answer, probe},
    problem::{Problem, is_loopback},
    proxy::Proxies,
};
use crate::{
    Clock, Context,
    kubeconfig::{self, Fingerprint, KubeconfigError},
};

type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// One identity at one API server; all its clients share a connection. Cheap to clone.
#[derive(Clone)]
pub struct Endpoint {
    identity: Arc<Identity>,
    namespace: String,
    transport: Arc<ArcSwap<Transport>>,
    /// That of the kubeconfig when it was last loaded.
    fingerprint: Arc<ArcSwap<Option<Fingerprint>>>,
    root_certificates: Option<Arc<[Vec<u8>]>>,
    counter: Counter,
    clock: Clock,
    proxies: Proxies,
    in_pod: bool,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint for the current context of the kubeconfig at `path`, or for the pod's service account if no path is
    /// given. The endpoint stays with that kubeconfig context. Its writes are counted in the metrics of `context`. No
    /// connection is opened before the first request.
    ///
    /// # Errors
    /// [`ClientError`] if the kubeconfig or what it names cannot be used.
    pub fn load(context: &Context, path: Option<&Path>) -> Result<Self, ClientError> {
        let Some(path) = path else {
            let config = Config::incluster().map_err(KubeconfigError::NotInCluster)?;
            return Self::build(Identity::service_account(&config), config, context);
        };
        // Taken first, so that a change during the rest is noticed later.
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
            in_pod: context.is_in_pod(),
            ..endpoint
        })
    }

    /// An endpoint for a configuration from elsewhere, which cannot be reloaded.
    ///
    /// # Errors
    /// [`ClientError`] if the configuration cannot be used.
    pub fn new(config: &Config) -> Result<Self, ClientError> {
        let transport = Transport::new(config, &Clock::System)?;
        Ok(Self::with_transport(Identity::given(config), &config.default_namespace, transport))
    }

    /// An endpoint whose requests are answered by `service`: another transport, or a server in this process.
    ///
    /// `server` is the address that the endpoint reports, `namespace` the default namespace of its clients.
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
            in_pod: false,
        }
    }

    /// Counts the writes of its clients in the metrics of `context`.
    #[must_use]
    pub fn counted(self, context: &Context) -> Self {
        Self { counter: Counter::of(context), ..self }
    }

    /// [Reloads](Self::reload) whenever the kubeconfig context or a file that it names changes, until `context` ends. The
    /// credentials of a pod's service account are always reloaded.
    #[must_use]
    pub fn reloading(self, context: &Context) -> Self {
        if self.identity.kubeconfig().is_some() {
            context.spawn(reloading::follow(self.clone()));
        }
        self
    }

    /// Reads the kubeconfig context again. Returns whether it has changed, and is used now. Open watches continue with the
    /// old credentials.
    ///
    /// # Errors
    /// [`ClientError`] if it cannot be used, or is for another server: the old credentials then stay in use.
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

    /// Uses new credentials for the same server. Open watches continue with the old ones.
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

    /// The API server's address, without a password.
    #[must_use]
    pub fn server(&self) -> &Uri {
        self.identity.server()
    }

    /// The kubeconfig and the context in it, if the endpoint was loaded from one.
    #[must_use]
    pub fn kubeconfig(&self) -> Option<(&Path, &str)> {
        self.identity.kubeconfig()
    }

    /// The source of the credentials, for messages: `context hub of /some/kubeconfig`.
    #[must_use]
    pub fn origin(&self) -> String {
        self.identity.to_string()
    }

    /// Runs the exec plugin of the kubeconfig, if there is one that has not provided a credential yet.
    ///
    /// # Errors
    /// [`ClientError::Plugin`].
    pub async fn authenticate(&self) -> Result<(), ClientError> {
        self.transport.load_full().session().await.map(drop)
    }

    /// When the credential in use expires, if an exec plugin provided it with a time.
    #[must_use]
    pub fn expires(&self) -> Option<Timestamp> {
        self.transport.load().expires()
    }

    /// When the credentials of the kubeconfig expire, if they say so; see [`expiry()`].
    #[must_use]
    pub fn expiry(&self) -> Option<Timestamp> {
        self.transport.load().expiry()
    }

    /// Why a request failed.
    #[must_use]
    pub fn problem(&self, error: &(dyn std::error::Error + 'static)) -> Problem {
        Problem::of(error).with_expiry(self.expiry(), self.clock.now())
    }

    /// What to do about a problem with this server.
    #[must_use]
    pub fn hint(&self, problem: &Problem) -> String {
        problem.hint(self.server(), self.in_pod)
    }

    /// The clock that it was built with.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The certificate authorities (DER) of the API server when the endpoint was loaded; `None` for those of the system.
    #[must_use]
    pub fn root_certificates(&self) -> Option<&[Vec<u8>]> {
        self.root_certificates.as_deref()
    }

    /// A client over this endpoint's connection. The part of `user_agent` before a slash is the field manager of its writes.
    /// Must be called in the Tokio runtime that will use it.
    ///
    /// # Errors
    /// [`ClientError::UserAgent`] if it is not a header value.
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

/// A client with its own connection, for commands that need a single client.
///
/// # Errors
/// See [`Endpoint::new`].
pub fn connect(config: &Config, user_agent: &str) -> Result<Client, ClientError> {
    Endpoint::new(config)?.client(user_agent)
}

/// The address of a server without the user and the password that it may contain, for messages.
#[must_use]
pub fn without_password(server: &Uri) -> Uri {
    let without_user = |authority: &str| authority.rsplit_once('@').and_then(|(_, host)| host.parse().ok());
    let mut parts = server.clone().into_parts();
    let authority = parts.authority.take();
    parts.authority = authority.map(|authority| without_user(authority.as_str()).unwrap_or(authority));
    Uri::from_parts(parts).unwrap_or_default()
}

/// Makes aws-lc-rs the TLS provider of the process. Binaries and tests call it before the first
/// client; calling it again does nothing.
pub fn install_crypto_provider() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

#[cfg(test)]
mod tests;
