//! Checks of a hub with the credentials that an agent bootstraps with.

use k8s_openapi::Resource as _;
use ocm_api::cluster::v1::ManagedCluster;

use super::{
    super::{
        access::{self, Holder},
        accounts,
        model::{Check, Outcome},
        rights::{self, HUB_YAML, Right},
        server,
    },
    name,
};
use crate::{client::Connection, failure::Failure};

const CONNECTED: &[&str] = &["connection", "credentials"];

/// A hub to check.
pub(super) struct Hub {
    pub(super) server: Connection,
    /// The name with which the cluster is to join.
    pub(super) name: Option<String>,
    /// What this cluster has joined already: this hub or another one.
    pub(super) joined: Option<name::Joined>,
}

pub(super) const CHECKS: &[Check<Hub>] = &[
    Check { name: "address", needs: &[], run: |hub| Box::pin(async { server::address(&hub.server) }) },
    Check { name: "connection", needs: &[], run: |hub| Box::pin(server::connection(&hub.server)) },
    Check { name: "clock", needs: &["connection"], run: |hub| Box::pin(server::clock(&hub.server)) },
    Check { name: "credentials", needs: &["connection"], run: |hub| Box::pin(server::credentials(&hub.server)) },
    Check { name: "hub", needs: CONNECTED, run: |hub| Box::pin(is_hub(&hub.server)) },
    Check { name: "rights", needs: CONNECTED, run: |hub| Box::pin(to_bootstrap(&hub.server)) },
    Check { name: "cluster-name", needs: &["connection", "credentials", "hub"], run: |hub| Box::pin(name::check(hub)) },
];

/// Rights of the manifests that OCM's agents have and ours do not use: group, resource, verb.
const UNUSED: &[(&str, &str, &str)] =
    &[("", "configmaps", "get"), (GROUP, "managedclusters", "list"), (GROUP, "managedclusters", "watch")];
const GROUP: &str = "cluster.open-cluster-management.io";

/// Whether the server is a hub: whether it serves ManagedClusters.
async fn is_hub(server: &Connection) -> Outcome {
    let (version, kind) = (ManagedCluster::API_VERSION, ManagedCluster::URL_PATH_SEGMENT);
    let missing = || {
        let message = format!("{} is not a hub: it does not serve {kind} of {version}", server.server);
        Outcome::failed(message).hint("use the bootstrap kubeconfig of the hub, or on the hub: clusteradm check hub")
    };
    match server.client.list_api_group_resources(version).await {
        Ok(list) if list.resources.iter().any(|resource| resource.name == kind) => {
            Outcome::ok(format!("the server serves {kind} of {version}"))
        }
        Ok(_) => missing(),
        Err(kube::Error::Api(status)) if status.code == 404 => missing(),
        Err(error) => Outcome::of_error(server, "list the kinds that the hub serves", &error),
    }
}

async fn to_bootstrap(server: &Connection) -> Outcome {
    match needed() {
        Ok(rights) => access::compare(server, Holder::Myself, rights, &grant(server)).await,
        Err(failure) => Outcome::from(&failure),
    }
}

fn grant(server: &Connection) -> String {
    format!(
        "on the hub: kubectl apply --server-side -f deploy/hub.yaml; {} must have a token from: clusteradm get token",
        server.credentials
    )
}

fn needed() -> Result<Vec<Right>, Failure> {
    let mut rights = rights::of_account(HUB_YAML, accounts::BOOTSTRAP)?;
    rights.retain(|right| !UNUSED.contains(&(&right.group, &right.resource, &right.verb)));
    Ok(rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_needs_what_the_manifests_grant_but_for_what_only_ocms_use() {
        let expected = [
            "create, get, list, watch certificatesigningrequests.certificates.k8s.io",
            "create, get managedclusters.cluster.open-cluster-management.io",
            "create managedclustersets/join.cluster.open-cluster-management.io default",
        ];
        assert_eq!(rights::list(&needed().unwrap()), expected.join("; "));
        let all = rights::of_account(HUB_YAML, accounts::BOOTSTRAP).unwrap();
        assert_eq!(all.len(), needed().unwrap().len() + UNUSED.len(), "each of the unused ones is in the manifests");
    }
}
