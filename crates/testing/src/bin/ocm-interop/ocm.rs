//! OCM's programs.
//!
//! They run as administrators of their cluster, since the rights that OCM gives them come from its operators, which are not
//! part of this. On the hub, an agent of OCM has the identity of its certificate, with the rights that the hub grants it.

use std::path::Path;

use anyhow::Result;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ocm_apimachinery::yaml;
use ocm_testing::{
    ProcessBuilder, eventually,
    scenario::{AGENT, BOOTSTRAP, HUB},
};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::{
    parts::Side,
    story::CLEANUP,
    world::{CLUSTER, World},
};

/// The programs of a hub, the command that each is run with, and features that are switched on.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("registration", "controller", CLEANUP),
    ("placement", "controller", ""),
    ("addon", "manager", ""),
    ("work", "manager", ""),
];

/// The CRDs of a hub, with the webhook's address where OCM's operator fills in that of its service.
pub(crate) fn hub_crds(world: &World) -> Result<String> {
    let crds = world.manifests("hub-crds")?;
    let crds = crds.iter().map(|crd| Ok(converted_by(world, yaml::from_str(&without_templates(crd))?).to_string()));
    Ok(crds.collect::<Result<Vec<_>>>()?.join("\n---\n"))
}

pub(crate) fn managed_crds(world: &World) -> Result<String> {
    Ok(world.manifests("managed-crds")?.join("\n---\n"))
}

/// Everything that the operator fills in is in the section that is replaced here.
fn without_templates(crd: &str) -> String {
    crd.replace("{{", "'").replace("}}", "'")
}

fn converted_by(world: &World, mut crd: Value) -> Value {
    if crd["spec"]["conversion"]["strategy"] == "Webhook" {
        let authority = STANDARD.encode(world.hub.certificate_authority());
        crd["spec"]["conversion"]["webhook"]["clientConfig"] =
            json!({"url": format!("https://127.0.0.1:{}/convert", world.webhook.number()), "caBundle": authority});
    }
    crd
}

/// Its probes and metrics are on ports 8000 and 8080; it has no flags for others.
pub(crate) async fn start_webhook(world: &World) -> Result<()> {
    let port = world.webhook.number();
    let process = world.process(Side::Ocm, "addon", "upstream-webhook");
    let process = process.args(["webhook-server", "--port", &port.to_string(), "--certdir"]);
    let process = process.arg(world.ours.webhook_certificates(&world.hub)?);
    world.running.add(process.env("KUBECONFIG", world.hub.admin_kubeconfig()).start()?);
    let connect = || async { TcpStream::connect(("127.0.0.1", port)).await.map(|_| true) };
    eventually("the webhook listens", connect).await
}

pub(crate) fn start_hub(world: &World) -> Result<()> {
    for (program, command, features) in PROGRAMS {
        let process = world.process(Side::Ocm, program, &format!("upstream-{program}-hub"));
        let process = process.arg(command).args((!features.is_empty()).then_some(features));
        world.running.add(in_namespace(world, process, HUB.namespace, world.hub.admin_kubeconfig())?.start()?);
    }
    Ok(())
}

/// The registration agent. The work agent needs the credentials that it receives.
pub(crate) async fn start_registration(world: &World) -> Result<()> {
    let bootstrap = world.ours.file("bootstrap.kubeconfig");
    BOOTSTRAP.write_login(&world.hub, &bootstrap).await?;
    let process = world.process(Side::Ocm, "registration", "upstream-registration-agent");
    let process = process
        .args(["agent", "--spoke-cluster-name", CLUSTER, "--feature-gates=AddonManagement=true"])
        .arg("--bootstrap-kubeconfig")
        .arg(bootstrap)
        .arg("--hub-kubeconfig-dir")
        .arg(world.ours.file("hub-kubeconfig"));
    world.running.add(in_namespace(world, process, AGENT.namespace, world.managed.admin_kubeconfig())?.start()?);
    Ok(())
}

pub(crate) fn start_work(world: &World) -> Result<()> {
    let credentials = world.ours.file("hub-kubeconfig");
    let process = world.process(Side::Ocm, "work", "upstream-work-agent");
    let process = process
        .args(["agent", "--spoke-cluster-name", CLUSTER, "--agent-id", "agent1", "--workload-source-config"])
        .arg(credentials.join("kubeconfig"))
        .arg("--hub-kubeconfig-dir")
        .arg(credentials);
    world.running.add(in_namespace(world, process, AGENT.namespace, world.managed.admin_kubeconfig())?.start()?);
    Ok(())
}

fn in_namespace(world: &World, process: ProcessBuilder, namespace: &str, kubeconfig: &Path) -> Result<ProcessBuilder> {
    let process = process.args(["--namespace", namespace, "--disable-leader-election", "--listen", &world.address()?]);
    Ok(process.arg("--kubeconfig").arg(kubeconfig))
}
