//! `make interop`: OCM's own hub, agent and add-on, and ours in their places, one after the other.
//!
//! Each scenario runs with OCM's programs only, and then with ours in some of the parts, where every step must succeed as well.
//! The objects that remain are compared, and the differences are listed in the end, each under the part that causes it.
//!
//! OCM's programs are v1.2.1, the latest that can be had as a Go module (its example add-on is v1.3.0), while ours follow v1.3:
//! some of the differences are those between the two.
//!
//! Everything runs on real control planes without a node: the add-on's agent is a process, with the credentials that the
//! cluster's agent keeps for it in a secret, and the status of its Deployment is written by hand.

mod addon;
mod difference;
mod ocm;
mod parts;
mod plain;
mod snapshot;
mod story;
mod world;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail, ensure};
use ocm_testing::scenario::{finish, print_line};

use crate::{difference::Differences, parts::Cast, snapshot::Looks};

const USAGE: &str = "\
Usage: make interop, which runs
  ocm-interop PEERS

PEERS is the folder with OCM's own programs, which `testenv/build.sh peers` prints";

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let [peers] = args.as_slice() else { bail!("{USAGE}") };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("failed to start the Tokio runtime")?.block_on(Box::pin(tell(&PathBuf::from(peers))))
}

/// Runs all scenarios, also after one that fails. Returns an error if any failed.
async fn tell(peers: &Path) -> Result<()> {
    print_line(&format!("OCM's programs are those in {}", peers.display()));
    let (mut differences, mut failed) = (Differences::default(), 0);
    for (reference, casts) in Cast::ALL {
        let expected = story(peers, reference, &mut failed).await;
        for cast in casts {
            let seen = story(peers, *cast, &mut failed).await;
            if let (Some(expected), Some(seen)) = (&expected, &seen) {
                differences.add(*cast, expected, seen);
            }
        }
    }
    print_line(&format!("\n{differences}"));
    ensure!(failed == 0, "{failed} of the stories did not come true, see above");
    print_line("Every scenario passed.");
    Ok(())
}

async fn story(peers: &Path, cast: Cast, failed: &mut u32) -> Option<Looks> {
    let told = story::tell(peers, cast).await;
    told.inspect_err(|error| {
        print_line(&format!("\nerror: {error:#}"));
        *failed += 1;
    })
    .ok()
}
