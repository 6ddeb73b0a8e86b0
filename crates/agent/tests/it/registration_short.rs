//! Certificates that are valid for seconds, by the clocks of this machine and of a real hub.

use anyhow::{Context as _, Result};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::conditions::cluster::{AVAILABLE, CERTIFICATE_ROTATED};
use ocm_runtime::{Clock, client::Endpoint, kubeconfig};
use ocm_testing::{Seen, eventually};

use crate::registration_world::{World, name};

const BOOTSTRAP: &str = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";

impl World {
    /// Waits for a request of this user that is none of `known`, and approves it.
    async fn approve_next(
        &self,
        user: &str,
        known: &[&CertificateSigningRequest],
    ) -> Result<CertificateSigningRequest> {
        let is_new = |request: &CertificateSigningRequest| !known.iter().any(|known| name(known) == name(request));
        let request = eventually(&format!("{user} requests a certificate"), || async {
            let requests = self.own_requests().await?;
            let of_user = |request: &CertificateSigningRequest| request.spec.username.as_deref() == Some(user);
            anyhow::Ok(requests.into_iter().find(|request| of_user(request) && is_new(request)))
        })
        .await?;
        self.approve(&request).await?;
        Ok(request)
    }

    /// Waits until the agent has renewed its lease once more.
    async fn lease_is_renewed_again(&self) -> Result<()> {
        let renewed = async || anyhow::Ok(self.lease().await?.spec.and_then(|spec| spec.renew_time));
        let before = renewed().await?;
        eventually("the lease is renewed again", || async { anyhow::Ok(renewed().await? != before) }).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_seconds_is_renewed_in_time_and_replaced_after_it_has_expired() -> Result<()> {
    let world = World::with_short_certificates("20s").await?;
    let agent = world.join(world.config(), Clock::System).await?;
    let of_bootstrap = |request: &CertificateSigningRequest| request.spec.username.as_deref() == Some(BOOTSTRAP);
    let first = world.own_requests().await?.into_iter().find(of_bootstrap).context("no first request")?;
    // Less than a fifth of its life is left from the start.
    let renewal = world.approve_next(&world.user(), &[&first]).await?;
    world.condition(CERTIFICATE_ROTATED, "True").await?;
    let own = kubeconfig::load(Some(&world.hub_dir().join("kubeconfig"))).await?;
    let old = Endpoint::new(&own)?.client("test")?;
    old.list_core_api_versions().await?;

    // Nobody approves the next renewal, so the certificate expires, for the hub as well.
    let known = world.own_requests().await?;
    eventually("the hub refuses the expired certificate", || async {
        match old.list_core_api_versions().await {
            Err(kube::Error::Api(status)) if status.code == 401 => Ok(Seen::Settled(())),
            other => other.map(|_| Seen::NotYet("it accepts it".into())),
        }
    })
    .await?;
    let replacement = world.approve_next(BOOTSTRAP, &known.iter().collect::<Vec<_>>()).await?;
    world.lease_is_renewed_again().await?;
    world.condition(AVAILABLE, "True").await?;
    assert_ne!(name(&replacement), name(&renewal));
    agent.stop().await
}
