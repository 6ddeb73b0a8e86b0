//! Kubeconfig files: reading them with errors that say what to do.

use std::path::{Path, PathBuf};

use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// Why a kubeconfig could not be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The file is not there or may not be read.
    #[error("failed to read kubeconfig {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a kubeconfig.
    #[error("failed to parse kubeconfig {path}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// The file is a kubeconfig, but what it names is missing.
    #[error("failed to use kubeconfig {path}")]
    Use {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// No file was named, and the process does not run in a pod.
    #[error("no kubeconfig was given and this is not a pod with a service account")]
    NotInCluster(#[source] kube::config::InClusterError),
}

/// Reads the kubeconfig at `path`; file names in it count from its folder.
///
/// # Errors
/// [`KubeconfigError::Read`] and [`KubeconfigError::Parse`].
pub fn read(path: &Path) -> Result<Kubeconfig, KubeconfigError> {
    // Looked at first, since the reason a file cannot be read is what a person needs to know.
    std::fs::metadata(path)
        .and_then(|_| std::fs::File::open(path))
        .map_err(|source| KubeconfigError::Read { path: path.into(), source })?;
    Kubeconfig::read_from(path).map_err(|source| KubeconfigError::Parse { path: path.into(), source: Box::new(source) })
}

/// The client configuration that the kubeconfig at `path` says, or that of the pod's service account
/// when no path is given.
///
/// # Errors
/// [`KubeconfigError`].
pub async fn load(path: Option<&Path>) -> Result<Config, KubeconfigError> {
    let Some(path) = path else {
        return Config::incluster().map_err(KubeconfigError::NotInCluster);
    };
    let kubeconfig = read(path)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|source| KubeconfigError::Use { path: path.into(), source: Box::new(source) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::chain;

    #[tokio::test]
    async fn a_missing_file_is_named() {
        let error = load(Some(Path::new("/no/such/kubeconfig"))).await.unwrap_err();
        assert_eq!(
            chain(&error),
            "failed to read kubeconfig /no/such/kubeconfig: No such file or directory (os error 2)"
        );
    }
}
