//! `ocm crds`: the CRDs as YAML.

use std::path::PathBuf;

use clap::Args;
use ocm_api::{
    crds::{Crd, Side},
    webhooks::CONVERT_PATH,
};
use ocm_apimachinery::yaml;

use crate::{address, process};

/// Print the CRDs, ready for `kubectl apply --server-side -f -`
///
/// By default those of both sides; a managed cluster needs fewer than a hub. CRDs of the operators, and of features behind a
/// feature gate, are not included: they are in the folder crds/ of the sources.
#[derive(Debug, Args)]
pub(crate) struct CrdsArgs {
    /// Only the CRDs of a hub
    #[arg(long, conflicts_with = "managed")]
    hub: bool,

    /// Only the CRDs of a managed cluster
    #[arg(long)]
    managed: bool,

    /// Address of `ocm webhook` for the hub's API server, such as https://10.0.0.5:9443. Defaults to its service in the hub's
    /// namespace
    #[arg(long, value_name = "URL", value_parser = conversion_url)]
    conversion_url: Option<String>,

    /// File with the certificate authority of `ocm webhook`, or its own certificate, in PEM. Defaults to those that the API
    /// server's machine trusts
    #[arg(long, value_name = "FILE")]
    conversion_ca_file: Option<PathBuf>,
}

pub(crate) fn run(args: &CrdsArgs) -> anyhow::Result<()> {
    let mut crds = ocm_api::crds::all()?;
    point_at_webhook(&mut crds, args)?;
    let wanted = crds.iter().filter(|crd| match crd.side {
        Side::Hub => !args.managed,
        Side::Managed => !args.hub,
    });
    let documents = wanted.map(|crd| Ok(format!("---\n{}", yaml::to_string(&crd.definition)?)));
    process::print(&documents.collect::<anyhow::Result<String>>()?)
}

/// Sets the address of the conversion webhook to that of the flags.
fn point_at_webhook(crds: &mut [Crd], args: &CrdsArgs) -> anyhow::Result<()> {
    if let Some(url) = &args.conversion_url {
        crds.iter_mut().for_each(|crd| crd.convert_at(url));
    }
    if let Some(file) = &args.conversion_ca_file {
        let certificates = address::certificates(file)?;
        crds.iter_mut().for_each(|crd| crd.trust_converter(&certificates));
    }
    Ok(())
}

/// The URL for conversion. Without a path it gets the webhook's.
fn conversion_url(text: &str) -> Result<String, String> {
    let url = address::url(text)?;
    let completed = format!("{}{CONVERT_PATH}", url.trim_end_matches('/'));
    Ok(if address::has_no_path(&url) { completed } else { url })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_path_gets_that_of_the_webhook() {
        let whole = "https://10.0.0.5:9443/convert";
        for text in ["https://10.0.0.5:9443", "https://10.0.0.5:9443/", whole] {
            assert_eq!(conversion_url(text).as_deref(), Ok(whole));
        }
        assert_eq!(conversion_url("https://hub/some/path").as_deref(), Ok("https://hub/some/path"));
    }
}
