//! The manifests in `deploy/` can be applied repeatedly, and grant the rights that they are for.

use anyhow::Result;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use ocm_testing::{ControlPlane, client_for, eventually, unique};
use serde_json::json;

use crate::hub::{HUB_YAML, hub};

const AGENT_YAML: &str = include_str!("../../../../deploy/agent.yaml");
const AGENT: &str = "system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa";

async fn apply(cluster: &ControlPlane, yaml: &str) -> Result<String> {
    cluster.kubectl_with_input(&["apply", "--server-side", "-f", "-"], yaml).await
}

#[tokio::test]
async fn the_hubs_account_may_grant_a_cluster_its_rights() -> Result<()> {
    let hub = hub().await?;
    apply(hub, HUB_YAML).await?;
    let account = hub.kubeconfig_for_service_account("open-cluster-management-hub", "hub-controller-sa").await?;
    let roles = Api::<ClusterRole>::all(client_for(&account).await?);
    let rules = json!([
        { "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
          "verbs": ["create", "get", "list", "watch"] },
        { "apiGroups": ["register.open-cluster-management.io"], "resources": ["managedclusters/clientcertificates"],
          "verbs": ["renew"] },
        { "apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"],
          "resourceNames": ["c"], "verbs": ["get", "list", "update", "watch"] },
        { "apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters/status"],
          "resourceNames": ["c"], "verbs": ["patch", "update"] },
        { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "watch", "update"] },
        { "apiGroups": ["addon.open-cluster-management.io"], "resources": ["managedclusteraddons"],
          "verbs": ["get", "list", "watch"] },
        { "apiGroups": ["addon.open-cluster-management.io"], "resources": ["managedclusteraddons/status"],
          "verbs": ["patch", "update"] },
        { "apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"] },
        { "apiGroups": ["work.open-cluster-management.io"], "resources": ["manifestworks"],
          "verbs": ["get", "list", "watch", "update", "patch"] },
        { "apiGroups": ["work.open-cluster-management.io"], "resources": ["manifestworks/status"],
          "verbs": ["patch", "update"] },
    ]);
    let role = json!({ "metadata": { "name": unique("cluster") }, "rules": rules });
    roles.create(&Default::default(), &serde_json::from_value(role)?).await?;

    let too_much = json!([{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] }]);
    let role = json!({ "metadata": { "name": unique("cluster") }, "rules": too_much });
    let refused = roles.create(&Default::default(), &serde_json::from_value(role)?).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
    Ok(())
}

#[tokio::test]
async fn the_agents_account_may_apply_what_works_contain() -> Result<()> {
    let cluster = hub().await?;
    apply(cluster, AGENT_YAML).await?;
    let may = async |verb: &str, resource: &str| {
        let answer = cluster.kubectl(&["auth", "can-i", verb, resource, "--as", AGENT, "-n", "default"]).await;
        answer.is_ok_and(|answer| answer.trim() == "yes")
    };
    // Through the built-in role `admin`, and through the aggregate, once Kubernetes has added it up.
    eventually("the agent may create deployments", async || may("create", "deployments.apps").await).await?;
    eventually("the agent may create roles", async || may("escalate", "clusterroles.rbac.authorization.k8s.io").await)
        .await?;
    assert!(!may("delete", "nodes").await);
    // Applying again is no conflict with what Kubernetes has added.
    apply(cluster, AGENT_YAML).await?;
    assert!(may("escalate", "clusterroles.rbac.authorization.k8s.io").await);
    Ok(())
}
