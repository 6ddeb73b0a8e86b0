//! What the manager on the hub deploys to a cluster, and what the agent there may do on the hub.

use ocm_addon::{
    AddonError, AgentAddon, AgentAddonOptions, Installation, Manifest, PermissionBuilder, Registration, manifests,
};
use serde_json::{Value, json};

/// The add-on's name.
pub(crate) const NAME: &str = "helloworld";
/// The agent's name: of its Deployment, and in its certificate.
const AGENT: &str = "helloworld-agent";
/// The agent's service account on the managed cluster, and the Role with its rights there.
const ACCOUNT: &str = "helloworld-agent-sa";
/// Role of the agent in its cluster's namespace on the hub.
const HUB_ROLE: &str = "open-cluster-management:helloworld:agent";

/// Names the agent's image.
const IMAGE_VARIABLE: &str = "EXAMPLE_IMAGE_NAME";
/// OCM's own examples take the same arguments.
const DEFAULT_IMAGE: &str = "quay.io/open-cluster-management/addon-examples:latest";

/// The add-on.
#[derive(Clone, Debug)]
pub(crate) struct Helloworld {
    image: String,
}

impl Helloworld {
    /// With the image that the environment names.
    pub(crate) fn from_env() -> Self {
        Self { image: std::env::var(IMAGE_VARIABLE).unwrap_or_else(|_| DEFAULT_IMAGE.to_owned()) }
    }
}

impl AgentAddon for Helloworld {
    fn options(&self) -> AgentAddonOptions {
        let read = ["get", "list", "watch"];
        let rules = vec![
            PermissionBuilder::rule("", &["configmaps"], &read),
            PermissionBuilder::rule("addon.open-cluster-management.io", &["managedclusteraddons"], &read),
        ];
        let permissions = PermissionBuilder::new().bind_role(HUB_ROLE, rules);
        AgentAddonOptions::new(NAME).permissions(permissions)
    }

    async fn registrations(&self, _: &Installation<'_>) -> Result<Vec<Registration>, AddonError> {
        Ok(vec![Registration::kube_client(AGENT)])
    }

    async fn manifests(&self, on: &Installation<'_>) -> Result<Vec<Manifest>, AddonError> {
        // In its own namespace the agent keeps its copies and renews its lease; it may do nothing else.
        let verbs = ["get", "list", "watch", "create", "patch", "delete"];
        let rules = vec![PermissionBuilder::rule("", &["configmaps"], &verbs)];
        let mut objects = vec![deployment(&self.image, on).into()];
        objects.extend(manifests::service_account(on, ACCOUNT, rules));
        Ok(objects)
    }
}

fn deployment(image: &str, on: &Installation<'_>) -> Value {
    let labels = json!({"app": AGENT});
    let args = [vec!["agent".to_owned()], on.agent_args("/var/run/hub/kubeconfig")].concat();
    let container = json!({
        "name": AGENT,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        // OCM's has it all in args; this works with images that have an entry point as well.
        "command": ["/helloworld"],
        "args": args,
        "volumeMounts": [{"name": "hub-config", "mountPath": "/var/run/hub"}],
    });
    let pod = json!({
        "serviceAccountName": ACCOUNT,
        "containers": [container],
        "volumes": [{"name": "hub-config", "secret": {"secretName": on.hub_kubeconfig_secret()}}],
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": AGENT, "namespace": on.namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    })
}

#[cfg(test)]
mod tests {
    use ocm_addon::api::{addon::v1beta1::ManagedClusterAddOn, cluster::v1::ManagedCluster};

    use super::*;

    #[test]
    fn the_agent_gets_its_cluster_and_its_namespace_and_mounts_its_credentials() {
        let cluster = ManagedCluster::new("cluster1", Default::default());
        let addon = ManagedClusterAddOn::new("cluster1", NAME, Default::default());
        let on = Installation::new(&cluster, &addon, "default");
        let pod = deployment("hello:v1", &on)["spec"]["template"]["spec"].clone();
        let container = &pod["containers"][0];
        assert_eq!(container["image"], "hello:v1");
        let args = [
            "agent",
            "--hub-kubeconfig=/var/run/hub/kubeconfig",
            "--cluster-name=cluster1",
            "--addon-namespace=default",
        ];
        assert_eq!(container["command"], json!(["/helloworld"]));
        assert_eq!(container["args"], json!(args));
        assert_eq!(pod["volumes"][0]["secret"]["secretName"], "helloworld-hub-kubeconfig");
        assert_eq!(pod["serviceAccountName"], "helloworld-agent-sa");
    }
}
