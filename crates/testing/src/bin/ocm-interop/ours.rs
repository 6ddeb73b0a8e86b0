//! Our programs, each under the account that `deploy/` gives it.

use std::fs;

use anyhow::Result;
use ocm_testing::{Process, ProcessBuilder};

use crate::{
    parts::Side,
    world::{AGENT_NAMESPACE, CLUSTER, HUB_NAMESPACE, World},
};

const HUB_ACCOUNT: &str = "hub-controller-sa";
const AGENT_ACCOUNT: &str = "klusterlet-work-sa";

/// The CRDs of a hub, as `ocm crds` prints them.
pub(crate) async fn hub_crds(world: &World) -> Result<String> {
    let authority = world.file("ca.crt");
    fs::write(&authority, world.hub.certificate_authority())?;
    let (url, authority) = (world.webhook_url(), authority.to_string_lossy());
    world.run("ocm", &["crds", "--hub", "--conversion-url", &url, "--conversion-ca-file", &authority]).await
}

pub(crate) async fn managed_crds(world: &World) -> Result<String> {
    world.run("ocm", &["crds", "--managed"]).await
}

pub(crate) fn webhook(world: &World) -> ProcessBuilder {
    let process = world.process(Side::Ours, "ocm", "ocm-webhook");
    process.args(["webhook", "--health-probe-port", "0", "--metrics-port", "0"])
}

pub(crate) async fn start_hub(world: &World) -> Result<Vec<Process>> {
    let kubeconfig = world.file("hub.kubeconfig");
    world.hub.write_login(HUB_NAMESPACE, HUB_ACCOUNT, &kubeconfig).await?;
    let process = world.process(Side::Ours, "ocm", "ocm-hub");
    let process = process
        .args(["hub", "--namespace", HUB_NAMESPACE, "--disable-leader-election"])
        .args(["--feature-gates=ResourceCleanup=true", "--listen", &world.address()?, "--kubeconfig"])
        .arg(kubeconfig);
    Ok(vec![process.start()?])
}

pub(crate) async fn start_agent(world: &World) -> Result<Vec<Process>> {
    let own = world.file("agent.kubeconfig");
    world.managed.write_login(AGENT_NAMESPACE, AGENT_ACCOUNT, &own).await?;
    let process = world.process(Side::Ours, "ocm", "ocm-agent");
    let process = process
        .args(["agent", "--spoke-cluster-name", CLUSTER, "--namespace", AGENT_NAMESPACE, "--disable-leader-election"])
        .args(["--listen", &world.address()?, "--bootstrap-kubeconfig"])
        .arg(world.bootstrap_kubeconfig().await?)
        .arg("--kubeconfig")
        .arg(own)
        .arg("--hub-kubeconfig-dir")
        .arg(world.file("hub-kubeconfig"));
    Ok(vec![process.start()?])
}
