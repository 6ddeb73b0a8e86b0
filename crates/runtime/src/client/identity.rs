//! The identity of an endpoint, which does not change when its kubeconfig does.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use http::Uri;
use kube::Config;

use super::{ClientError, proxy::port_of, without_password};

/// A server, and the source of its configuration.
#[derive(Debug)]
pub(super) struct Identity {
    origin: Origin,
    /// Without a password.
    server: Uri,
    tls_server_name: Option<String>,
}

#[derive(Debug)]
enum Origin {
    Given,
    ServiceAccount,
    Kubeconfig { path: PathBuf, context: String },
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Given => f.write_str("the configuration"),
            Origin::ServiceAccount => f.write_str("the pod's service account"),
            Origin::Kubeconfig { path, context } => write!(f, "context {context} of {}", path.display()),
        }
    }
}

impl Identity {
    pub(super) fn given(config: &Config) -> Self {
        Self::new(Origin::Given, config)
    }

    pub(super) fn service_account(config: &Config) -> Self {
        Self::new(Origin::ServiceAccount, config)
    }

    pub(super) fn of_context(path: &Path, context: &str, config: &Config) -> Self {
        Self::new(Origin::Kubeconfig { path: path.into(), context: context.into() }, config)
    }

    fn new(origin: Origin, config: &Config) -> Self {
        let server = without_password(&config.cluster_url);
        Self { origin, server, tls_server_name: config.tls_server_name.clone() }
    }

    pub(super) fn server(&self) -> &Uri {
        &self.server
    }

    /// The kubeconfig and its context.
    pub(super) fn kubeconfig(&self) -> Option<(&Path, &str)> {
        match &self.origin {
            Origin::Kubeconfig { path, context } => Some((path, context)),
            Origin::Given | Origin::ServiceAccount => None,
        }
    }

    /// Checks that a configuration is for the same server. Its certificate authorities, user and proxy may differ.
    pub(super) fn check(&self, config: &Config) -> Result<(), ClientError> {
        if is_same_server(&self.server, &config.cluster_url) && self.tls_server_name == config.tls_server_name {
            return Ok(());
        }
        Err(ClientError::OtherServer {
            origin: self.to_string(),
            server: name(&self.server, self.tls_server_name.as_ref()),
            found: name(&config.cluster_url, config.tls_server_name.as_ref()),
        })
    }
}

/// Whether two addresses are of the same API server, however they are written.
#[must_use]
pub fn is_same_server(one: &Uri, other: &Uri) -> bool {
    let host = |uri: &Uri| uri.host().map(str::to_lowercase);
    let path = |uri: &Uri| uri.path().trim_end_matches('/').to_owned();
    one.scheme() == other.scheme()
        && host(one) == host(other)
        && port_of(one) == port_of(other)
        && path(one) == path(other)
}

fn name(server: &Uri, tls_server_name: Option<&String>) -> String {
    let server = without_password(server);
    match tls_server_name {
        Some(name) => format!("{server} (tls-server-name {name})"),
        None => server.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(server: &str, name: Option<&str>) -> Config {
        let mut config = Config::new(server.parse().unwrap());
        config.tls_server_name = name.map(str::to_owned);
        config
    }

    #[test]
    fn a_server_is_the_same_however_its_address_is_written() {
        let identity = Identity::given(&config("https://Hub.example.com:443/base", None));
        for same in ["https://hub.example.com/base", "https://hub.example.com:443/base/"] {
            assert!(identity.check(&config(same, None)).is_ok(), "{same}");
        }
        let others =
            ["http://hub.example.com:443/base", "https://hub.example.com:6443/base", "https://hub.example.com"];
        for other in others.into_iter().chain(["https://hub.example.org/base"]) {
            assert!(identity.check(&config(other, None)).is_err(), "{other}");
        }
    }

    #[test]
    fn a_server_that_is_recognized_by_another_name_is_another_one() {
        let identity = Identity::of_context(Path::new("/k"), "hub", &config("https://10.0.0.1", Some("hub")));
        assert!(identity.check(&config("https://10.0.0.1", Some("hub"))).is_ok());
        let error = identity.check(&config("https://10.0.0.1", None)).unwrap_err().to_string();
        assert!(error.contains("context hub of /k leads to https://10.0.0.1/ now"), "{error}");
        assert!(error.contains("https://10.0.0.1/ (tls-server-name hub)") && error.contains("restart"), "{error}");
    }

    #[test]
    fn a_password_in_the_address_is_shown_nowhere() {
        let own = config("https://somebody:secret@hub.example.com:6443/clusters/a@b", None);
        let identity = Identity::given(&own);
        assert_eq!(identity.server().to_string(), "https://hub.example.com:6443/clusters/a@b");
        assert!(identity.check(&own).is_ok());
        let other = identity.check(&config("https://somebody:secret@other", Some("x"))).unwrap_err().to_string();
        assert!(other.contains("https://other/"), "{other}");
        for shown in [other, format!("{identity:?}")] {
            assert!(!shown.contains("secret") && !shown.contains("somebody"), "{shown}");
        }
    }
}
