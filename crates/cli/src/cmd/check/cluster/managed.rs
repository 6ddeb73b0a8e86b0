//! Checks of the managed cluster.

use ocm_api::crds::Side;

use super::super::{
    access::{self, Holder},
    accounts, crds,
    model::{Check, Outcome},
    rights::{self, AGENT_YAML},
    server,
};
use crate::client::Connection;

const CONNECTED: &[&str] = &["connection", "credentials"];
/// The command that installs accounts and rights.
const INSTALL: &str = "kubectl apply --server-side -f deploy/agent.yaml";

/// A managed cluster to check.
pub(super) struct Cluster {
    pub(super) server: Connection,
    pub(super) as_agent: bool,
}

pub(super) const CHECKS: &[Check<Cluster>] = &[
    Check { name: "connection", needs: &[], run: |cluster| Box::pin(server::connection(&cluster.server)) },
    Check {
        name: "credentials",
        needs: &["connection"],
        run: |cluster| Box::pin(server::credentials(&cluster.server)),
    },
    Check { name: "clock", needs: &["connection"], run: |cluster| Box::pin(server::clock(&cluster.server)) },
    Check { name: "version", needs: CONNECTED, run: |cluster| Box::pin(server::version(&cluster.server, None)) },
    Check { name: "crds", needs: CONNECTED, run: |cluster| Box::pin(crds::compare(&cluster.server, Side::Managed)) },
    Check { name: "rights", needs: CONNECTED, run: |cluster| Box::pin(of_agent(cluster)) },
];

async fn of_agent(cluster: &Cluster) -> Outcome {
    let holder = if cluster.as_agent { Holder::Myself } else { Holder::Account(accounts::AGENT) };
    match rights::of_account(AGENT_YAML, accounts::AGENT) {
        Ok(expected) => access::compare(&cluster.server, holder, expected, INSTALL).await,
        Err(failure) => Outcome::from(&failure),
    }
}
