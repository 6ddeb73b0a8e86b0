//! The control planes, and the processes that run against them.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use ocm_testing::{ControlPlane, Port, Process, TempDir};

const HUB_NAMESPACE: &str = "open-cluster-management-hub";
const HUB_ACCOUNT: &str = "hub-controller-sa";
const BOOTSTRAP_NAMESPACE: &str = "open-cluster-management";
const BOOTSTRAP_ACCOUNT: &str = "agent-registration-bootstrap";
const AGENT_NAMESPACE: &str = "open-cluster-management-agent";
const AGENT_ACCOUNT: &str = "klusterlet-work-sa";
const HUB_MANIFESTS: &str = include_str!("../../../../../deploy/hub.yaml");
const AGENT_MANIFESTS: &str = include_str!("../../../../../deploy/agent.yaml");

/// A hub and the clusters it manages.
pub(crate) struct Clusters {
    pub(crate) hub: ControlPlane,
    pub(crate) managed: Vec<(&'static str, ControlPlane)>,
    folder: TempDir,
    programs: PathBuf,
    webhook: Port,
}

impl Clusters {
    pub(crate) async fn start() -> Result<Self> {
        let plane = |name: &'static str| ControlPlane::builder().name(name).start();
        let (hub, first, second) = tokio::try_join!(plane("hub"), plane("cluster1"), plane("cluster2"))?;
        let own = std::env::current_exe().context("failed to find this program's own folder")?;
        let programs = own.parent().context("this program has no folder")?.to_owned();
        let managed = vec![("cluster1", first), ("cluster2", second)];
        Ok(Self { hub, managed, folder: TempDir::new("demo")?, programs, webhook: Port::free()? })
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The CRDs as `ocm crds` prints them, and the manifests of `deploy/`.
    pub(crate) async fn install(&self) -> Result<()> {
        let (url, authority) = (format!("https://127.0.0.1:{}", self.webhook.number()), self.file("ca.crt"));
        std::fs::write(&authority, self.hub.certificate_authority())?;
        let authority = authority.to_string_lossy();
        let crds = ["crds", "--hub", "--conversion-url", &url, "--conversion-ca-file", &authority];
        self.hub.install(&self.run("ocm", &crds).await?, HUB_MANIFESTS).await?;
        let managed = self.run("ocm", &["crds", "--managed"]).await?;
        for (_, plane) in &self.managed {
            plane.install(&managed, AGENT_MANIFESTS).await?;
        }
        Ok(())
    }

    /// Runs one of our programs to its end; what it printed.
    pub(crate) async fn run(&self, program: &str, args: &[&str]) -> Result<String> {
        let path = self.program(program);
        let output = tokio::process::Command::new(&path).args(args).output().await;
        let output = output.with_context(|| format!("failed to start {}", path.display()))?;
        if !output.status.success() {
            let cause = String::from_utf8_lossy(&output.stderr);
            anyhow::bail!("{program} {} failed: {}", args.join(" "), cause.trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The hub's API server asks it over loopback, where in a cluster it would be a service.
    pub(crate) async fn start_webhook(&self) -> Result<Process> {
        let certificates = self.file("webhook");
        std::fs::create_dir(&certificates)?;
        let (certificate, key) = self.hub.serving_certificate(&["127.0.0.1"])?;
        std::fs::write(certificates.join("tls.crt"), certificate)?;
        std::fs::write(certificates.join("tls.key"), key)?;
        let process = Process::build("ocm webhook", self.program("ocm"), self.file("webhook.log"))
            .args(["webhook", "--health-probe-port", "0", "--metrics-port", "0"])
            .args(["--port", &self.webhook.number().to_string(), "--certdir"])
            .arg(certificates)
            .start()?;
        process.wait_for_log("serving webhooks").await?;
        Ok(process)
    }

    pub(crate) async fn start_hub(&self) -> Result<Process> {
        let kubeconfig = self.file("hub.kubeconfig");
        self.hub.write_login(HUB_NAMESPACE, HUB_ACCOUNT, &kubeconfig).await?;
        let process = Process::build("ocm hub", self.program("ocm"), self.file("hub.log"))
            .arg("hub")
            .args(["--namespace", HUB_NAMESPACE, "--disable-leader-election", "--listen", "127.0.0.1:0"])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .start()?;
        process.wait_for_log("serving /healthz").await?;
        Ok(process)
    }

    pub(crate) async fn start_agent(&self, name: &str, plane: &ControlPlane) -> Result<Process> {
        let (bootstrap, own) = (self.file(&format!("{name}.bootstrap")), self.file(&format!("{name}.kubeconfig")));
        self.hub.write_login(BOOTSTRAP_NAMESPACE, BOOTSTRAP_ACCOUNT, &bootstrap).await?;
        plane.write_login(AGENT_NAMESPACE, AGENT_ACCOUNT, &own).await?;
        Process::build(&format!("agent of {name}"), self.program("ocm"), self.file(&format!("{name}.log")))
            .arg("agent")
            .args(["--spoke-cluster-name", name, "--namespace", AGENT_NAMESPACE, "--disable-leader-election"])
            .args(["--listen", "127.0.0.1:0"])
            .arg("--bootstrap-kubeconfig")
            .arg(bootstrap)
            .arg("--kubeconfig")
            .arg(own)
            .arg("--hub-kubeconfig-dir")
            .arg(self.file(&format!("{name}.hub")))
            .start()
    }
}
