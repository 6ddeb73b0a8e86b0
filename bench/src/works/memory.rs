//! How much memory the agent needs for many works, also after they have been replaced for a while.

use std::time::{Duration, Instant};

use anyhow::Result;
use kube::Client;

use super::{
    load::{Step, run},
    plan,
};
use crate::{AT_A_TIME, product::Product};

/// With how many works memory is measured, besides the number that was asked for.
const COUNTS: [usize; 2] = [100, 1000];
/// How many works are replaced at a time.
const REPLACED: usize = 200;

/// Measures with more and more works, then after some of them have been created, updated and deleted for `churn`.
pub(crate) async fn measure(works: usize, churn: Duration) -> Result<()> {
    let mut product = Product::start().await?;
    product.join().await?;
    product.settle().await?;
    product.print_memory("with 0 works")?;
    let hub = product.hub_client().await?;
    let mut present = 0;
    for count in COUNTS.into_iter().filter(|count| *count < works).chain([works]) {
        // The names of each plan are numbered from zero.
        let prefix = format!("memory-{count}");
        run(&hub, Step::Create, &plan(&prefix, count - present, AT_A_TIME)).await?;
        present = count;
        product.settle().await?;
        product.print_memory(&format!("with {count} works"))?;
    }
    replace(&hub, churn).await?;
    product.settle().await?;
    product.print_memory(&format!(
        "with {works} works, after {} s in which {REPLACED} more came and went",
        churn.as_secs()
    ))
}

async fn replace(hub: &Client, churn: Duration) -> Result<()> {
    let started = Instant::now();
    while started.elapsed() < churn {
        for step in [Step::Create, Step::Update, Step::Delete] {
            run(hub, step, &plan("churn", REPLACED, AT_A_TIME)).await?;
        }
    }
    Ok(())
}
