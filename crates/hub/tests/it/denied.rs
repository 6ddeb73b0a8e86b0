//! What a policy of the API server denies for a while.

use anyhow::Result;
use ocm_testing::{Seen, eventually, unique};
use serde_json::{Value, json};

use crate::support::{World, world};

/// A policy that denies RoleBindings in the cluster's namespace, and anywhere under the name of the probe.
fn policy(cluster: &str, probe: &str) -> [Value; 2] {
    let deny = format!("request.namespace != '{cluster}' && object.metadata.name != '{probe}'");
    let rule = json!({
        "apiGroups": ["rbac.authorization.k8s.io"], "apiVersions": ["v1"], "resources": ["rolebindings"],
        "operations": ["CREATE", "UPDATE"],
    });
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": cluster},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": deny, "message": "no bindings before the audit"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": cluster},
        "spec": {"policyName": cluster, "validationActions": ["Deny"]},
    });
    [policy, binding]
}

async fn install(world: &World, cluster: &str) -> Result<()> {
    let probe = format!("probe-{cluster}");
    for object in policy(cluster, &probe) {
        world.plane.kubectl_with_input(&["create", "-f", "-"], &object.to_string()).await?;
    }
    let create = ["create", "rolebinding", &probe, "--clusterrole=view", "--user=nobody", "--dry-run=server"];
    eventually("the policy denies", || async {
        match world.plane.kubectl(&create).await {
            Ok(_) => Seen::NotYet("the probe is let through".to_owned()),
            Err(_) => Seen::Settled(()),
        }
    })
    .await
}

#[tokio::test]
async fn a_cluster_gets_the_rights_that_a_policy_denied_once_the_policy_is_gone() -> Result<()> {
    let (world, cluster) = (world().await?, unique("denied"));
    install(&world, &cluster).await?;
    world.create(&cluster, true, 60).await?;
    let (reason, message) = world.wait_for_condition(&cluster, "HubAcceptedManagedCluster", "False").await?;
    assert_eq!(reason, "Error");
    assert!(message.contains("no bindings before the audit"), "{message}");
    assert!(message.ends_with("The hub retries every few minutes."), "{message}");

    let kinds = "validatingadmissionpolicy,validatingadmissionpolicybinding";
    world.plane.kubectl(&["delete", kinds, &cluster]).await?;
    world.wait_for_accepted(&cluster).await
}
