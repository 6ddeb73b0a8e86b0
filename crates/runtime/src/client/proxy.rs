//! Proxies between a client and its API server.
//!
//! As in Go's client, the `proxy-url` of a kubeconfig takes precedence over the variables of the environment, and `NO_PROXY`
//! applies to the latter only.

use std::net::IpAddr;

use http::{HeaderValue, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::{
        legacy::connect::{
            HttpConnector,
            proxy::{SocksV5, Tunnel},
        },
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use kube::Config;
use tokio::net::TcpStream;
use tower::{BoxError, ServiceExt as _, util::BoxCloneSyncService};

use super::ClientError;

/// The port of a SOCKS proxy that names none.
const SOCKS_PORT: u16 = 1080;

/// The proxy variables of a process's environment. Its `Debug` form does not show passwords.
#[derive(Clone, Default)]
pub struct Proxies {
    http: String,
    https: String,
    all: String,
    no_proxy: String,
}

impl std::fmt::Debug for Proxies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = f.debug_struct("Proxies");
        for (name, url) in [("http", &self.http), ("https", &self.https), ("all", &self.all)] {
            fields.field(name, &without_password(url));
        }
        fields.field("no_proxy", &self.no_proxy).finish()
    }
}

impl Proxies {
    /// Reads `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the same in lower case, with `variable`.
    #[must_use]
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let read = |name: &str| {
            let names = [name.to_owned(), name.to_lowercase()];
            names.iter().filter_map(|name| variable(name)).find(|value| !value.is_empty()).unwrap_or_default()
        };
        Self {
            http: read("HTTP_PROXY"),
            https: read("HTTPS_PROXY"),
            all: read("ALL_PROXY"),
            no_proxy: read("NO_PROXY"),
        }
    }

    /// Sets the proxy of a configuration that has none.
    ///
    /// # Errors
    /// [`ClientError::Proxy`] if the variable does not hold a URL.
    pub fn complete(&self, config: &mut Config) -> Result<(), ClientError> {
        if config.proxy_url.is_some() {
            return Ok(());
        }
        let Some(url) = self.url_for(&config.cluster_url) else { return Ok(()) };
        config.proxy_url =
            Some(uri(url).map_err(|problem| ClientError::Proxy { proxy: without_password(url), problem })?);
        Ok(())
    }

    /// The URL of the proxy for a server; `None` for this machine and for servers that `NO_PROXY` excludes.
    fn url_for(&self, server: &Uri) -> Option<&str> {
        let own = match server.scheme_str() {
            Some("https") => &self.https,
            Some("http") => &self.http,
            _ => return None,
        };
        let url = [own, &self.all].into_iter().find(|url| !url.is_empty())?;
        (!is_loopback(host(server)?) && !self.excludes(server)).then_some(url)
    }

    fn excludes(&self, server: &Uri) -> bool {
        let entries = || self.no_proxy.split(',').map(str::trim);
        if entries().any(|entry| entry == "*") {
            return true;
        }
        let relevant: Vec<_> = entries().filter_map(|entry| entry_for(entry, server)).collect();
        let any = "http://any";
        Matcher::builder().all(any).no(relevant.join(",")).build().intercept(server).is_none()
    }
}

/// Converts an entry of `NO_PROXY` for [`Matcher`], which knows no ports and for which `.example.com` includes `example.com`.
/// `None` if Go would not apply the entry to this server.
fn entry_for<'a>(entry: &'a str, server: &Uri) -> Option<&'a str> {
    let (name, port) = match entry.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port.parse::<u16>().ok()),
        _ => (entry, None),
    };
    let name = name.trim_matches(['[', ']']).trim_start_matches('*');
    let is_itself = name.strip_prefix('.').is_some_and(|parent| host(server) == Some(parent));
    (port.is_none_or(|port| port == port_of(server)) && !is_itself).then_some(name)
}

pub(super) fn host(server: &Uri) -> Option<&str> {
    Some(server.host()?.trim_matches(['[', ']']))
}

pub(super) fn port_of(server: &Uri) -> u16 {
    server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 })
}

pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The URL of a proxy, or what is wrong with it. In a URI, `#` and what follows it would be lost.
///
/// # Errors
/// The problem, without what the URL contains: that may be a password.
pub(crate) fn uri(url: &str) -> Result<Uri, &'static str> {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if after.contains('@') {
        return Err("has a user or a password with an unescaped #, / or ? (written as %23, %2F and %3F)");
    }
    if !has_port_or_none(authority.rsplit_once('@').map_or(authority, |(_, host)| host)) {
        return Err("has a port that is not a number");
    }
    url.parse().map_err(|_| "is not a URL")
}

fn has_port_or_none(host: &str) -> bool {
    let after_address = host.rsplit_once(']').map_or(host, |(_, after)| after);
    after_address.rsplit_once(':').is_none_or(|(_, port)| port.is_empty() || port.parse::<u16>().is_ok())
}

/// A URL, which may be malformed, without the user and the password in it.
fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    if scheme.is_empty() { rest.to_owned() } else { format!("{scheme}://{rest}") }
}

/// Opens connections to servers through a proxy.
pub(super) type ProxyConnector = BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>;

/// A proxy, and the credentials for it. Its `Debug` form does not show these.
#[derive(Clone)]
pub(super) enum Proxy {
    /// An HTTP proxy, with or without TLS; it gets CONNECT requests.
    Http { uri: Uri, authorization: Option<HeaderValue> },
    /// A SOCKS 5 proxy, which resolves host names.
    Socks { uri: Uri, login: Option<(String, String)> },
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, uri, has_credentials) = match self {
            Self::Http { uri, authorization } => ("Http", uri, authorization.is_some()),
            Self::Socks { uri, login } => ("Socks", uri, login.is_some()),
        };
        let uri = without_password(&uri.to_string());
        f.debug_struct(name).field("uri", &uri).field("has_credentials", &has_credentials).finish()
    }
}

impl Proxy {
    /// # Errors
    /// [`ClientError::Proxy`] if the URL is malformed or the protocol is not supported.
    pub(super) fn parse(url: &str) -> Result<Self, ClientError> {
        const SCHEMES: &str = "is not a URL that begins with http://, https:// or socks5://";
        let refused = || ClientError::Proxy { proxy: without_password(url), problem: SCHEMES };
        let matcher = Matcher::builder().all(url).build();
        let proxy = matcher.intercept(&Uri::from_static("http://any")).ok_or_else(refused)?;
        match proxy.uri().scheme_str() {
            Some("http" | "https") => {
                Ok(Self::Http { uri: proxy.uri().clone(), authorization: proxy.basic_auth().cloned() })
            }
            Some("socks5" | "socks5h") => {
                let login = proxy.raw_auth().map(|(user, password)| (user.to_owned(), password.to_owned()));
                Ok(Self::Socks { uri: socks_address(&proxy).ok_or_else(refused)?, login })
            }
            _ => Err(refused()),
        }
    }

    /// Opens connections through this proxy; `transport` opens those to the proxy.
    pub(super) fn connector(&self, transport: HttpsConnector<HttpConnector>) -> ProxyConnector {
        match self.clone() {
            Self::Http { uri, authorization } => {
                let tunnel = Tunnel::new(uri, transport);
                let tunnel = authorization.into_iter().fold(tunnel, Tunnel::with_auth);
                BoxCloneSyncService::new(tunnel.map_err(BoxError::from))
            }
            Self::Socks { uri, login } => {
                let socks = SocksV5::new(uri, transport);
                let socks = login.into_iter().fold(socks, |socks, (user, password)| socks.with_auth(user, password));
                BoxCloneSyncService::new(socks.map_err(BoxError::from))
            }
        }
    }
}

/// The address of a SOCKS proxy, as the URL of a plain connection.
fn socks_address(proxy: &Intercept) -> Option<Uri> {
    let host = proxy.uri().host()?;
    format!("http://{host}:{}", proxy.uri().port_u16().unwrap_or(SOCKS_PORT)).parse().ok()
}

#[cfg(test)]
mod tests;
