//! A fleet: one real hub, and as many agents as asked for in this process.
//!
//! Each agent is what `ocm agent` runs, with an identity and a connection to the hub of its own; the
//! cluster it manages is one in memory, whose API answers in this process. So what the hub and its
//! kube-apiserver see is a fleet, and what is measured here is agents, not their clusters.

mod admin;
mod agent;
mod hub;
pub(crate) mod idle_hub;
pub(crate) mod storm;
mod usage;
mod writes;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use ocm_runtime::Context;
use tokio::sync::Semaphore;

use self::{admin::Admin, agent::Agent, hub::Hub, usage::Usage, writes::Writes};
use crate::{
    figures::{per_one, print, print_percentiles},
    works::{self, Plan, Step},
};

/// How many clusters are joining at a time.
const JOINING: usize = 32;
/// How long an idle fleet is observed.
const IDLE: Duration = Duration::from_secs(60);
/// How long the idle hub and two agents are observed: three periods of their leases.
const QUIET: Duration = Duration::from_secs(180);
/// How long hub and agents have for what follows an event.
const DIGESTION: Duration = Duration::from_secs(5);
/// How long a fleet is left alone before it counts as idle.
const SETTLE: Duration = Duration::from_secs(60);

/// A hub with the agents that have joined it.
///
/// The fields are dropped in this order: the hub last.
struct Fleet {
    name: String,
    /// How many clusters are joining at a time.
    joining: usize,
    context: Context,
    agents: Vec<Agent>,
    admin: Admin,
    hub: Hub,
}

/// Joins a fleet, gives each cluster one work, and observes it while it is idle.
pub(crate) async fn measure(clusters: usize) -> Result<()> {
    // One connection each and one while bootstrapping, and the files an agent reads and writes.
    ocm_testing::allow_open_files(2 * clusters as u64 + 1000)?;
    let fleet = Fleet::prepare(&format!("fleet of {clusters}"), clusters, JOINING).await?;
    let before = Usage::now(&fleet.hub)?;
    fleet.join(&before).await?;
    fleet.work().await?;
    tokio::time::sleep(SETTLE).await;
    let idle = Usage::now(&fleet.hub)?;
    fleet.print_memory(&before, &idle);
    fleet.print_idle(IDLE).await?;
    idle.print_cpu_since(&fleet.hub, &format!("{}, {} s idle", fleet.name, IDLE.as_secs()))?;
    fleet.end().await;
    Ok(())
}

/// Joins a fleet whose agents all start at the same moment.
pub(crate) async fn measure_join(clusters: usize) -> Result<()> {
    ocm_testing::allow_open_files(2 * clusters as u64 + 1000)?;
    let fleet = Fleet::prepare(&format!("{clusters} at once"), clusters, clusters).await?;
    let before = Usage::now(&fleet.hub)?;
    fleet.join(&before).await?;
    Usage::now(&fleet.hub)?.print_servers(&fleet.name);
    fleet.end().await;
    Ok(())
}

/// What a hub and two agents write while nothing happens.
pub(crate) async fn measure_idle() -> Result<()> {
    let fleet = Fleet::prepare("hub and two agents", 2, JOINING).await?;
    let before = Usage::now(&fleet.hub)?;
    fleet.join(&before).await?;
    fleet.work().await?;
    tokio::time::sleep(SETTLE).await;
    fleet.print_idle(QUIET).await?;
    fleet.end().await;
    Ok(())
}

impl Fleet {
    /// Everything but the agents' start.
    async fn prepare(name: &str, clusters: usize, joining: usize) -> Result<Self> {
        let hub = Hub::start().await?;
        let admin = Admin::start(hub.client().await?);
        let bare = Usage::now(&hub)?;
        let mut agents = Vec::with_capacity(clusters);
        for index in 0..clusters {
            agents.push(Agent::prepare(index, hub.folder(), hub.bootstrap()).await?);
        }
        let grown = Usage::now(&hub)?.own_memory_since(&bare);
        print(&format!("{name}: memory per cluster in memory, before its agent starts"), per(grown, clusters), "kB");
        Ok(Self { name: name.into(), joining, context: Context::new(), agents, admin, hub })
    }

    /// Starts all agents, some at a time, and waits until each cluster is available.
    async fn join(&self, before: &Usage) -> Result<()> {
        let start = self.hub.audit()?.position()?;
        let started = Instant::now();
        let mut took = self.join_all().await?;
        let (total, name, count, joining) = (started.elapsed(), &self.name, self.agents.len(), self.joining);
        took.sort();
        let each = total.as_secs_f64() / per_one(count);
        print(&format!("{name}: until all are Available, {joining} joining at a time"), total.as_secs_f64(), "s");
        print(&format!("{name}: join, total / clusters"), each * 1000.0, "ms");
        print_percentiles(&format!("{name}: join, agent start to Available"), &took);
        before.print_cpu_since(&self.hub, &format!("{name}, joining"))?;
        // What follows the last cluster's availability is part of its join.
        tokio::time::sleep(DIGESTION).await;
        let writes = Writes::of(&self.hub.audit()?.since(start)?);
        writes.print_each(&format!("{name}: hub writes per join"), count);
        writes.print_kinds_each(&format!("{name}: hub writes per join"), count);
        Ok(())
    }

    async fn join_all(&self) -> Result<Vec<Duration>> {
        let turns = Arc::new(Semaphore::new(self.joining));
        let joins = self.agents.iter().map(|agent| async {
            let _turn = turns.acquire().await?;
            let available = self.admin.available(agent.name());
            let started = Instant::now();
            agent.start(&self.context);
            let at = available.await.with_context(|| format!("{} did not become available", agent.name()))?;
            anyhow::Ok(at.saturating_duration_since(started))
        });
        futures::future::try_join_all(joins).await
    }

    /// Gives each cluster one work.
    async fn work(&self) -> Result<()> {
        let (name, count) = (&self.name, self.agents.len());
        let before = Usage::now(&self.hub)?;
        let cluster = |index: usize| agent::name(index);
        let plan = Plan { cluster: &cluster, ..works::plan("fleet", count, crate::AT_A_TIME) };
        let load = works::run(&self.hub.client().await?, Step::Create, &plan).await?;
        print(&format!("{name}: one work each, until all are Available"), load.total.as_secs_f64(), "s");
        load.print_latencies(&format!("{name}: one work each, create to Available"));
        before.print_cpu_since(&self.hub, &format!("{name}, one work each"))
    }

    fn print_memory(&self, before: &Usage, idle: &Usage) {
        let name = &self.name;
        let grown = idle.own_memory_since(before);
        print(&format!("{name}: memory per agent, anonymous"), per(grown, self.agents.len()), "kB");
        idle.print_servers(name);
    }

    /// What is written while nothing happens.
    async fn print_idle(&self, window: Duration) -> Result<()> {
        let start = self.hub.audit()?.position()?;
        tokio::time::sleep(window).await;
        let writes = Writes::of(&self.hub.audit()?.since(start)?);
        let name = format!("{}, {} s idle", self.name, window.as_secs());
        print(&format!("{name}: lease updates on the hub"), per_one(writes.leases()), "writes");
        print(&format!("{name}: hub writes other than leases"), per_one(writes.others()), "writes");
        writes.print_others(&name);
        Ok(())
    }

    async fn end(self) {
        self.context.stop().await;
    }
}

fn per(bytes: u64, count: usize) -> f64 {
    crate::megabytes(bytes) * 1000.0 / per_one(count)
}
