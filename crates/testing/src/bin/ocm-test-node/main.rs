//! `make test-node`: OCM on a real node, everything a pod.
//!
//! One cluster is hub and managed cluster at once, as `cluster1`. What runs in it comes from the images of `make image`,
//! `deploy/` and `deploy/pods/`; what an administrator does is done with the CRDs of `ocm crds` and with `clusteradm`.
//!
//! A second test kills the program in the middle, and checks that nothing is left.

mod addon;
mod killed;
mod story;
mod traces;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use ocm_testing::node;
use ocm_testing::scenario::{finish, print_line};

const USAGE: &str = "\
Usage: make test-node, which runs
  ocm-test-node all PROGRAMS IMAGES    both of these, the second one first
  ocm-test-node walk PROGRAMS IMAGES   hub and agent as pods, and a work that runs
  ocm-test-node killed                 kill a node and look for what it leaves behind

PROGRAMS is the folder with ocm and clusteradm, IMAGES the one with the archives of `make image`";

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        // The scenario starts this program again with the same arguments; the inner one has nothing to kill.
        ["all", programs, images] if node::is_inside() => walk(programs, images),
        ["all", programs, images] => match killed::test() {
            Ok(()) => {
                print_line("");
                walk(programs, images)
            }
            failed => finish(failed),
        },
        ["walk", programs, images] => walk(programs, images),
        ["killed"] => finish(killed::test()),
        [killed::HOLD] => node::isolated(killed::hold),
        _ => finish(Err(anyhow::Error::msg(USAGE))),
    }
}

fn walk(programs: &str, images: &str) -> ExitCode {
    let (programs, images) = (PathBuf::from(programs), PathBuf::from(images));
    node::isolated(|| story::tell(programs, images))
}
