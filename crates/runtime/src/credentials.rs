//! Credentials in files that somebody renews, such as those of a mounted secret.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use kube::Config;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use crate::{
    Context,
    client::{ClientError, Endpoint},
    error::chain,
    kubeconfig::{self, Fingerprint, KubeconfigError},
};

/// How often the files are looked at. A secret takes about a minute to arrive in a pod.
const PERIOD: Duration = Duration::from_secs(20);

/// Who to be at which cluster, as a kubeconfig or the pod's service account says.
#[derive(Debug)]
pub struct Login {
    /// What it says.
    pub config: Config,
    path: Option<PathBuf>,
    fingerprint: Option<Fingerprint>,
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

async fn follow(endpoint: Endpoint, path: PathBuf, mut known: Option<Fingerprint>) {
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

fn fingerprint(path: &Path) -> Option<Fingerprint> {
    Fingerprint::of(path, None).ok()
}
