//! Credentials in files that somebody renews, such as those of a mounted secret.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    time::Duration,
};

use kube::{Config, config::Kubeconfig};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use crate::{
    Context,
    client::{ClientError, Endpoint},
    error::chain,
    kubeconfig::{self, KubeconfigError},
};

/// How often the files are looked at. A secret takes about a minute to arrive in a pod.
const PERIOD: Duration = Duration::from_secs(20);

/// Who to be at which cluster, as a kubeconfig or the pod's service account says.
#[derive(Debug)]
pub struct Login {
    /// What it says.
    pub config: Config,
    path: Option<PathBuf>,
    fingerprint: Option<u64>,
}

impl Login {
    /// Reads the kubeconfig at `path`, or takes the pod's service account when no path is given.
    ///
    /// # Errors
    /// [`KubeconfigError`].
    pub async fn read(path: Option<&Path>) -> Result<Self, KubeconfigError> {
        // Taken first: what changes while the rest is read is found to have changed.
        let fingerprint = path.and_then(fingerprint);
        Ok(Self { config: kubeconfig::load(path).await?, path: path.map(Path::to_owned), fingerprint })
    }

    /// An endpoint that counts in the metrics of `context`, and takes up new credentials whenever the kubeconfig, or a
    /// file it names, changes. Open watches live on. Until `context` ends.
    ///
    /// # Errors
    /// [`ClientError`] when the configuration cannot be used.
    pub fn connect(&self, context: &Context) -> Result<Endpoint, ClientError> {
        let endpoint = Endpoint::new(&self.config)?.counted(context);
        if let Some(path) = &self.path {
            context.spawn(follow(endpoint.clone(), path.clone(), self.fingerprint));
        }
        Ok(endpoint)
    }
}

async fn follow(endpoint: Endpoint, path: PathBuf, mut known: Option<u64>) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let found = fingerprint(&path);
        if found.is_some() && found != known && reload(&endpoint, &path).await {
            known = found;
        }
    }
}

/// Whether the endpoint uses the credentials now. Files that are being replaced may not fit each other yet.
async fn reload(endpoint: &Endpoint, path: &Path) -> bool {
    let config = match kubeconfig::load(Some(path)).await {
        Ok(config) => config,
        Err(error) => return refuse(path, &error),
    };
    match endpoint.replace(&config) {
        Ok(()) => info!(kubeconfig = %path.display(), "took up new credentials"),
        Err(error) => return refuse(path, &error),
    }
    true
}

fn refuse(path: &Path, error: &(dyn std::error::Error + 'static)) -> bool {
    warn!(kubeconfig = %path.display(), error = %chain(error), "cannot use the new credentials yet, keeping the old");
    false
}

/// What stands in the kubeconfig and in the files it names; `None` while one of them cannot be read.
fn fingerprint(path: &Path) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let text = std::fs::read(path).ok()?;
    text.hash(&mut hasher);
    for file in files(&Kubeconfig::read_from(path).ok()?) {
        std::fs::read(file).ok()?.hash(&mut hasher);
    }
    Some(hasher.finish())
}

fn files(kubeconfig: &Kubeconfig) -> Vec<PathBuf> {
    let logins = kubeconfig.auth_infos.iter().filter_map(|named| named.auth_info.as_ref());
    let of_logins = logins.flat_map(|login| [&login.client_certificate, &login.client_key, &login.token_file]);
    let clusters = kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref());
    let of_clusters = clusters.map(|cluster| &cluster.certificate_authority);
    of_logins.chain(of_clusters).flatten().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
clusters: [{name: hub, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: agent, user: {client-certificate: tls.crt, client-key: tls.key}}]
";

    #[test]
    fn a_change_of_any_file_that_is_named_is_noticed_and_a_missing_one_is_no_change() {
        let dir = std::env::temp_dir().join(format!("ocm-credentials-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
        let path = dir.join("kubeconfig");
        write("kubeconfig", KUBECONFIG);
        write("tls.crt", "certificate");
        assert_eq!(fingerprint(&path), None, "the key is missing");
        write("tls.key", "key");
        let first = fingerprint(&path);
        assert!(first.is_some());
        assert_eq!(fingerprint(&path), first);
        write("tls.crt", "renewed");
        assert_ne!(fingerprint(&path), first);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
