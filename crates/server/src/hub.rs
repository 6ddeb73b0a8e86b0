//! `ocm hub`: the controllers of a hub.

use std::{collections::BTreeMap, sync::Arc};

use clap::Args;
use ocm_api::{
    feature_gates::{MANAGED_CLUSTER_AUTO_APPROVAL, PLACEMENT_DEBUG_SERVER},
    namespaces,
};
use ocm_hub::{DEFAULT_GC_RESOURCES, GcResource, Hub, HubConfig, PlacementDebug, feature_gates};
use ocm_runtime::{
    admin::{self, Access},
    client::Endpoint,
};
use tracing::info;

use crate::{
    args::{self, CommonArgs},
    flags::Given,
    process,
    recovery::RecoveryArgs,
};

/// The user agent; the part before the slash is the field manager.
const USER_AGENT: &str = concat!("ocm-hub/", env!("CARGO_PKG_VERSION"));

/// Run the controllers of a hub
#[derive(Debug, Args)]
pub(crate) struct HubArgs {
    /// Run only these controllers, or those of these components, such as registration, separated by commas [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    controllers: Vec<String>,

    /// Labels for the namespaces and RBAC objects of clusters, as key=value, separated by commas
    #[arg(long, value_name = "LABELS", value_delimiter = ',', value_parser = args::key_value)]
    labels: Vec<(String, String)>,

    /// Resources to delete from the namespace of a deleted cluster, as group/version/resource, in this order, separated by
    /// commas. The core group is empty: /v1/secrets
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values = DEFAULT_GC_RESOURCES)]
    gc_resource_list: Vec<String>,

    /// Users whose requests for the first certificate of an agent are approved, if the feature gate
    /// ManagedClusterAutoApproval is on and the hub accepts the cluster; separated by commas
    #[arg(long, value_name = "USERS", value_delimiter = ',')]
    auto_approved_csr_users: Vec<String>,

    #[command(flatten)]
    recovery: RecoveryArgs,

    /// Deprecated: read if --auto-approved-csr-users is empty
    #[arg(long, value_name = "USERS", value_delimiter = ',', hide_short_help = true)]
    cluster_auto_approval_users: Vec<String>,

    #[command(flatten)]
    common: CommonArgs,
}

impl HubArgs {
    /// The users for whom the hub approves first certificates, without empty names.
    fn auto_approved_users(&self) -> Vec<String> {
        let lists = [&self.auto_approved_csr_users, &self.cluster_auto_approval_users];
        let named = lists.map(|list| list.iter().filter(|user| !user.is_empty()).cloned().collect::<Vec<_>>());
        named.into_iter().find(|users| !users.is_empty()).unwrap_or_default()
    }
}

pub(crate) async fn run(args: HubArgs, given: &Given) -> anyhow::Result<()> {
    process::start_logs(args.common.verbosity);
    let config = config(&args)?;
    given.check(&config.gates.not_built)?;
    if !config.auto_approved_csr_users.is_empty() && !config.gates.enabled(MANAGED_CLUSTER_AUTO_APPROVAL) {
        info!("--auto-approved-csr-users has no effect without the feature gate {MANAGED_CLUSTER_AUTO_APPROVAL}");
    }
    let tls = args.common.serving.tls()?;
    let context = process::context();
    process::end_on_signal(&context)?;
    process::end_on_change(&context, args.common.terminate_on_files);
    let endpoint = Endpoint::load(&context, args.common.kubeconfig.as_deref())?.reloading(&context);
    process::reach(&endpoint).await?;
    let client = endpoint.client(USER_AGENT)?;
    let access = Arc::new(Access::new(client.clone()));
    let debug = PlacementDebug::new(access.clone(), context.clock().clone());
    let is_debugged = config.gates.enabled(PLACEMENT_DEBUG_SERVER);
    let more = is_debugged.then(|| debug.router());
    admin::serve_with(&context, &args.common.serving.listen, &tls, access, more).await?;
    let hub = Hub::start(&context, client, config)?;
    if is_debugged {
        debug.start(hub.informers());
    }
    Ok(process::run_to_the_end(&context, context.ended()).await?)
}

fn config(args: &HubArgs) -> anyhow::Result<HubConfig> {
    Ok(HubConfig {
        namespace: args.common.namespace(namespaces::HUB),
        host: process::host(),
        election: args.common.election.settings()?,
        gates: args.common.gates(&feature_gates::known())?,
        controllers: args.controllers.clone(),
        labels: args.labels.iter().cloned().collect::<BTreeMap<_, _>>(),
        auto_approved_csr_users: args.auto_approved_users(),
        gc_resources: GcResource::read_all(&args.gc_resource_list),
        recovery: args.recovery.policy()?,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        hub: HubArgs,
    }

    fn users(arguments: &[&str]) -> Vec<String> {
        Command::parse_from(["ocm"].iter().chain(arguments)).hub.auto_approved_users()
    }

    #[test]
    fn the_deprecated_list_of_users_counts_only_if_the_other_is_empty() {
        let (new, old) = ("--auto-approved-csr-users=a,,b", "--cluster-auto-approval-users=c");
        assert_eq!(users(&[new, old]), ["a", "b"]);
        assert_eq!(users(&[old]), ["c"]);
        assert_eq!(users(&["--auto-approved-csr-users=", old]), ["c"]);
        assert_eq!(users(&["--auto-approved-csr-users="]), [""; 0]);
    }
}
