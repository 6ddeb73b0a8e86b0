//! Whether something enforces who may accept clusters, bind cluster sets and use executors: the policies of `deploy/hub.yaml`, or webhooks.
//!
//! Whether they answer shows in a dry run of what they refuse: a cluster whose address is not one with https.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use kube::{
    Client, Resource,
    api::{Api, PostParams},
    core::ClusterResourceScope,
};
use ocm_api::{
    cluster::v1::{ClientConfig, ManagedCluster, ManagedClusterSpec},
    webhooks::{CLUSTER_VALIDATORS, SET_BINDING_VALIDATORS, WORK_VALIDATORS},
};
use serde::de::DeserializeOwned;

use super::{super::model::Outcome, INSTALL};
use crate::client::Connection;

/// It never exists.
const NAME: &str = "clusteradm-check";

pub(super) async fn check(server: &Connection) -> Outcome {
    let mut missing = Vec::new();
    for name in [CLUSTER_VALIDATORS, SET_BINDING_VALIDATORS, WORK_VALIDATORS] {
        match absent(&server.client, name).await {
            Ok(absent) => missing.extend(absent),
            Err(error) => return Outcome::of_error(server, "read the admission policies", &error),
        }
    }
    if missing.is_empty() { refuses(server).await } else { not_installed(&missing) }
}

/// What does not exist of a policy and its binding, unless a webhook takes its place.
async fn absent(client: &Client, name: &str) -> kube::Result<Vec<String>> {
    if exists::<ValidatingWebhookConfiguration>(client, name).await? {
        return Ok(Vec::new());
    }
    let mut absent = Vec::new();
    if !exists::<ValidatingAdmissionPolicy>(client, name).await? {
        absent.push(format!("ValidatingAdmissionPolicy {name}"));
    }
    if !exists::<ValidatingAdmissionPolicyBinding>(client, name).await? {
        absent.push(format!("ValidatingAdmissionPolicyBinding {name}"));
    }
    Ok(absent)
}

async fn exists<K>(client: &Client, name: &str) -> kube::Result<bool>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
{
    Ok(Api::<K>::all(client.clone()).get_metadata_opt(name).await?.is_some())
}

fn not_installed(missing: &[String]) -> Outcome {
    let message = format!(
        "nothing restricts who accepts clusters, moves them between cluster sets and binds those, or who uses executors of works; \
         missing: {}",
        missing.join(", ")
    );
    let webhooks = "or, before Kubernetes 1.30, run ocm webhook and: ocm webhooks | kubectl apply --server-side -f -";
    Outcome::failed(message).hint(format!("{INSTALL}; {webhooks}"))
}

async fn refuses(server: &Connection) -> Outcome {
    let config = ClientConfig { url: "http://clusteradm-check".to_owned(), ..ClientConfig::default() };
    let spec = ManagedClusterSpec { managed_cluster_client_configs: vec![config], ..ManagedClusterSpec::default() };
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let created =
        Api::<ManagedCluster>::all(server.client.clone()).create(&dry, &ManagedCluster::new(NAME, spec)).await;
    match created {
        Ok(_) => Outcome::failed("the policies are installed, but the API server does not enforce them")
            .hint(format!("wait a few seconds and check again, or restore them: {INSTALL}")),
        Err(kube::Error::Api(status)) if is_denial(&status.message) => {
            Outcome::ok("a cluster that must be refused is refused (by a dry run)")
        }
        Err(kube::Error::Api(status)) if status.message.contains("failed calling webhook") => {
            let message =
                format!("the admission webhook does not answer, so no cluster can be created: {}", status.message);
            Outcome::failed(message)
                .hint("start ocm webhook, or check its address in: kubectl get validatingwebhookconfigurations")
        }
        Err(kube::Error::Api(status)) if status.code == 403 => Outcome::ok(
            "installed; whether they are enforced is not known, since the user may not create clusters for a dry run",
        ),
        Err(error) => Outcome::of_error(server, "create a cluster in a dry run", &error),
    }
}

/// As policies and webhooks say it.
fn is_denial(message: &str) -> bool {
    message.contains("denied request") || message.contains("denied the request")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_commands_that_install_it() {
        let outcome = not_installed(&["ValidatingAdmissionPolicy a".to_owned()]);
        assert!(outcome.message.ends_with("missing: ValidatingAdmissionPolicy a"), "{outcome:?}");
        let hint = outcome.hint.unwrap();
        assert!(hint.contains(INSTALL) && hint.contains("ocm webhooks |"), "{hint}");
    }

    #[test]
    fn a_denial_is_distinguished_from_a_missing_right() {
        assert!(is_denial("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"));
        assert!(is_denial("admission webhook \"w\" denied the request: no"));
        assert!(!is_denial("managedclusters is forbidden: User \"u\" cannot create resource"));
    }
}
