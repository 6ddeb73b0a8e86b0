//! Measures hubs and agents, and prints one JSON line per figure. See `bench/README.md`.
//!
//! Speed is only worth something beside what the machine could do: the same writes are first made
//! by a bare client on the same control planes, and the figure is a ratio. What a fleet costs is
//! measured with a real hub and its agents in this process, each with a cluster in memory.

mod addons;
mod admin;
mod args;
mod figures;
mod fleet;
mod floor;
mod placements;
mod product;
mod works;

use std::process::ExitCode;

use anyhow::Result;

use self::{args::Args, figures::print, product::Product, works::Plan};

/// How many works are created one after the other.
const SINGLE: usize = 20;
/// How many works a client has in progress at a time.
pub(crate) const AT_A_TIME: usize = 32;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            figures::complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let args = Args::read(std::env::args().skip(1))?;
    ocm_runtime::client::install_crypto_provider();
    // Agents in this process log like those in their own, when asked to.
    if let Ok(filter) = std::env::var("RUST_LOG") {
        ocm_runtime::logs::init(&filter);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(args))
}

/// One part after the other: each has the machine to itself.
async fn measure(args: Args) -> Result<()> {
    for part in args.parts() {
        match part {
            "works" => measure_works(args.work_count).await?,
            "idle" => fleet::measure_idle().await?,
            "fleet" => fleet::measure(args.clusters).await?,
            "join" => fleet::measure_join(args.clusters).await?,
            "storm" => fleet::storm::measure(args.clusters).await?,
            "hub" => fleet::idle_hub::measure(args.clusters, args.window).await?,
            "addons" => addons::measure(args.clusters).await?,
            _ => placements::measure(args.clusters).await?,
        }
    }
    Ok(())
}

async fn measure_works(works: usize) -> Result<()> {
    let mut product = Product::start().await?;
    for (name, bytes) in product.binary_sizes()? {
        print(&format!("binary size of {name}"), megabytes(bytes), "MB");
    }
    // The first writes of a kind wait until the API server has set itself up for it.
    floor::run(&product, AT_A_TIME, AT_A_TIME).await?;
    let floor_single = floor::run(&product, SINGLE, 1).await?;
    let floor = floor::run(&product, works, AT_A_TIME).await?;
    print("join: agent start to Available", product.join().await?.as_secs_f64(), "s");
    product.settle().await?;
    product.print_memory("idle")?;
    let hub = product.hub_client().await?;
    let single = works::run(&hub, &plan("single", SINGLE, 1)).await?;
    single.print_latencies("1 ManifestWork, create to Available");
    print("1 ManifestWork, product / floor", single.total.as_secs_f64() / floor_single.as_secs_f64(), "ratio");
    let before = product.agent_cpu()?;
    let load = works::run(&hub, &plan("load", works, AT_A_TIME)).await?;
    load.print_latencies(&format!("{works} ManifestWorks, create to Available"));
    print(&format!("{works} ManifestWorks, until all are Available"), load.total.as_secs_f64(), "s");
    print(&format!("{works} ManifestWorks, the same writes by a bare client"), floor.as_secs_f64(), "s");
    print(&format!("{works} ManifestWorks, product / floor"), load.total.as_secs_f64() / floor.as_secs_f64(), "ratio");
    print(&format!("{works} ManifestWorks, CPU of the agent"), (product.agent_cpu()? - before).as_secs_f64(), "s");
    product.settle().await?;
    product.print_memory(&format!("with {works} works"))?;
    Ok(())
}

/// Works for the one cluster.
fn plan(prefix: &'static str, count: usize, at_a_time: usize) -> Plan<'static> {
    Plan { prefix, count, at_a_time, cluster: &|_| product::CLUSTER.to_owned() }
}

#[expect(clippy::cast_precision_loss, reason = "files are smaller than 2^53 bytes")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
