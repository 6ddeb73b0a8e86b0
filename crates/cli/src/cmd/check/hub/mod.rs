//! `clusteradm check hub`.

mod addresses;
mod admission;
mod conversion;
mod leases;
mod renewals;
mod signer;

use clap::Args;
use ocm_api::{crds::Side, namespaces};
use tokio::time::Instant;

use super::{
    Format,
    access::{self, Holder},
    accounts, crds,
    model::{self, Check, Group, Outcome},
    rights::{self, Account, HUB_YAML},
    server,
};
use crate::{
    client::{self, Connection},
    cmd::Context,
};

/// The command that installs policies, accounts and rights.
const INSTALL: &str = "kubectl apply --server-side -f deploy/hub.yaml";
/// Everything but the first checks needs these.
const CONNECTED: &[&str] = &["connection", "credentials"];

/// Flags of `check hub`.
#[derive(Args, Debug)]
pub(crate) struct HubArgs {
    /// The kubeconfig is that of the hub process: check the rights of its own user, and not those of its service account
    #[arg(long)]
    as_hub: bool,
    /// Test the signer of certificates: create a certificate request, approve it, wait for the certificate, delete it
    #[arg(long)]
    sign: bool,
    /// Namespace of the hub process
    #[arg(short, long, value_name = "NAME", default_value = namespaces::HUB)]
    namespace: String,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub(super) output: Format,
}

/// A hub to check.
struct Hub {
    server: Connection,
    as_hub: bool,
    sign: Sign,
    namespace: String,
    deadline: Instant,
}

/// Whether a request may be written to test the signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    No,
    DryRun,
    Yes,
}

const CHECKS: &[Check<Hub>] = &[
    Check { name: "connection", needs: &[], run: |hub| Box::pin(server::connection(&hub.server)) },
    Check { name: "credentials", needs: &["connection"], run: |hub| Box::pin(server::credentials(&hub.server)) },
    Check { name: "clock", needs: &["connection"], run: |hub| Box::pin(server::clock(&hub.server)) },
    Check { name: "version", needs: CONNECTED, run: |hub| Box::pin(server::version(&hub.server, Some(POLICIES))) },
    Check { name: "addresses", needs: CONNECTED, run: |hub| Box::pin(addresses::check(&hub.server)) },
    Check { name: "crds", needs: CONNECTED, run: |hub| Box::pin(crds::compare(&hub.server, Side::Hub)) },
    Check { name: "conversion", needs: &["crds"], run: |hub| Box::pin(conversion::check(&hub.server)) },
    Check { name: "admission", needs: &["crds"], run: |hub| Box::pin(admission::check(&hub.server)) },
    Check { name: "rights", needs: CONNECTED, run: |hub| Box::pin(of_hub(hub)) },
    Check { name: "bootstrap", needs: CONNECTED, run: |hub| Box::pin(of_bootstrap(hub)) },
    Check { name: "signer", needs: CONNECTED, run: |hub| Box::pin(signer::check(hub)) },
    Check { name: "renewals", needs: &["crds"], run: |hub| Box::pin(renewals::check(hub)) },
    Check { name: "leases", needs: CONNECTED, run: |hub| Box::pin(leases::check(hub)) },
];

/// The first minor version with policies.
const POLICIES: (u32, &str) =
    (30, "it has no ValidatingAdmissionPolicies, so only webhooks can restrict who accepts clusters (ocm webhook)");

/// Makes the checks.
pub(super) async fn run(args: &HubArgs, context: &Context, deadline: Instant) -> Vec<Group> {
    let server = match client::connect(context) {
        Ok(server) => server,
        Err(failure) => {
            let findings = model::without_connection(CHECKS, &failure);
            return vec![Group { subject: "hub".to_owned(), findings }];
        }
    };
    let sign = match (args.sign, context.global.dry_run) {
        (false, _) => Sign::No,
        (true, true) => Sign::DryRun,
        (true, false) => Sign::Yes,
    };
    let hub = Hub { server, as_hub: args.as_hub, sign, namespace: args.namespace.clone(), deadline };
    let findings = model::run(CHECKS, &hub, deadline).await;
    vec![Group { subject: server::subject("hub", &hub.server), findings }]
}

async fn of_hub(hub: &Hub) -> Outcome {
    let holder = if hub.as_hub { Holder::Myself } else { Holder::Account(accounts::HUB) };
    rights_of(&hub.server, holder, accounts::HUB).await
}

async fn of_bootstrap(hub: &Hub) -> Outcome {
    rights_of(&hub.server, Holder::Account(accounts::BOOTSTRAP), accounts::BOOTSTRAP).await
}

/// Compares the rights of `holder` with those that the manifests give to `account`.
async fn rights_of(server: &Connection, holder: Holder, account: Account) -> Outcome {
    match rights::of_account(HUB_YAML, account) {
        Ok(expected) => access::compare(server, holder, expected, INSTALL).await,
        Err(failure) => Outcome::from(&failure),
    }
}
