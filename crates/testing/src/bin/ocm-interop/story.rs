//! One scenario: a cluster joins, runs a work and an add-on, and leaves.

use std::path::Path;

use anyhow::Result;
use ocm_testing::scenario::{condition, is_gone, is_there, print_line, step};

use crate::{
    addon, ocm,
    parts::{Cast, Side},
    snapshot::{Looks, Moment},
    world::{CLUSTER, World},
};

const HUB_RIGHTS: &str = include_str!("../../../../../deploy/hub.yaml");
const AGENT_RIGHTS: &str = include_str!("../../../../../deploy/agent.yaml");
const WORKS: &str = include_str!("../ocm-demo/works.yaml");
/// The feature gate with which a hub cleans up deleted clusters.
pub(crate) const CLEANUP: &str = "--feature-gates=ResourceCleanup=true";
const MANAGED_CLUSTER: [&str; 2] = ["managedcluster", CLUSTER];
const WORK: [&str; 4] = ["manifestwork", "mw-01", "-n", CLUSTER];

/// Runs the scenario and returns the objects at each moment. If a step fails, prints the logs.
pub(crate) async fn tell(peers: &Path, cast: Cast) -> Result<Looks> {
    print_line(&format!("\n{cast}\n"));
    let start = "start two control planes, without a node";
    let world = step(start, Box::pin(World::start(peers, cast))).await?;
    let mut looks = Looks::default();
    let outcome = tokio::select! {
        outcome = Box::pin(walk(&world, &mut looks)) => outcome,
        ended = world.running.first_to_end() => Err(ended),
    };
    match outcome {
        Ok(()) => Ok(looks),
        Err(error) => {
            world.evidence()?;
            Err(error.context(format!("the story with {cast} did not come true")))
        }
    }
}

async fn walk(world: &World, looks: &mut Looks) -> Result<()> {
    step("the webhook serves", start_webhook(world)).await?;
    step("install CRDs, accounts and rights", install(world)).await?;
    looks.ignore_what_is_there(world).await?;
    join(world).await?;
    looks.take(world, Moment::Joined).await?;
    run_addon(world).await?;
    looks.take(world, Moment::AddonRuns).await?;
    world.running.stop(addon::AGENT);
    step("delete the add-on: it leaves the hub and the cluster", leave_addon(world)).await?;
    looks.take(world, Moment::AddonGone).await?;
    step("delete ManifestWork mw-01: its objects go", leave_work(world)).await?;
    step("delete the cluster: it goes from the hub", leave(world)).await?;
    looks.take(world, Moment::ClusterGone).await
}

/// The cluster joins, and runs a work.
async fn join(world: &World) -> Result<()> {
    let (hub, agent) = (world.cast.hub, world.cast.agent);
    step(&format!("start {hub} hub"), start_hub(world)).await?;
    step(&format!("start {agent} agent"), start_agent(world)).await?;
    step("clusteradm accept: approve the certificate, accept the cluster", accept(world)).await?;
    let available = condition(&world.hub, &MANAGED_CLUSTER, "ManagedClusterConditionAvailable");
    step("the cluster is joined and available", available).await?;
    if agent == Side::Ocm {
        step("start the other half of OCM's agent", async { ocm::start_work(world) }).await?;
    }
    step("ManifestWork mw-01 is applied and available", apply_work(world)).await
}

/// The add-on is installed by a Placement, its agent runs on the cluster, and it becomes Available.
async fn run_addon(world: &World) -> Result<()> {
    let addon = world.cast.addon;
    step(&format!("start the manager of {addon}, under its own account"), addon::start_manager(world)).await?;
    step("apply a Placement, and the add-on that is installed where it chooses", addon::apply(world)).await?;
    step("the hub installs the add-on on the cluster", addon::is_chosen(world)).await?;
    step("its work is applied and available", addon::is_deployed(world)).await?;
    step("its agent has a certificate for the hub", addon::is_registered(world)).await?;
    step("write by hand that its Deployment runs", addon::report_running(world)).await?;
    step("start its agent as a process, with that certificate", addon::start_agent(world)).await?;
    step("the add-on is available", addon::is_available(world)).await?;
    step("a ConfigMap of the hub is copied to the cluster, and follows", addon::copies(world)).await
}

async fn start_webhook(world: &World) -> Result<()> {
    match world.cast.hub {
        Side::Ocm => ocm::start_webhook(world).await?,
        Side::Ours => world.running.add(world.ours.start_webhook(&world.hub, &world.webhook).await?),
    }
    Ok(())
}

/// The CRDs come from the hub under test; the service accounts always come from `deploy/`.
async fn install(world: &World) -> Result<()> {
    let hub = match world.cast.hub {
        Side::Ocm => ocm::hub_crds(world)?,
        Side::Ours => world.ours.hub_crds(&world.hub, &world.webhook).await?,
    };
    let managed = match world.cast.agent {
        Side::Ocm => ocm::managed_crds(world)?,
        Side::Ours => world.ours.managed_crds(&world.managed).await?,
    };
    world.hub.install(&hub, HUB_RIGHTS).await?;
    world.managed.install(&managed, AGENT_RIGHTS).await?;
    addon::install(world).await
}

async fn start_hub(world: &World) -> Result<()> {
    match world.cast.hub {
        Side::Ocm => ocm::start_hub(world)?,
        Side::Ours => world.running.add(world.ours.start_hub(&world.hub, &[CLEANUP]).await?),
    }
    Ok(())
}

async fn start_agent(world: &World) -> Result<()> {
    match world.cast.agent {
        Side::Ocm => ocm::start_registration(world).await?,
        Side::Ours => world.running.add(world.ours.start_agent(CLUSTER, &world.hub, &world.managed).await?),
    }
    Ok(())
}

async fn accept(world: &World) -> Result<()> {
    is_there(&world.hub, &MANAGED_CLUSTER).await?;
    world.ours.run(&world.hub, "clusteradm", &["accept", "--clusters", CLUSTER, "--wait"]).await.map(drop)
}

async fn apply_work(world: &World) -> Result<()> {
    world.hub.kubectl_with_input(&["apply", "--server-side", "-n", CLUSTER, "-f", "-"], WORKS).await?;
    condition(&world.hub, &WORK, "Applied").await?;
    condition(&world.hub, &WORK, "Available").await
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
    is_gone(&world.hub, &MANAGED_CLUSTER).await
}
