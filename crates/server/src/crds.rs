//! `ocm crds`: the CRDs as YAML.

use std::io::Write as _;

use anyhow::Context as _;
use clap::Args;
use ocm_api::crds::Side;
use ocm_apimachinery::yaml;

/// Print the CRDs, ready for `kubectl apply --server-side -f -`
///
/// Without a flag those of both sides; a managed cluster needs fewer than a hub. CRDs of the operators and of features
/// behind a gate are not among them: they are in the folder crds/ of the sources.
#[derive(Debug, Args)]
pub(crate) struct CrdsArgs {
    /// Only those of a hub
    #[arg(long, conflicts_with = "managed")]
    hub: bool,

    /// Only those of a managed cluster
    #[arg(long)]
    managed: bool,
}

pub(crate) fn run(args: &CrdsArgs) -> anyhow::Result<()> {
    let crds = ocm_api::crds::all()?;
    let wanted = crds.iter().filter(|crd| match crd.side {
        Side::Hub => !args.managed,
        Side::Managed => !args.hub,
    });
    let mut out = std::io::stdout().lock();
    for crd in wanted {
        let yaml = yaml::to_string(&crd.definition)?;
        match write!(out, "---\n{yaml}") {
            // Whoever reads has read enough, as in `ocm crds | head`.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            outcome => outcome.context("failed to write to stdout")?,
        }
    }
    Ok(())
}
