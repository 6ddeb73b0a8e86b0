//! One story: a cluster joins, runs a work and an add-on, and leaves.

use anyhow::Result;
use ocm_testing::{Process, Seen, eventually};
use tokio::net::TcpStream;

use crate::{
    addon, ocm, ours,
    parts::{Cast, Side},
    snapshot::{Looks, Moment},
    steps::{say, step},
    world::{CLUSTER, Programs, World, is_gone, is_there},
};

const HUB_RIGHTS: &str = include_str!("../../../../../deploy/hub.yaml");
const AGENT_RIGHTS: &str = include_str!("../../../../../deploy/agent.yaml");
const WORKS: &str = include_str!("../ocm-demo/works.yaml");
const MANAGED_CLUSTER: [&str; 2] = ["managedcluster", CLUSTER];
const WORK: [&str; 4] = ["manifestwork", "mw-01", "-n", CLUSTER];

/// Tells the story; where a step fails, with all that explains it. What was there at each moment of it.
pub(crate) async fn tell(programs: &Programs, cast: Cast) -> Result<Looks> {
    say(&format!("\n{cast}\n"));
    let start = "start two control planes, without a node";
    let world = step(start, Box::pin(World::start(programs, cast))).await?;
    let mut looks = Looks::default();
    match Box::pin(walk(&world, &mut looks)).await {
        Ok(()) => Ok(looks),
        Err(error) => {
            world.evidence()?;
            Err(error.context(format!("the story with {cast} did not come true")))
        }
    }
}

async fn walk(world: &World, looks: &mut Looks) -> Result<()> {
    let mut processes = vec![step("the webhook serves", start_webhook(world)).await?];
    step("install CRDs, accounts and rights", install(world)).await?;
    looks.ignore_what_is_there(world).await?;
    processes.extend(join(world).await?);
    looks.take(world, Moment::Joined).await?;
    processes.extend(run_addon(world).await?);
    looks.take(world, Moment::AddonRuns).await?;
    processes.truncate(processes.len() - 1);
    step("delete the add-on: it leaves the hub and the cluster", leave_addon(world)).await?;
    looks.take(world, Moment::AddonGone).await?;
    step("delete ManifestWork mw-01: its objects go", leave_work(world)).await?;
    step("delete the cluster: it goes from the hub", leave(world)).await?;
    looks.take(world, Moment::ClusterGone).await
}

/// The cluster joins, and runs a work. The processes that this takes.
async fn join(world: &World) -> Result<Vec<Process>> {
    let (hub, agent) = (world.cast.hub, world.cast.agent);
    let mut processes = step(&format!("start {hub} hub"), start_hub(world)).await?;
    processes.extend(step(&format!("start {agent} agent"), start_agent(world)).await?);
    step("clusteradm accept: approve the certificate, accept the cluster", accept(world)).await?;
    let available = world.condition(&MANAGED_CLUSTER, "ManagedClusterConditionAvailable");
    step("the cluster is joined and available", available).await?;
    if agent == Side::Ocm {
        processes.extend(step("start the other half of OCM's agent", async { ocm::start_work(world) }).await?);
    }
    step("ManifestWork mw-01 is applied and available", apply_work(world)).await?;
    Ok(processes)
}

/// The add-on is chosen by a Placement, brought to the cluster, and says that it is well. The agent's process is the last.
async fn run_addon(world: &World) -> Result<Vec<Process>> {
    let addon = world.cast.addon;
    let mut processes =
        step(&format!("start the manager of {addon}, under its own account"), addon::start_manager(world)).await?;
    step("apply a Placement, and the add-on that is installed where it chooses", addon::apply(world)).await?;
    step("the hub installs the add-on on the cluster", addon::is_chosen(world)).await?;
    step("its work is applied and available", addon::is_deployed(world)).await?;
    step("its agent has a certificate for the hub", addon::is_registered(world)).await?;
    step("write by hand that its Deployment runs", addon::report_running(world)).await?;
    let agent = step("start its agent as a process, with that certificate", addon::start_agent(world));
    processes.extend(agent.await?);
    step("the add-on is available", addon::is_available(world)).await?;
    step("a ConfigMap of the hub is copied to the cluster, and follows", addon::copies(world)).await?;
    Ok(processes)
}

async fn start_webhook(world: &World) -> Result<Process> {
    let process = match world.cast.hub {
        Side::Ocm => ocm::webhook(world),
        Side::Ours => ours::webhook(world),
    };
    let port = world.webhook.number();
    let process = process.args(["--port", &port.to_string(), "--certdir"]).arg(world.webhook_certificates()?);
    let process = process.start()?;
    let connect = || async { TcpStream::connect(("127.0.0.1", port)).await.map(|_| true) };
    eventually("the webhook listens", connect).await?;
    Ok(process)
}

/// The CRDs are those of whoever plays the part; the accounts of `deploy/` are there in any case.
async fn install(world: &World) -> Result<()> {
    let hub = match world.cast.hub {
        Side::Ocm => ocm::hub_crds(world)?,
        Side::Ours => ours::hub_crds(world).await?,
    };
    let managed = match world.cast.agent {
        Side::Ocm => ocm::managed_crds(world)?,
        Side::Ours => ours::managed_crds(world).await?,
    };
    world.hub.install(&hub, HUB_RIGHTS).await?;
    world.managed.install(&managed, AGENT_RIGHTS).await?;
    addon::install(world).await
}

async fn start_hub(world: &World) -> Result<Vec<Process>> {
    match world.cast.hub {
        Side::Ocm => ocm::start_hub(world),
        Side::Ours => ours::start_hub(world).await,
    }
}

async fn start_agent(world: &World) -> Result<Vec<Process>> {
    match world.cast.agent {
        Side::Ocm => ocm::start_registration(world).await,
        Side::Ours => ours::start_agent(world).await,
    }
}

async fn accept(world: &World) -> Result<()> {
    is_there(&world.hub, &MANAGED_CLUSTER).await?;
    world.run("clusteradm", &["accept", "--clusters", CLUSTER, "--wait"]).await.map(drop)
}

async fn apply_work(world: &World) -> Result<()> {
    world.hub.kubectl_with_input(&["apply", "--server-side", "-n", CLUSTER, "-f", "-"], WORKS).await?;
    world.condition(&WORK, "Applied").await?;
    world.condition(&WORK, "Available").await
}

async fn leave_addon(world: &World) -> Result<()> {
    addon::delete(world).await?;
    addon::is_gone_everywhere(world).await
}

async fn leave_work(world: &World) -> Result<()> {
    world.hub.kubectl(&["delete", WORK[0], WORK[1], WORK[2], WORK[3]]).await?;
    is_gone(&world.managed, &["configmap", "settings", "-n", "default"]).await?;
    is_gone(&world.managed, &["pod", "hello", "-n", "default"]).await
}

async fn leave(world: &World) -> Result<()> {
    world.hub.kubectl(&["delete", "managedcluster", CLUSTER, "--wait=false"]).await?;
    eventually("the cluster is gone", || async {
        let found = world.hub.kubectl(&["get", "managedcluster", CLUSTER, "--ignore-not-found", "-o", "yaml"]).await?;
        anyhow::Ok(if found.trim().is_empty() { Seen::Settled(()) } else { Seen::NotYet(found) })
    })
    .await
}
