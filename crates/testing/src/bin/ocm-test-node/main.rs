//! `make test-node`: OCM on a real node, everything a pod.
//!
//! One cluster is hub and managed cluster at once, as `cluster1`. What runs in it comes from the images of `make image`,
//! `deploy/` and `deploy/pods/`; what an administrator does is done with the CRDs of `ocm crds` and with `clusteradm`.
//!
//! A second test kills the program in the middle, and looks whether anything is left.

mod addon;
mod killed;
mod story;
mod world;

#[path = "../ocm-demo/steps.rs"]
mod steps;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use ocm_testing::node;

const USAGE: &str = "\
Usage: make test-node, which runs
  ocm-test-node walk PROGRAMS IMAGES   hub and agent as pods, and a work that runs
  ocm-test-node killed                 kill a node and look for what it leaves behind

PROGRAMS is the folder with ocm and clusteradm, IMAGES the one with the archives of `make image`";

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["walk", programs, images] => {
            let (programs, images) = (PathBuf::from(programs), PathBuf::from(images));
            node::isolated(|| story::tell(programs, images))
        }
        ["killed"] => finish(killed::test()),
        [killed::HOLD] => node::isolated(killed::hold),
        _ => finish(Err(anyhow::Error::msg(USAGE))),
    }
}

fn finish(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            steps::say(&format!("\nerror: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
