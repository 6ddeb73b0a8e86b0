//! Chores of the repository: generate the CRDs, pack images, check the architecture (`tests/architecture.rs`).

mod crds;
mod image;

use anyhow::{Result, bail};

const USAGE: &str = "\
Usage: cargo run -p xtask -- <COMMAND>

Commands:
  crds          Write crds/ from the types of ocm-api
  crds --check  Fail when crds/ is not what the types generate
  image         Pack a static binary as an image: --binary <FILE> --tag <NAME> --output <FILE>";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["crds"] => crds::write(),
        ["crds", "--check"] => crds::check(),
        ["image", options @ ..] => image::write(options),
        _ => bail!("{USAGE}"),
    }
}
