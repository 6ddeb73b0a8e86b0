//! The cluster with its node, and what an administrator does there.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kube::config::Kubeconfig;
use ocm_image::Reference;
use ocm_testing::node::{self, Node};
use ocm_testing::scenario::{self, AGENT, BOOTSTRAP, HUB, Ours};
use ocm_testing::{ControlPlane, write_kubeconfig};
use serde_json::Value;

/// The name under which the cluster manages itself.
pub(crate) const CLUSTER: &str = "cluster1";
/// The Deployment of the webhooks.
pub(crate) const WEBHOOK: &str = "cluster-manager-webhook";
/// Their services.
const WEBHOOK_SERVICES: [&str; 3] =
    ["cluster-manager-registration-webhook", "cluster-manager-work-webhook", "cluster-manager-addon-webhook"];

/// A control plane, its node, and the programs under test.
pub(crate) struct World {
    pub(crate) plane: ControlPlane,
    pub(crate) node: Node,
    pub(crate) ours: Ours,
}

impl World {
    pub(crate) async fn start(programs: PathBuf) -> Result<Self> {
        let plane = node::control_plane(CLUSTER).start().await?;
        let node = Node::builder().start(&plane).await?;
        Ok(Self { plane, node, ours: Ours::new(programs)? })
    }

    /// Imports every archive of a folder, and busybox. Returns the names of the images in the folder.
    pub(crate) async fn import(&self, images: &Path) -> Result<Vec<Reference>> {
        let entries = std::fs::read_dir(images);
        let entries =
            entries.with_context(|| format!("failed to list {}: `make image` writes it", images.display()))?;
        let mut names = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "tar") {
                names.extend(self.node.import(&path).await?);
            }
        }
        self.node.serve_busybox().await?;
        Ok(names)
    }

    /// The output of `kubectl get`.
    pub(crate) async fn get(&self, what: &[&str]) -> Result<Value> {
        scenario::get(&self.plane, what).await
    }

    /// Waits until all pods of a Deployment are ready.
    pub(crate) async fn deployed(&self, name: &str, namespace: &str) -> Result<()> {
        self.condition(&["deployment", name, "-n", namespace], "Available").await
    }

    /// Waits until an object has a condition that is True.
    pub(crate) async fn condition(&self, what: &[&str], type_: &str) -> Result<()> {
        scenario::condition(&self.plane, what, type_).await
    }

    /// The secret with the bootstrap kubeconfig of the agent's pod: its hub is this cluster, by the address for pods.
    pub(crate) async fn write_bootstrap_secret(&self) -> Result<()> {
        let bootstrap = self.plane.kubeconfig_for_service_account(BOOTSTRAP.namespace, BOOTSTRAP.name).await?;
        let path = self.ours.file("bootstrap.kubeconfig");
        write_kubeconfig(&for_pods(bootstrap), &path)?;
        let file = format!("--from-file=kubeconfig={}", path.display());
        let create = ["create", "secret", "generic", "bootstrap-hub-kubeconfig", "-n", AGENT.namespace, &file];
        self.plane.kubectl(&create).await.map(drop)
    }

    /// The secret with the serving certificate of the webhooks, for the names of their services.
    pub(crate) async fn write_webhook_secret(&self) -> Result<()> {
        let names = WEBHOOK_SERVICES.map(|service| format!("{service}.{}.svc", HUB.namespace));
        let (certificate, key) = self.plane.serving_certificate(&names.each_ref().map(String::as_str))?;
        let certificate = format!("--cert={}", self.ours.write("webhook.crt", &certificate)?.display());
        let key = format!("--key={}", self.ours.write("webhook.key", &key)?.display());
        let create = ["create", "secret", "tls", "webhook-serving-cert", "-n", HUB.namespace, &certificate, &key];
        self.plane.kubectl(&create).await.map(drop)
    }

    /// Pods, events and logs, to explain a failure.
    pub(crate) async fn evidence(&self) -> String {
        let mut found = String::new();
        for args in [
            &["get", "pods", "-A", "-o", "wide"][..],
            &["get", "events", "-A", "--sort-by=.lastTimestamp"],
            &["logs", "-n", HUB.namespace, "-l", "app=cluster-manager-hub", "--tail=50"],
            &["logs", "-n", HUB.namespace, "-l", "app=cluster-manager-webhook", "--tail=50"],
            &["logs", "-n", AGENT.namespace, "-l", "app=klusterlet-agent", "--tail=50"],
            &["logs", "-n", "open-cluster-management", "-l", "app=helloworld-manager", "--tail=50"],
            &["logs", "-n", "default", "-l", "app=helloworld-agent", "--tail=50"],
            &["get", "managedclusteraddons", "-A", "-o", "yaml"],
            &["get", "manifestworks,csr", "-A"],
        ] {
            let output = self.plane.kubectl(args).await.unwrap_or_else(|error| format!("{error:#}"));
            found += &format!("$ kubectl {}\n{output}\n", args.join(" "));
        }
        found + &self.node.last_words()
    }
}

/// The same kubeconfig for a client in another network namespace, where 127.0.0.1 is another host.
fn for_pods(mut kubeconfig: Kubeconfig) -> Kubeconfig {
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = cluster.server.take().map(|server| server.replace("127.0.0.1", node::ADDRESS));
    }
    kubeconfig
}
