//! Connections to a server, and the credentials that they use.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use http::{Request, Response, header::AUTHORIZATION};
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Bytes};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client as HttpClient,
        connect::{Connect, HttpConnector},
    },
    rt::{TokioExecutor, TokioTimer},
};
use jiff::{SignedDuration, Timestamp};
use kube::{
    Config,
    client::{Body, ConfigExt as _},
    config::AuthInfo,
};
use rustls::{ClientConfig, sign::SingleCertAndKey};
use tokio::sync::Mutex;
use tower::{
    BoxError, Service, ServiceBuilder, ServiceExt as _,
    util::{BoxCloneSyncService, MapRequestLayer},
};
use tracing::warn;

use super::{
    AnswerBody, ClientError,
    exec::{Credential, Plugin},
    expiry::expiry,
    proxy::{Proxy, ProxyConnector},
    token_file::TokenFile,
    verifier, without_password,
};
use crate::{Clock, error::chain};

/// How long opening a TCP connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often an idle connection is pinged.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// A connection that does not answer a ping within this time is closed.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// A credential is renewed this long before it expires.
const AHEAD: SignedDuration = SignedDuration::from_secs(60);
/// The shortest time between two runs of a plugin.
const PAUSE: SignedDuration = SignedDuration::from_secs(10);

pub(super) type HttpService = BoxCloneSyncService<Request<Body>, Response<AnswerBody>, BoxError>;

/// A server, and the source of the credentials for it.
pub(super) struct Transport {
    config: Config,
    plugin: Option<Plugin>,
    clock: Clock,
    /// `None` until a plugin has provided the first credential.
    session: ArcSwapOption<Session>,
    /// The last failure of the plugin, and its time. Locked while the plugin runs.
    failure: Mutex<Option<(Timestamp, ClientError)>>,
}

/// A connection with one credential. It is opened when it is first used.
pub(super) struct Session {
    pub(super) http: HttpService,
    since: Timestamp,
    pub(super) expires: Option<Timestamp>,
}

impl Transport {
    /// Prepares connections; none is opened and no plugin run before the first request.
    pub(super) fn new(config: &Config, clock: &Clock) -> Result<Self, ClientError> {
        let mut config = config.clone();
        let plugin = Plugin::take(&mut config.auth_info);
        // Built even with a plugin, so that errors in the configuration are found at once.
        let session = Session::new(&config, Credential::default(), clock)?;
        let session = ArcSwapOption::new(plugin.is_none().then(|| Arc::new(session)));
        Ok(Self { config, plugin, clock: clock.clone(), session, failure: Mutex::default() })
    }

    /// A transport whose requests are answered by `service`.
    pub(super) fn over(server: http::Uri, service: HttpService) -> Self {
        let session = Session { http: service, since: Timestamp::MIN, expires: None };
        Self {
            config: Config::new(server),
            plugin: None,
            clock: Clock::System,
            session: ArcSwapOption::from_pointee(session),
            failure: Mutex::default(),
        }
    }

    pub(super) fn has_plugin(&self) -> bool {
        self.plugin.is_some()
    }

    /// When the credential in use expires, if that is known.
    pub(super) fn expires(&self) -> Option<Timestamp> {
        self.session.load().as_ref().and_then(|session| session.expires)
    }

    /// When the credentials of the configuration expire, if they say so.
    pub(super) fn expiry(&self) -> Option<Timestamp> {
        expiry(&self.config.auth_info)
    }

    /// The session for the next request. A credential that is about to expire is renewed first.
    pub(super) async fn session(&self) -> Result<Arc<Session>, ClientError> {
        let now = self.clock.now();
        match self.session.load_full() {
            Some(session) if !session.is_due(now) => Ok(session),
            due => self.renew(due).await,
        }
    }

    /// A new session after a request was rejected (401) with the credential of `refused`; `None` if there is no other.
    pub(super) async fn after_refusal(&self, refused: Arc<Session>) -> Option<Arc<Session>> {
        if self.plugin.is_none() || self.clock.now() < refused.since + PAUSE {
            return None;
        }
        let renewed = self.renew(Some(refused.clone())).await;
        renewed.ok().filter(|renewed| !Arc::ptr_eq(renewed, &refused))
    }

    /// Runs the plugin, unless another task has already replaced `due`.
    async fn renew(&self, due: Option<Arc<Session>>) -> Result<Arc<Session>, ClientError> {
        let mut failure = self.failure.lock().await;
        let (current, now) = (self.session.load_full(), self.clock.now());
        if let Some(current) = current.filter(|current| due.as_ref().is_none_or(|due| !Arc::ptr_eq(due, current))) {
            return Ok(current);
        }
        if let Some((at, error)) = &*failure
            && now < *at + PAUSE
        {
            return usable(due, now).ok_or_else(|| error.clone());
        }
        match self.run_plugin().await {
            Ok(session) => {
                *failure = None;
                self.session.store(Some(session.clone()));
                Ok(session)
            }
            Err(error) => {
                *failure = Some((now, error.clone()));
                let Some(old) = usable(due, now) else { return Err(error) };
                warn!(error = %chain(&error), "failed to renew the credentials, using the old ones until they expire");
                Ok(old)
            }
        }
    }

    async fn run_plugin(&self) -> Result<Arc<Session>, ClientError> {
        let credential = match &self.plugin {
            Some(plugin) => plugin.run().await.map_err(|error| ClientError::Plugin(Arc::new(error)))?,
            None => Credential::default(),
        };
        Session::new(&self.config, credential, &self.clock).map(Arc::new)
    }
}

impl Session {
    fn is_due(&self, now: Timestamp) -> bool {
        now >= self.since + PAUSE && self.expires.is_some_and(|expires| now + AHEAD >= expires)
    }

    fn new(config: &Config, credential: Credential, clock: &Clock) -> Result<Self, ClientError> {
        let Credential { token, identity, expires } = credential;
        let mut config = config.clone();
        config.auth_info.token = token.map(Into::into).or(config.auth_info.token);
        let token_file = TokenFile::take(&mut config.auth_info, clock)?;
        let mut tls = client_tls(&config)?;
        if let Some(identity) = identity {
            tls.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(identity));
        }
        let http = match proxy(&config)? {
            None => layered(&config, token_file, https(&config, tls, tcp())?)?,
            Some(proxy) => layered(&config, token_file, https(&config, tls, proxy)?)?,
        };
        Ok(Self { http, since: clock.now(), expires })
    }
}

/// The old session, if its credential has not expired yet.
fn usable(due: Option<Arc<Session>>, now: Timestamp) -> Option<Arc<Session>> {
    due.filter(|due| due.expires.is_none_or(|expires| now < expires))
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp
}

fn client_tls(config: &Config) -> Result<ClientConfig, ClientError> {
    let mut tls = config.rustls_client_config().map_err(credentials(config))?;
    let verifier = verifier::of(config)
        .map_err(|source| ClientError::Authority { server: server_of(config), source: Arc::new(source) })?;
    if let Some(verifier) = verifier {
        tls.dangerous().set_certificate_verifier(verifier);
    }
    Ok(tls)
}

/// The certificate of a proxy is verified like the server's, as in Go. The proxy does not get the client's certificate.
fn proxy(config: &Config) -> Result<Option<ProxyConnector>, ClientError> {
    let Some(url) = &config.proxy_url else { return Ok(None) };
    let proxy = Proxy::parse(&url.to_string())?;
    let mut anonymous = config.clone();
    anonymous.auth_info = AuthInfo::default();
    let tls = client_tls(&anonymous)?;
    let transport = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
    Ok(Some(proxy.connector(transport.wrap_connector(tcp()))))
}

fn https<C>(config: &Config, tls: ClientConfig, transport: C) -> Result<HttpsConnector<C>, ClientError> {
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let invalid = |_| ClientError::ServerName { server: server_of(config), name: name.clone() };
        let name = name.clone().try_into().map_err(invalid)?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_all_versions().wrap_connector(transport))
}

fn layered<C>(config: &Config, token_file: Option<TokenFile>, connector: C) -> Result<HttpService, ClientError>
where
    C: Connect + Clone + Send + Sync + 'static,
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
        .option_layer(token_file.map(authorization_from))
        .layer(config.extra_headers_layer().map_err(credentials(config))?)
        .map_err(BoxError::from)
        .service(http);
    Ok(boxed(service))
}

fn authorization_from(file: TokenFile) -> MapRequestLayer<impl Fn(Request<Body>) -> Request<Body> + Clone> {
    let file = Arc::new(file);
    MapRequestLayer::new(move |mut request: Request<Body>| {
        request.headers_mut().insert(AUTHORIZATION, file.authorization());
        request
    })
}

pub(super) fn boxed<S, B>(service: S) -> HttpService
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
    let server = server_of(config);
    move |source| ClientError::Credentials { server, source: Arc::new(source) }
}

/// The server, for messages.
fn server_of(config: &Config) -> String {
    without_password(&config.cluster_url).to_string()
}
