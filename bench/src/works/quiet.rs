//! An agent with many works while nothing happens: what it writes, and what that costs.
//!
//! The objects are those that are easily written again for nothing: the API server adds defaults to them, and a controller
//! writes the status of half of them.

use std::time::Duration;

use anyhow::Result;
use ocm_testing::{AuditLog, ControlPlane, Write};
use serde_json::{Value, json};

use super::{
    load::{Plan, Step, run},
    plan,
};
use crate::{
    AT_A_TIME,
    figures::{per_one, print},
    product::{CLUSTER, Product},
};

/// After the last work is available, controllers still write the status of their Deployments.
const SETTLE: Duration = Duration::from_secs(60);
const GROUP: &str = "bench.example.com";

/// Observes an agent with so many works for that long: at least six minutes for each time that all works are applied again.
pub(crate) async fn measure(works: usize, window: Duration) -> Result<()> {
    let mut product = Product::with_audit_logs().await?;
    product.managed.apply_yaml(&definition().to_string()).await?;
    product.join().await?;
    let hub = product.hub_client().await?;
    run(&hub, Step::Create, &Plan { manifest, ..plan("quiet", works, AT_A_TIME) }).await?;
    tokio::time::sleep(SETTLE).await;
    let (on_hub, on_cluster) = (Log::begin(&product.hub)?, Log::begin(&product.managed)?);
    let before = product.agent_cpu()?;
    tokio::time::sleep(window).await;
    let cpu = (product.agent_cpu()? - before).as_secs_f64();
    let figure = format!("agent with {works} works, {} s idle", window.as_secs());
    print(&format!("{figure}: CPU"), cpu, "s");
    print(&format!("{figure}: share of a core"), 100.0 * cpu / window.as_secs_f64(), "%");
    on_hub.print(&format!("{figure}: on the hub"), &format!("system:open-cluster-management:{CLUSTER}:"))?;
    on_cluster.print(&format!("{figure}: on the cluster"), "system:serviceaccount:open-cluster-management-agent:")?;
    product.print_memory(&format!("with {works} works of Deployments and custom resources"))
}

/// What has been written since.
struct Log {
    log: AuditLog,
    start: u64,
}

impl Log {
    fn begin(plane: &ControlPlane) -> Result<Self> {
        let log = AuditLog::of(plane)?;
        Ok(Self { start: log.position()?, log })
    }

    /// Counts the writes of users whose name begins with `user`, and names those that are not updates of leases.
    fn print(&self, figure: &str, user: &str) -> Result<()> {
        let mut writes = self.log.since(self.start)?;
        writes.retain(|write| write.user.starts_with(user));
        let (leases, others): (Vec<_>, Vec<_>) = writes.into_iter().partition(Write::is_lease_update);
        print(&format!("{figure}, lease updates"), per_one(leases.len()), "writes");
        print(&format!("{figure}, other writes"), per_one(others.len()), "writes");
        for other in others.iter().take(3) {
            print(
                &format!("{figure}, {} of {} {}, {}", other.verb, other.resource, other.name, other.code),
                1.0,
                "writes",
            );
        }
        Ok(())
    }
}

/// Deployments and custom resources take turns.
fn manifest(index: usize, name: &str, value: &str) -> Value {
    if index.is_multiple_of(2) { deployment(name, value) } else { custom_resource(name, value) }
}

fn deployment(name: &str, value: &str) -> Value {
    let labels = json!({"app": name});
    let container =
        json!({"name": "main", "image": format!("example.com/{value}:1"), "ports": [{"containerPort": 80}]});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        // No node could run a pod.
        "spec": {"replicas": 0, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
    })
}

fn custom_resource(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": {"name": name, "namespace": "default"},
        "spec": {"color": value},
    })
}

fn definition() -> Value {
    let size = json!({"type": "integer", "default": 3});
    let properties =
        json!({"color": {"type": "string"}, "size": size, "shape": {"type": "string", "default": "round"}});
    let spec = json!({"type": "object", "properties": properties});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}
