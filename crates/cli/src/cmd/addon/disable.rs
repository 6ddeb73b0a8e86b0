//! `clusteradm addon disable`: removes add-ons from managed clusters.

use clap::Args;
use kube::api::{Api, DeleteParams, ListParams};
use ocm_api::addon::v1alpha1::ManagedClusterAddOn;

use super::{is_placed, management, names};
use crate::{
    client::Connection,
    cmd::{Context, selection::ClusterArgs},
    failure::Failure,
    hub,
};

/// Flags of `addon disable`.
#[derive(Args, Debug)]
pub(crate) struct DisableArgs {
    /// Names of the add-ons to remove
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', required = true)]
    names: Vec<String>,
    #[command(flatten)]
    clusters: ClusterArgs,
}

/// Runs the command.
pub(crate) async fn run(args: &DisableArgs, context: &Context) -> Result<(), Failure> {
    context.announce_dry_run("addon disable");
    let (names, clusters) = (names(&args.names)?, args.clusters.given()?);
    let hub = hub::connect(context).await?;
    let mut failures = Vec::new();
    for name in &names {
        let outcome = disable(&hub, name, &clusters, context).await;
        failures.extend(outcome.err());
    }
    Failure::all(failures)
}

async fn disable(hub: &Connection, name: &str, clusters: &[String], context: &Context) -> Result<(), Failure> {
    let found = match clusters {
        [] => installed(hub, name).await?,
        clusters => clusters.to_vec(),
    };
    if found.is_empty() {
        return context.print(&format!("{name} add-on not found in any cluster.\n"));
    }
    if management(hub, name).await?.is_some_and(|addon| is_placed(&addon)) {
        context.warn(&format!(
            "placements decide where add-on {name} is installed: the hub installs it again on the clusters that they \
             select; to prevent that, change them or spec.installStrategy of ClusterManagementAddOn {name}"
        ));
    }
    let mut failures = Vec::new();
    for cluster in &found {
        failures.extend(delete(hub, cluster, name, context).await.err());
    }
    Failure::all(failures)
}

/// The clusters that an add-on is installed on.
async fn installed(hub: &Connection, name: &str) -> Result<Vec<String>, Failure> {
    let named = ListParams::default().fields(&format!("metadata.name={name}"));
    let addons = Api::<ManagedClusterAddOn>::all(hub.client.clone()).list_metadata(&named).await;
    let addons = addons.map_err(|error| hub.explain(&format!("list the clusters of add-on {name}"), &error))?;
    Ok(addons.items.into_iter().filter_map(|addon| addon.metadata.namespace).collect())
}

async fn delete(hub: &Connection, cluster: &str, name: &str, context: &Context) -> Result<(), Failure> {
    let dry_run = context.global.dry_run;
    let params = DeleteParams { dry_run, ..DeleteParams::default() };
    let deleted = Api::<ManagedClusterAddOn>::namespaced(hub.client.clone(), cluster).delete(name, &params).await;
    let line = match deleted {
        Ok(_) if dry_run => format!("{name} add-on would be undeployed in managed cluster: {cluster}.\n"),
        Ok(_) => format!("Undeploying {name} add-on in managed cluster: {cluster}.\n"),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            format!("{name} add-on not found in cluster: {cluster}.\n")
        }
        Err(error) => return Err(hub.explain(&format!("disable add-on {name} on cluster {cluster}"), &error)),
    };
    context.print(&line)
}
