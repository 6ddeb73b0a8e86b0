//! The cluster with its node, and what an administrator does there.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kube::config::Kubeconfig;
use ocm_testing::node::{self, Node};
use ocm_testing::{ControlPlane, Seen, TempDir, eventually, write_kubeconfig};
use serde_json::Value;

/// The name under which the cluster manages itself.
pub(crate) const CLUSTER: &str = "cluster1";
pub(crate) const HUB_NAMESPACE: &str = "open-cluster-management-hub";
/// The webhook's service, and its Deployment.
pub(crate) const WEBHOOK: &str = "cluster-manager-addon-webhook";
pub(crate) const AGENT_NAMESPACE: &str = "open-cluster-management-agent";
const BOOTSTRAP_NAMESPACE: &str = "open-cluster-management";
const BOOTSTRAP_ACCOUNT: &str = "agent-registration-bootstrap";

/// A control plane, its node, and the programs under test.
pub(crate) struct World {
    pub(crate) plane: ControlPlane,
    pub(crate) node: Node,
    programs: PathBuf,
    folder: TempDir,
}

impl World {
    pub(crate) async fn start(programs: PathBuf) -> Result<Self> {
        let plane = node::control_plane(CLUSTER).start().await?;
        let node = Node::builder().start(&plane).await?;
        Ok(Self { plane, node, programs, folder: TempDir::new("walk")? })
    }

    /// Every archive of a folder, and busybox.
    pub(crate) async fn import(&self, images: &Path) -> Result<()> {
        let entries = std::fs::read_dir(images);
        let entries =
            entries.with_context(|| format!("failed to list {}: `make image` writes it", images.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "tar") {
                self.node.import(&path).await?;
            }
        }
        self.node.serve_busybox().await
    }

    /// What `kubectl get` finds.
    pub(crate) async fn get(&self, what: &[&str]) -> Result<Value> {
        let args = [&["get"], what, &["-o", "json"]].concat();
        Ok(serde_json::from_str(&self.plane.kubectl(&args).await?)?)
    }

    /// Waits until a Deployment has as many pods that are ready as it wants.
    pub(crate) async fn deployed(&self, name: &str, namespace: &str) -> Result<()> {
        self.condition(&["deployment", name, "-n", namespace], "Available").await
    }

    /// Waits until an object has a condition that is True.
    pub(crate) async fn condition(&self, what: &[&str], type_: &str) -> Result<()> {
        eventually(&format!("{} is {type_}", what.join(" ")), || async {
            let object = self.get(what).await?;
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let found = conditions.into_iter().find(|condition| condition["type"] == type_);
            anyhow::Ok(match found {
                Some(condition) if condition["status"] == "True" => Seen::Settled(()),
                other => Seen::NotYet(format!("{other:?}")),
            })
        })
        .await
    }

    /// The secret through which the agent's pod finds its hub: itself, under the address that pods reach.
    pub(crate) async fn write_bootstrap_secret(&self) -> Result<()> {
        let bootstrap = self.plane.kubeconfig_for_service_account(BOOTSTRAP_NAMESPACE, BOOTSTRAP_ACCOUNT).await?;
        let path = self.folder.path().join("bootstrap.kubeconfig");
        write_kubeconfig(&for_pods(bootstrap), &path)?;
        let file = format!("--from-file=kubeconfig={}", path.display());
        let create = ["create", "secret", "generic", "bootstrap-hub-kubeconfig", "-n", AGENT_NAMESPACE, &file];
        self.plane.kubectl(&create).await.map(drop)
    }

    /// The secret with what the webhook serves with, under the name of its service.
    pub(crate) async fn write_webhook_secret(&self) -> Result<()> {
        let (certificate, key) = self.plane.serving_certificate(&[&format!("{WEBHOOK}.{HUB_NAMESPACE}.svc")])?;
        let certificate = format!("--cert={}", self.write("webhook.crt", &certificate)?.display());
        let key = format!("--key={}", self.write("webhook.key", &key)?.display());
        let create = ["create", "secret", "tls", "addon-webhook-serving-cert", "-n", HUB_NAMESPACE, &certificate, &key];
        self.plane.kubectl(&create).await.map(drop)
    }

    /// The CRDs of both sides, as this cluster's administrator gets them.
    pub(crate) async fn crds(&self) -> Result<String> {
        let authority = self.write("ca.crt", self.plane.certificate_authority())?;
        self.run("ocm", &["crds", "--conversion-ca-file", &authority.to_string_lossy()]).await
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        Ok(path)
    }

    /// Runs one of our programs as the administrator, to its end; what it printed.
    pub(crate) async fn run(&self, program: &str, args: &[&str]) -> Result<String> {
        let path = self.programs.join(program);
        let mut command = tokio::process::Command::new(&path);
        let output = command.args(args).env("KUBECONFIG", self.plane.admin_kubeconfig()).output().await;
        let output = output.with_context(|| format!("failed to start {}: `make release` builds it", path.display()))?;
        if !output.status.success() {
            bail!("{program} {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Everything that tells why something did not come true.
    pub(crate) async fn evidence(&self) -> String {
        let mut found = String::new();
        for args in [
            &["get", "pods", "-A", "-o", "wide"][..],
            &["get", "events", "-A", "--sort-by=.lastTimestamp"],
            &["logs", "-n", HUB_NAMESPACE, "-l", "app=cluster-manager-hub", "--tail=50"],
            &["logs", "-n", HUB_NAMESPACE, "-l", "app=cluster-manager-addon-webhook", "--tail=50"],
            &["logs", "-n", AGENT_NAMESPACE, "-l", "app=klusterlet-agent", "--tail=50"],
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

/// The same login for a client in another network namespace, to whom 127.0.0.1 is itself.
fn for_pods(mut kubeconfig: Kubeconfig) -> Kubeconfig {
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = cluster.server.take().map(|server| server.replace("127.0.0.1", node::ADDRESS));
    }
    kubeconfig
}
