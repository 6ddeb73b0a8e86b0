//! `make demo`: a hub and two managed clusters on real control planes, from nothing to works and an add-on.
//!
//! Every step is one that an administrator could do by hand: the CRDs come from `ocm crds`, the rights from `deploy/`, hub and
//! agents are processes under their own service accounts, and the clusters are accepted with `clusteradm`.

mod addon;
mod clusters;
mod story;

use std::{path::Path, process::ExitCode};

use anyhow::{Context as _, Result, bail};
use ocm_testing::scenario::{finish, print_line};

const USAGE: &str = "\
Usage: make demo [ARGS=--once]

Starts a hub and two managed clusters, and stays up until Ctrl-C.
  --once  end when everything has come true, or fail when something has not";

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let (programs, once) = match args.as_slice() {
        [programs] => (Path::new(programs), false),
        [programs, flag] if flag == "--once" => (Path::new(programs), true),
        _ => bail!("{USAGE}"),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("failed to start the Tokio runtime")?.block_on(async {
        tokio::select! {
            outcome = Box::pin(story::tell(programs, once)) => outcome,
            _ = tokio::signal::ctrl_c() => {
                print_line("\nstopping: hub, agents and control planes end with this process");
                Ok(())
            }
        }
    })
}
