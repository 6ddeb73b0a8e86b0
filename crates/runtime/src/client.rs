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
mod error;
mod exec;
mod identity;
mod proxy;
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
pub use self::{error::ClientError, exec::PluginError, proxy::Proxies};
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

#[cfg(test)]
mod tests;
