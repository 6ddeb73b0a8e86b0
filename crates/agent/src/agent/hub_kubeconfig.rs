//! The kubeconfig for the hub, derived from the bootstrap kubeconfig, and validation of the credentials.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kube::config::{Cluster, Kubeconfig};
use ocm_api::{
    identities,
    secrets::{self, KEY_KUBECONFIG, KEY_TLS_CERT, KEY_TLS_KEY, KEY_TOKEN},
};
use ocm_runtime::{
    error::chain,
    kubeconfig::{self, KubeconfigError},
    pki::Bundle,
};
use serde_json::{Map, Value, json};

use super::{files::HubDir, names::Names};

/// Why a kubeconfig does not name a hub.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] KubeconfigError),
    /// The agent's own could not be serialized.
    #[error("failed to write the kubeconfig for the hub")]
    Render(#[from] ocm_apimachinery::yaml::Error),
    /// It has no current context, or that one is incomplete.
    #[error("kubeconfig {path} names no hub: {missing}")]
    Nowhere {
        /// The file.
        path: PathBuf,
        /// What is missing.
        missing: &'static str,
    },
}

/// The address and identity of a hub, which the agent's own kubeconfig takes from the bootstrap kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Connection {
    pub(crate) name: String,
    pub(crate) server: String,
    pub(crate) ca_file: Option<String>,
    pub(crate) ca_data: Option<String>,
    pub(crate) proxy: Option<String>,
    /// Fields of the bootstrap kubeconfig that the agent's own does not take over.
    pub(crate) left_out: Vec<&'static str>,
}

impl Connection {
    pub(crate) fn read(path: &Path) -> Result<Self, ConnectionError> {
        let nowhere = |missing| ConnectionError::Nowhere { path: path.into(), missing };
        Self::of(&kubeconfig::read(path)?).map_err(nowhere)
    }

    /// The connection of the current context.
    pub(super) fn of(kubeconfig: &Kubeconfig) -> Result<Self, &'static str> {
        let (name, cluster) = current_cluster(kubeconfig)?;
        let text = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        Ok(Self {
            name: name.into(),
            server: text(&cluster.server).ok_or("its cluster has no server")?,
            ca_file: text(&cluster.certificate_authority),
            ca_data: text(&cluster.certificate_authority_data).map(|data| data.split_whitespace().collect()),
            proxy: text(&cluster.proxy_url),
            left_out: left_out(cluster),
        })
    }

    /// The agent's kubeconfig, byte for byte as OCM's agents write it.
    pub(crate) fn render(&self) -> Result<String, ConnectionError> {
        self.render_for(&json!({"client-certificate": KEY_TLS_CERT, "client-key": KEY_TLS_KEY}))
    }

    /// That of an add-on whose agent has a token.
    pub(crate) fn render_with_token(&self) -> Result<String, ConnectionError> {
        self.render_for(&json!({"tokenFile": KEY_TOKEN}))
    }

    fn render_for(&self, user: &Value) -> Result<String, ConnectionError> {
        Ok(ocm_apimachinery::yaml::to_string(&self.to_value(user))?)
    }

    fn to_value(&self, user: &Value) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": self.cluster()}],
            "contexts": [{
                "name": secrets::KUBECONFIG_CONTEXT,
                "context": {
                    "cluster": self.name,
                    "namespace": secrets::KUBECONFIG_NAMESPACE,
                    "user": secrets::KUBECONFIG_USER,
                },
            }],
            "current-context": secrets::KUBECONFIG_CONTEXT,
            "users": [{"name": secrets::KUBECONFIG_USER, "user": user}],
        })
    }

    fn cluster(&self) -> Map<String, Value> {
        let fields = [
            ("certificate-authority", &self.ca_file),
            ("certificate-authority-data", &self.ca_data),
            ("proxy-url", &self.proxy),
        ];
        let optional = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?))));
        optional.chain([("server".to_owned(), json!(self.server))]).collect()
    }
}

fn left_out(cluster: &Cluster) -> Vec<&'static str> {
    let has_name = cluster.tls_server_name.as_deref().is_some_and(|name| !name.is_empty());
    let fields =
        [("tls-server-name", has_name), ("insecure-skip-tls-verify", cluster.insecure_skip_tls_verify == Some(true))];
    fields.into_iter().filter_map(|(field, is_set)| is_set.then_some(field)).collect()
}

fn current_cluster(kubeconfig: &Kubeconfig) -> Result<(&str, &Cluster), &'static str> {
    let current = kubeconfig.current_context.as_deref().ok_or("it has no current-context")?;
    let context = kubeconfig.contexts.iter().find(|context| context.name == current);
    let context = context.and_then(|context| context.context.as_ref()).ok_or("its current-context is not in it")?;
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == context.cluster);
    let cluster = cluster.and_then(|cluster| cluster.cluster.as_ref()).ok_or("its context's cluster is not in it")?;
    Ok((&context.cluster, cluster))
}

/// Valid credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Valid {
    pub(crate) until: Timestamp,
}

/// Why the agent's credentials for the hub are not valid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A file does not exist.
    #[error("{0} does not exist yet")]
    Missing(PathBuf),
    /// The kubeconfig cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The bootstrap kubeconfig is for another hub, or for the same one under another name or address.
    #[error("its {0} differs from that of the bootstrap kubeconfig")]
    OtherHub(&'static str),
    /// The certificate cannot be read.
    #[error("{path} is not a certificate: {cause}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The certificate was issued for another key.
    #[error("{0} is not the key of the certificate next to it")]
    OtherKey(PathBuf),
    /// The certificate is for another user.
    #[error("its certificate is for {found:?}, not for {expected:?}")]
    OtherUser {
        /// The user in the certificate.
        found: String,
        /// The agent's user.
        expected: String,
    },
    /// The certificate has expired.
    #[error("its certificate expired at {0}")]
    Expired(Timestamp),
}

/// Checks that the credentials in `dir` are for the hub of `bootstrap` (if known) and the user of `names`, and have not expired.
pub(crate) fn check(
    dir: &HubDir,
    bootstrap: Option<&Connection>,
    names: &Names,
    now: Timestamp,
) -> Result<Valid, Invalid> {
    let kubeconfig = dir.file(KEY_KUBECONFIG);
    if !kubeconfig.exists() {
        return Err(Invalid::Missing(kubeconfig));
    }
    let connection = Connection::read(&kubeconfig).map_err(|error| Invalid::Unusable(chain(&error)))?;
    if let Some(bootstrap) = bootstrap {
        compare(&connection, bootstrap)?;
    }
    let file = |key: &str| dir.read(key).ok_or_else(|| Invalid::Missing(dir.file(key)));
    let (key, certificate) = (file(KEY_TLS_KEY)?, file(KEY_TLS_CERT)?);
    let unreadable = |cause: String| Invalid::Certificate { path: dir.file(KEY_TLS_CERT), cause };
    let certificate = Bundle::parse(&certificate).map_err(|error| unreadable(error.to_string()))?;
    certificate.check_key(&String::from_utf8_lossy(&key)).map_err(|_| Invalid::OtherKey(dir.file(KEY_TLS_KEY)))?;
    check_certificate(&certificate, names, now)
}

pub(super) fn compare(own: &Connection, bootstrap: &Connection) -> Result<(), Invalid> {
    let differs = [
        ("cluster name", own.name != bootstrap.name),
        ("server", own.server != bootstrap.server),
        ("proxy-url", own.proxy != bootstrap.proxy),
        ("certificate-authority", own.ca_file != bootstrap.ca_file),
        ("certificate-authority-data", own.ca_data != bootstrap.ca_data),
    ];
    match differs.into_iter().find(|(_, differs)| *differs) {
        Some((what, _)) => Err(Invalid::OtherHub(what)),
        None => Ok(()),
    }
}

fn check_certificate(certificate: &Bundle, names: &Names, now: Timestamp) -> Result<Valid, Invalid> {
    let expected = identities::cluster_user(&names.cluster, &names.agent);
    if !certificate.subjects().any(|subject| subject.common_name == expected) {
        let found = certificate.subjects().map(|subject| subject.common_name.clone()).next().unwrap_or_default();
        return Err(Invalid::OtherUser { found, expected });
    }
    let until = certificate.not_after();
    if certificate.is_expired(now) { Err(Invalid::Expired(until)) } else { Ok(Valid { until }) }
}

#[cfg(test)]
mod tests;
