//! Kubeconfig files: selecting a context, building a configuration from it, and noticing that it has changed.
//!
//! The environment is not read here. If a kubeconfig names no proxy, [`Proxies`](crate::client::Proxies) add one.

mod fields;

use std::path::{Path, PathBuf};

use kube::{
    Config,
    config::{AuthInfo, Cluster, ExecAuthCluster, KubeconfigError as Cause},
};
// Callers need not depend on kube's module of the same name.
pub use kube::config::Kubeconfig;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use sha2::{Digest as _, Sha256};

pub use self::fields::FieldError;
use crate::error::chain;

/// Why a kubeconfig could not be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The file does not exist or may not be read.
    #[error("failed to read kubeconfig {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a kubeconfig.
    #[error("failed to parse kubeconfig {path}: {problem}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line; without what the file contains, which may be a secret.
        problem: String,
    },
    /// The file is a kubeconfig, but something that it names is missing or malformed.
    #[error("failed to use kubeconfig {path}")]
    Use {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: Box<Cause>,
    },
    /// A field of the context cannot be used.
    #[error("failed to use kubeconfig {path}, context {context}")]
    Field {
        /// The file.
        path: PathBuf,
        /// The context.
        context: String,
        /// The field, what is wrong with it and what to do.
        #[source]
        source: FieldError,
    },
    /// A file that the context names cannot be read.
    #[error("failed to read {file}, which kubeconfig {path} names")]
    File {
        /// The kubeconfig.
        path: PathBuf,
        /// The file that it names.
        file: PathBuf,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
    /// No file was named, and the process does not run in a pod.
    #[error("no kubeconfig was given and this is not a pod with a service account")]
    NotInCluster(#[source] kube::config::InClusterError),
}

impl KubeconfigError {
    /// Whether the kubeconfig does not have the context, or has no current one.
    #[must_use]
    pub fn is_missing_context(&self) -> bool {
        let Self::Use { source, .. } = self else { return false };
        matches!(**source, Cause::CurrentContextNotSet | Cause::LoadContext(_) | Cause::LoadClusterOfContext(_))
    }
}

/// Reads the kubeconfig at `path`; file names in it are relative to its folder.
///
/// # Errors
/// [`KubeconfigError::Read`] and [`KubeconfigError::Parse`].
pub fn read(path: &Path) -> Result<Kubeconfig, KubeconfigError> {
    // kube's error would not say why the file cannot be read.
    std::fs::metadata(path)
        .and_then(|_| std::fs::File::open(path))
        .map_err(|source| KubeconfigError::Read { path: path.into(), source })?;
    Kubeconfig::read_from(path).map_err(|error| KubeconfigError::Parse { path: path.into(), problem: problem(&error) })
}

/// The first line of the error: those after it show the lines of the file. Serde quotes the values that it refuses.
fn problem(error: &Cause) -> String {
    let text = chain(error);
    let line = text.lines().next().unwrap_or_default();
    match (line.find('"'), line.rfind('"')) {
        (Some(first), Some(last)) => format!("{}\"...\"{}", &line[..first], &line[last + 1..]),
        _ => line.to_owned(),
    }
}

/// Reads the kubeconfig at `path` and selects `context`, or its current context for `None`.
///
/// # Errors
/// [`KubeconfigError`].
pub fn select(path: &Path, context: Option<&str>) -> Result<SelectedContext, KubeconfigError> {
    SelectedContext::of(&read(path)?, context)
        .map_err(|source| KubeconfigError::Use { path: path.into(), source: Box::new(source) })
}

/// The client configuration for the current context of the kubeconfig at `path`, or that of the pod's service account
/// when no path is given. It names no proxy unless the kubeconfig does.
///
/// # Errors
/// [`KubeconfigError`].
pub async fn load(path: Option<&Path>) -> Result<Config, KubeconfigError> {
    let Some(path) = path else {
        return Config::incluster().map_err(KubeconfigError::NotInCluster);
    };
    config(path, &select(path, None)?)
}

/// The client configuration for a context of the kubeconfig at `path`.
pub(crate) fn config(path: &Path, context: &SelectedContext) -> Result<Config, KubeconfigError> {
    let name = || context.name.clone();
    context.check().map_err(|source| KubeconfigError::Field { path: path.into(), context: name(), source })?;
    context.config().map_err(|source| KubeconfigError::Use { path: path.into(), source: Box::new(source) })
}

/// One context of a kubeconfig, with the cluster and the user that it names.
#[derive(Clone)]
pub struct SelectedContext {
    /// The name of the context.
    pub name: String,
    /// Where the API server is, and how it is recognized.
    pub cluster: Cluster,
    /// The credentials; empty if the context names no user.
    pub user: AuthInfo,
    namespace: Option<String>,
}

impl std::fmt::Debug for SelectedContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SelectedContext").field("name", &self.name).finish_non_exhaustive()
    }
}

impl SelectedContext {
    /// Selects the context of this name, or the current context for `None`.
    ///
    /// # Errors
    /// If the context or its cluster is missing. A user that is missing counts as an empty one, as in client-go.
    pub fn of(kubeconfig: &Kubeconfig, context: Option<&str>) -> Result<Self, Cause> {
        let current = kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
        let name = context.or(current).ok_or(Cause::CurrentContextNotSet)?;
        let named = kubeconfig.contexts.iter().find(|named| named.name == name);
        let context =
            named.and_then(|named| named.context.as_ref()).ok_or_else(|| Cause::LoadContext(name.to_owned()))?;
        let cluster = kubeconfig.clusters.iter().find(|named| named.name == context.cluster);
        let cluster = cluster
            .and_then(|named| named.cluster.clone())
            .ok_or_else(|| Cause::LoadClusterOfContext(context.cluster.clone()))?;
        let user = kubeconfig.auth_infos.iter().find(|named| Some(&named.name) == context.user.as_ref());
        let mut user = user.and_then(|named| named.auth_info.clone()).unwrap_or_default();
        if let Some(plugin) = user.exec.as_mut().filter(|plugin| plugin.provide_cluster_info) {
            plugin.cluster = Some(ExecAuthCluster::try_from(&cluster)?);
        }
        Ok(Self { name: name.to_owned(), cluster, user, namespace: context.namespace.clone() })
    }

    /// The files that the context's cluster and user name: certificate authority, client certificate, key and token. A file
    /// is left out if the kubeconfig also has the content inline, which takes precedence.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let Self { cluster, user, .. } = self;
        let files = [
            (&cluster.certificate_authority, cluster.certificate_authority_data.is_some()),
            (&user.client_certificate, user.client_certificate_data.is_some()),
            (&user.client_key, user.client_key_data.is_some()),
            (&user.token_file, user.token.is_some()),
        ];
        files
            .into_iter()
            .filter(|(_, inline)| !inline)
            .filter_map(|(file, _)| file.as_ref())
            .map(PathBuf::from)
            .collect()
    }

    /// Checks its fields, and reads the files that they name.
    ///
    /// # Errors
    /// [`FieldError`]: the field, what is wrong with it, and what to do about it.
    pub fn check(&self) -> Result<(), FieldError> {
        fields::check(self)
    }

    /// The client configuration.
    ///
    /// # Errors
    /// If the server or its certificate authority cannot be read.
    pub fn config(&self) -> Result<Config, Cause> {
        let server = self.cluster.server.as_ref().ok_or(Cause::MissingClusterUrl)?;
        let mut config = Config::new(server.parse().map_err(Cause::ParseClusterUrl)?);
        // kube loads the certificate authority for plugins: from the file or inline.
        let authority = ExecAuthCluster::try_from(&self.cluster)?.certificate_authority_data;
        config.root_cert = authority.filter(|pem| !pem.is_empty()).map(|pem| certificates(&pem));
        config.default_namespace = self.namespace.clone().unwrap_or(config.default_namespace);
        config.accept_invalid_certs = self.cluster.insecure_skip_tls_verify.unwrap_or_default();
        config.tls_server_name = self.cluster.tls_server_name.clone().filter(|name| !name.is_empty());
        let proxy = self.cluster.proxy_url.as_deref().filter(|url| !url.is_empty());
        config.proxy_url = proxy.map(|url| url.parse().map_err(Cause::ParseProxyUrl)).transpose()?;
        config.auth_info = self.user.clone();
        complete_password(&mut config.auth_info);
        Ok(config)
    }
}

/// As in client-go, a user with a name may have an empty password, and a password without a name is ignored.
fn complete_password(user: &mut AuthInfo) {
    user.username = user.username.take().filter(|name| !name.is_empty());
    user.password = user.username.as_ref().map(|_| user.password.take().unwrap_or_else(|| String::new().into()));
}

/// As in Go, other and malformed PEM blocks are ignored.
fn certificates(pem: &[u8]) -> Vec<Vec<u8>> {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).map(|der| der.to_vec()).collect()
}

/// A hash of one context of a kubeconfig: its cluster, its user, and the content of the files that these name. Other
/// contexts do not count, and neither does which one is the current one.
///
/// It is meant for reloading. Take one before you use a kubeconfig, and compare it periodically:
///
/// ```no_run
/// # use std::path::Path;
/// # use ocm_runtime::kubeconfig::{Fingerprint, KubeconfigError};
/// # fn changed(path: &Path, known: Option<&Fingerprint>) -> bool {
/// // An error is not a change: files may be half written. Try again later, and log it once.
/// Fingerprint::of(path, None).is_ok_and(|found| Some(&found) != known)
/// # }
/// ```
///
/// Pass the name of a context to stay with that context. Pass `None` to follow the file's current context, for example to
/// start over when it is another one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fingerprint(..)")
    }
}

impl Fingerprint {
    /// Reads the kubeconfig at `path`, and the files that `context` names, or its current context for `None`.
    ///
    /// # Errors
    /// [`KubeconfigError`] if one of them cannot be read at the moment.
    pub fn of(path: &Path, context: Option<&str>) -> Result<Self, KubeconfigError> {
        let context = select(path, context)?;
        let mut hasher = Sha256::new();
        let settings = serde_json::json!([context.name, context.cluster, context.user, context.namespace]);
        add(&mut hasher, settings.to_string().as_bytes());
        for file in context.files() {
            let content = std::fs::read(&file);
            add(&mut hasher, &content.map_err(|source| KubeconfigError::File { path: path.into(), file, source })?);
        }
        Ok(Self(hasher.finalize().into()))
    }
}

/// Includes the length, so that different lists of contents differ.
fn add(hasher: &mut Sha256, content: &[u8]) {
    hasher.update(content.len().to_be_bytes());
    hasher.update(content);
}

#[cfg(test)]
mod tests;
