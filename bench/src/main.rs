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
mod placements;
mod product;
mod replicasets;
mod works;

use std::process::ExitCode;

use anyhow::Result;

use self::args::Args;

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
            "works" => works::measure(args.work_count).await?,
            "memory" => works::memory::measure(args.work_count, args.window).await?,
            "drift" => works::drift::measure(args.work_count).await?,
            "quiet" => works::quiet::measure(args.work_count, args.window).await?,
            "idle" => fleet::measure_idle().await?,
            "fleet" => fleet::measure(args.clusters).await?,
            "join" => fleet::measure_join(args.clusters).await?,
            "storm" => fleet::storm::measure(args.clusters).await?,
            "hub" => fleet::idle_hub::measure(args.clusters, args.window).await?,
            "addons" => addons::measure(args.clusters).await?,
            "replicasets" => replicasets::measure(args.clusters).await?,
            _ => placements::measure(args.clusters).await?,
        }
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "files are smaller than 2^53 bytes")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
