//! Errors of building clients and of reloading credentials.

use std::{path::PathBuf, sync::Arc};

use super::PluginError;
use crate::kubeconfig::KubeconfigError;

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
    #[error(
        "failed to use proxy {proxy}: it {problem}; give one such as http://proxy.example.com:3128, with special characters \
         of a password percent-encoded"
    )]
    Proxy {
        /// The proxy as given, without the password.
        proxy: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The file with the token cannot be used.
    #[error("failed to read a token from {path}: {problem}")]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// An exec plugin failed.
    #[error(transparent)]
    Plugin(Arc<PluginError>),
    /// New credentials are for another API server than this endpoint was made for.
    #[error(
        "{origin} leads to {found} now, and no longer to {server}, for which this process was started; restart the process \
         if it is to use {found}, or else correct the kubeconfig"
    )]
    OtherServer {
        /// The source of the credentials.
        origin: String,
        /// The API server of this endpoint.
        server: String,
        /// The API server that the new credentials are for.
        found: String,
    },
    /// The user agent contains characters that are not allowed in a header.
    #[error("failed to use user agent {0:?}")]
    UserAgent(String),
}

impl From<KubeconfigError> for ClientError {
    fn from(error: KubeconfigError) -> Self {
        Self::Kubeconfig(Arc::new(error))
    }
}
