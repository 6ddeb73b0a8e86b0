//! Waiting until a control plane can be used.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::Request;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use tokio::time::{Instant, sleep};

use super::{ControlPlane, Part, url};
use crate::kubeconfig::client_for;
use crate::wait::timeout;

const PAUSE: Duration = Duration::from_millis(20);
const ONE_LOOK: Duration = Duration::from_secs(5);

impl ControlPlane {
    /// Waits until kube-apiserver is ready and, unless it is stopped, kube-controller-manager runs its controllers.
    pub async fn wait_ready(&self) -> Result<()> {
        self.wait_api_ready().await?;
        if self.process(Part::ControllerManager).is_some() {
            self.wait_controller_manager_ready().await?;
        }
        Ok(())
    }

    pub(super) async fn wait_api_ready(&self) -> Result<()> {
        let client = self.client().await?;
        self.until(Part::ApiServer, || answers(&client, "/readyz")).await?;
        // A read that needs etcd: the state of etcd in /readyz may be some seconds old.
        self.until(Part::ApiServer, || answers(&client, "/api/v1/namespaces/default")).await
    }

    async fn wait_controller_manager_ready(&self) -> Result<()> {
        let client = self.controller_manager_client().await?;
        self.until(Part::ControllerManager, || answers(&client, "/healthz")).await?;
        // Its controllers run once one of them has created the default service account.
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, "default");
        let look = || async { accounts.get("default").await.map(drop).context("no default service account") };
        self.until(Part::ControllerManager, look).await
    }

    async fn controller_manager_client(&self) -> Result<Client> {
        let mut config = self.admin_config();
        for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.server = Some(url(&self.ports.controller_manager));
        }
        client_for(&config).await
    }

    /// Retries until it succeeds. If a part ends meanwhile, it fails at once.
    async fn until<F, Fut>(&self, part: Part, mut look: F) -> Result<()>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<()>>,
    {
        let deadline = Instant::now() + timeout();
        loop {
            self.check_alive(part)?;
            let looked = tokio::time::timeout(ONE_LOOK, look()).await;
            match looked.context("no answer").flatten() {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() >= deadline => {
                    return Err(error).with_context(|| self.last_lines(part, "is not ready"));
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Nothing works without etcd, so every wait checks it as well.
    fn check_alive(&self, part: Part) -> Result<()> {
        for part in [Part::Etcd, part] {
            if let Some(status) = self.ended(part)? {
                bail!(self.last_lines(part, &format!("ended ({status})")));
            }
        }
        Ok(())
    }

    fn last_lines(&self, part: Part, what: &str) -> String {
        let tail = self.process(part).map(|process| process.log_tail()).unwrap_or_default();
        format!("{part} of {} {what}; the last lines of its log:\n{tail}\n", self.name)
    }
}

async fn answers(client: &Client, path: &str) -> Result<()> {
    let request = Request::get(path).body(Vec::new())?;
    client.request_text(request).await.map(drop).with_context(|| format!("{path} is not ok"))
}
