//! `clusteradm addon`: installs add-ons on managed clusters, and removes them.

mod config;
mod disable;
mod enable;
mod plan;

use clap::Subcommand;
use kube::Api;
use ocm_api::addon::v1alpha1::{ClusterManagementAddOn, InstallStrategyType};

use crate::{
    client::Connection,
    cmd::{Context, selection::distinct},
    failure::Failure,
};

/// What to do with add-ons.
#[derive(Debug, Subcommand)]
pub(crate) enum AddonCommand {
    /// Install add-ons on managed clusters
    Enable(enable::EnableArgs),
    /// Remove add-ons from managed clusters: from all of them, or only from those that flags name
    Disable(disable::DisableArgs),
}

/// Runs the command.
pub(crate) async fn run(command: AddonCommand, context: &Context) -> Result<(), Failure> {
    match command {
        AddonCommand::Enable(args) => enable::run(&args, context).await,
        AddonCommand::Disable(args) => disable::run(&args, context).await,
    }
}

/// The add-ons of `--names`, each once.
fn names(given: &[String]) -> Result<Vec<String>, Failure> {
    let names = distinct(given).filter(|names| !names.is_empty());
    names.ok_or_else(|| Failure::new("--names cannot be set as an empty value").hint("for example: --names helloworld"))
}

/// The ClusterManagementAddOn of an add-on, if it exists.
async fn management(hub: &Connection, name: &str) -> Result<Option<ClusterManagementAddOn>, Failure> {
    let addons = Api::<ClusterManagementAddOn>::all(hub.client.clone());
    addons.get_opt(name).await.map_err(|error| hub.explain(&format!("read add-on {name}"), &error))
}

/// Whether placements decide where the add-on is installed.
fn is_placed(addon: &ClusterManagementAddOn) -> bool {
    let type_ = addon.spec.install_strategy.as_ref().and_then(|strategy| strategy.type_.as_ref());
    type_ == Some(&InstallStrategyType::Placements)
}
