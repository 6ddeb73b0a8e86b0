//! An idle hub with many clusters: this program renews their leases, as their agents would, and nothing else happens.
//!
//! First without `ocm hub`, for what the renewals alone cost the API server; then with it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use ocm_runtime::{Clock, error::chain};
use ocm_testing::{JoinedClusters, Part};
use tokio::{task::JoinHandle, time::MissedTickBehavior};

use super::{SETTLE, hub::Installed, usage::Usage, writes::Writes};
use crate::figures::{complain, per_one, print};

/// How often an agent renews its lease.
const LEASE: Duration = Duration::from_secs(60);

/// Ends when it is dropped.
struct Renewals(JoinHandle<()>);

impl Drop for Renewals {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Observes a hub with so many clusters for that long.
pub(crate) async fn measure(clusters: usize, window: Duration) -> Result<()> {
    ocm_testing::allow_open_files(1000)?;
    let name = format!("idle hub with {clusters} clusters");
    let installed = Installed::new().await?;
    let joined = JoinedClusters::create(&installed.client().await?, clusters, Clock::System.now()).await?;
    let _renewals = Renewals::start(joined);
    tokio::time::sleep(SETTLE).await;
    print_floor(&installed, &name, window.min(SETTLE)).await?;
    let hub = installed.start().await?;
    tokio::time::sleep(SETTLE).await;
    let (before, start) = (Usage::now(&hub)?, hub.audit()?.position()?);
    tokio::time::sleep(window).await;
    let after = Usage::now(&hub)?;
    let writes = Writes::of(&hub.audit()?.since(start)?);
    let name = format!("{name}, {} s", window.as_secs());
    print_rate(&format!("{name}: lease updates"), writes.leases(), window);
    print_rate(&format!("{name}: other writes"), writes.others(), window);
    writes.print_others(&name);
    before.print_server_cpu_since(&hub, &name)?;
    after.print_servers(&name);
    Ok(())
}

fn print_rate(figure: &str, count: usize, window: Duration) {
    print(figure, per_one(count) / window.as_secs_f64(), "writes per second");
}

/// What the renewals cost without a hub, in the same unit as with it.
async fn print_floor(installed: &Installed, name: &str, window: Duration) -> Result<()> {
    let server = installed.server(Part::ApiServer)?;
    let (before, start) = (server.cpu_time()?, installed.audit()?.position()?);
    tokio::time::sleep(window).await;
    let name = format!("{name}, {} s without ocm hub", window.as_secs());
    let writes = Writes::of(&installed.audit()?.since(start)?);
    print_rate(&format!("{name}: lease updates"), writes.leases(), window);
    print(&format!("{name}: CPU of kube-apiserver"), (server.cpu_time()? - before).as_secs_f64(), "s");
    Ok(())
}

impl Renewals {
    /// Renews one lease after the other, each of them once in a lease duration.
    fn start(clusters: JoinedClusters) -> Self {
        Self(tokio::spawn(renew_for_ever(Arc::new(clusters))))
    }
}

async fn renew_for_ever(clusters: Arc<JoinedClusters>) {
    let count = u32::try_from(clusters.names().len()).unwrap_or(u32::MAX);
    let started = Instant::now();
    let mut ticks = tokio::time::interval(LEASE / count);
    // What was late is made up for, so that the rate is right.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for index in (0..clusters.names().len()).cycle() {
        ticks.tick().await;
        let clusters = clusters.clone();
        tokio::spawn(async move {
            let name = &clusters.names()[index];
            if let Err(error) = clusters.renew_one(name, Clock::System.now()).await {
                let after = started.elapsed().as_secs();
                complain(&format!("failed to renew the lease of {name} after {after} s: {}", chain(error.as_ref())));
            }
        });
    }
}
