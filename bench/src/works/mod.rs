//! ManifestWorks of one cluster: created, updated and deleted; many small ones, and one with many objects.

mod big;
pub(crate) mod drift;
mod floor;
mod load;
pub(crate) mod memory;
pub(crate) mod quiet;

use std::time::Duration;

use anyhow::Result;
use kube::Client;

use self::load::{Load, config_map};
pub(crate) use self::load::{Plan, Step, run};
use crate::{
    AT_A_TIME,
    figures::print,
    megabytes,
    product::{self, Product},
};

/// How many works are created one after the other.
const SINGLE: usize = 20;
const STEPS: [Step; 3] = [Step::Create, Step::Update, Step::Delete];

/// The life of so many works, beside the same writes by a bare client.
pub(crate) async fn measure(works: usize) -> Result<()> {
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
    for step in STEPS {
        let single = run(&hub, step, &plan("single", SINGLE, 1)).await?;
        single.print_latencies(&format!("1 ManifestWork, {step}"));
        print_ratio(&format!("1 ManifestWork, {step}"), &single, floor_single.of(step));
    }
    for step in STEPS {
        measure_load(&product, &hub, step, &plan("load", works, AT_A_TIME), floor.of(step)).await?;
        if matches!(step, Step::Create) {
            product.settle().await?;
            product.print_memory(&format!("with {works} works"))?;
        }
    }
    big::measure(&product, &hub).await
}

async fn measure_load(product: &Product, hub: &Client, step: Step, plan: &Plan<'_>, floor: Duration) -> Result<()> {
    let figure = format!("{} ManifestWorks, {step}", plan.count);
    let before = product.agent_cpu()?;
    let load = run(hub, step, plan).await?;
    load.print_latencies(&figure);
    print(&format!("{figure}, until all are"), load.total.as_secs_f64(), "s");
    print(&format!("{figure}, the same writes by a bare client"), floor.as_secs_f64(), "s");
    print_ratio(&figure, &load, floor);
    print(&format!("{figure}, CPU of the agent"), (product.agent_cpu()? - before).as_secs_f64(), "s");
    Ok(())
}

fn print_ratio(figure: &str, load: &Load, floor: Duration) {
    print(&format!("{figure}, product / floor"), load.total.as_secs_f64() / floor.as_secs_f64(), "ratio");
}

/// Works for the one cluster.
pub(crate) fn plan(prefix: &str, count: usize, at_a_time: usize) -> Plan<'_> {
    Plan {
        prefix,
        count,
        at_a_time,
        cluster: &|_| product::CLUSTER.to_owned(),
        manifest: |_, name, value| config_map(name, value),
    }
}
