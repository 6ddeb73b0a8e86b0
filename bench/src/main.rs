//! Measures a hub and an agent on real control planes, and prints one JSON line per figure.
//!
//! Speed is only worth something beside what the machine could do: the same writes are first made
//! by a bare client on the same control planes, and the figure is a ratio. See `bench/README.md`.

mod admin;
mod figures;
mod floor;
mod product;
mod works;

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use self::{figures::print, product::Product};

/// How many works make the load.
const WORKS: usize = 1000;
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
    let works = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => WORKS,
        [flag, count] if flag == "--works" => count.parse().context("--works wants a number")?,
        _ => bail!("usage: make bench [ARGS='--works 1000']"),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(works))
}

async fn measure(works: usize) -> Result<()> {
    let mut product = Product::start().await?;
    for (name, bytes) in product.binary_sizes()? {
        print(&format!("binary size of {name}"), megabytes(bytes), "MB");
    }
    let floor_single = floor::run(&product, SINGLE, 1).await?;
    let floor = floor::run(&product, works, AT_A_TIME).await?;
    print("join: agent start to Available", product.join().await?.as_secs_f64(), "s");
    product.settle().await?;
    product.print_memory("idle")?;
    let single = works::run(&product, "single", SINGLE, 1).await?;
    single.print_latencies("1 ManifestWork, create to Available");
    print("1 ManifestWork, product / floor", single.total.as_secs_f64() / floor_single.as_secs_f64(), "ratio");
    let before = product.agent_cpu()?;
    let load = works::run(&product, "load", works, AT_A_TIME).await?;
    load.print_latencies(&format!("{works} ManifestWorks, create to Available"));
    print(&format!("{works} ManifestWorks, until all are Available"), load.total.as_secs_f64(), "s");
    print(&format!("{works} ManifestWorks, the same writes by a bare client"), floor.as_secs_f64(), "s");
    print(&format!("{works} ManifestWorks, product / floor"), load.total.as_secs_f64() / floor.as_secs_f64(), "ratio");
    print(&format!("{works} ManifestWorks, CPU of the agent"), (product.agent_cpu()? - before).as_secs_f64(), "s");
    product.settle().await?;
    product.print_memory(&format!("with {works} works"))?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "files are smaller than 2^53 bytes")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
