use std::process::ExitCode;

use clap::Parser;
use ocm_addon::command::{AgentArgs, ManagerArgs};
use ocm_addon::manifests;
use ocm_addon::{AddonError, AgentAddon, AgentAddonOptions, Installation, Manifest, PermissionBuilder, Registration};
use serde_json::json;

struct HelloAddon;

impl AgentAddon for HelloAddon {
    fn options(&self) -> AgentAddonOptions {
        // In the cluster's namespace on the hub, the agent may read ConfigMaps and nothing else.
        let rules = vec![PermissionBuilder::rule("", &["configmaps"], &["get", "list", "watch"])];
        let permissions = PermissionBuilder::new().bind_role("open-cluster-management:hello:agent", rules);
        AgentAddonOptions::new("hello").permissions(permissions)
    }

    async fn registrations(&self, _: &Installation<'_>) -> Result<Vec<Registration>, AddonError> {
        Ok(vec![Registration::kube_client("hello-agent")])
    }

    async fn manifests(&self, on: &Installation<'_>) -> Result<Vec<Manifest>, AddonError> {
        // On the managed cluster it may renew its lease, and needs no more.
        let mut objects = manifests::service_account(on, "hello-agent", Vec::new());
        let (metadata, labels) =
            (json!({"name": "hello-agent", "namespace": on.namespace}), json!({"app": "hello-agent"}));
        let args = [vec!["agent".to_owned()], on.agent_args("/hub/kubeconfig")].concat();
        let agent = json!({
            "name": "agent", "image": "example.com/hello:v1", "args": args,
            "volumeMounts": [{"name": "hub", "mountPath": "/hub"}],
        });
        let volumes = json!([{"name": "hub", "secret": {"secretName": on.hub_kubeconfig_secret()}}]);
        let pod = json!({"serviceAccountName": "hello-agent", "containers": [agent], "volumes": volumes});
        let template = json!({"metadata": {"labels": labels}, "spec": pod});
        let spec = json!({"selector": {"matchLabels": labels}, "template": template});
        objects.push(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}).into());
        Ok(objects)
    }
}

#[derive(Parser)]
enum Hello {
    Manager(ManagerArgs),
    Agent(AgentArgs),
}

fn main() -> ExitCode {
    match Hello::parse() {
        Hello::Manager(args) => args.run("hello", |manager| Ok(manager.add_agent(HelloAddon)?)),
        Hello::Agent(args) => args.run("hello", |agent| async move {
            agent.lease_updater().spawn(&agent.context);
            agent.until_the_end().await;
            Ok(())
        }),
    }
}
