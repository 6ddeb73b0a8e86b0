//! Our programs, each under the account that `deploy/` gives it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::{AGENT, Account, BOOTSTRAP, HUB};
use crate::{ControlPlane, Port, Process, ProcessBuilder, TempDir};

/// Our programs, and a folder for their files and logs.
#[derive(Debug)]
pub struct Ours {
    programs: PathBuf,
    folder: TempDir,
}

impl Ours {
    /// The programs in a folder.
    pub fn new(programs: impl Into<PathBuf>) -> Result<Self> {
        Ok(Self { programs: programs.into(), folder: TempDir::new("scenario")? })
    }

    /// The programs in the folder of the current one.
    pub fn beside_this_program() -> Result<Self> {
        let own = std::env::current_exe().context("failed to find this program's own folder")?;
        Self::new(own.parent().context("this program has no folder")?)
    }

    /// The path of a program.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// A file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes one.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.file(name);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        folder.and_then(|()| fs::write(&path, text)).with_context(|| format!("failed to write {}", path.display()))?;
        Ok(path)
    }

    /// Keeps the folder, and returns its path.
    pub fn keep(&self) -> Result<&Path> {
        self.folder.keep()?;
        Ok(self.folder.path())
    }

    /// Prepares to start a program, called `name` in messages and by its log.
    pub fn process(&self, program: impl AsRef<Path>, name: &str) -> ProcessBuilder {
        // The scenario waits for lines of its log.
        Process::build(name, program.as_ref(), self.file(&format!("{name}.log"))).without_env("RUST_LOG")
    }

    /// Runs one of our programs to its end, as the administrator of a cluster, and returns its output.
    pub async fn run<S: AsRef<OsStr>>(&self, plane: &ControlPlane, program: &str, args: &[S]) -> Result<String> {
        let path = self.program(program);
        let mut command = tokio::process::Command::new(&path);
        let output = command.args(args).env("KUBECONFIG", plane.admin_kubeconfig()).output().await;
        let output = output.with_context(|| format!("failed to start {}", path.display()))?;
        if !output.status.success() {
            let args: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect();
            bail!("{program} {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The output of `ocm crds` for a hub whose webhook is a process at this port.
    pub async fn hub_crds(&self, hub: &ControlPlane, webhook: &Port) -> Result<String> {
        let url = format!("https://127.0.0.1:{}", webhook.number());
        self.crds(hub, &["--hub", "--conversion-url", &url]).await
    }

    /// The output of `ocm crds` for a managed cluster.
    pub async fn managed_crds(&self, managed: &ControlPlane) -> Result<String> {
        self.run(managed, "ocm", &["crds", "--managed"]).await
    }

    /// The output of `ocm crds` with these arguments, and with the cluster's authority as the webhook's.
    pub async fn crds(&self, plane: &ControlPlane, args: &[&str]) -> Result<String> {
        let authority = self.write("ca.crt", plane.certificate_authority())?;
        let authority = authority.to_string_lossy();
        self.run(plane, "ocm", &[&["crds"], args, &["--conversion-ca-file", &authority]].concat()).await
    }

    /// A folder with certificate and key of a webhook.
    pub fn webhook_certificates(&self, hub: &ControlPlane) -> Result<PathBuf> {
        let (certificate, key) = hub.serving_certificate(&["127.0.0.1"])?;
        self.write("webhook/tls.crt", &certificate)?;
        self.write("webhook/tls.key", &key)?;
        Ok(self.file("webhook"))
    }

    /// The webhook. The hub's API server calls it over loopback; in a cluster it is a service.
    pub async fn start_webhook(&self, hub: &ControlPlane, port: &Port) -> Result<Process> {
        let process = self.process(self.program("ocm"), "ocm-webhook");
        let process = process
            .args(["webhook", "--health-probe-port", "0", "--metrics-port", "0"])
            .args(["--port", &port.number().to_string(), "--certdir"])
            .arg(self.webhook_certificates(hub)?)
            .start()?;
        process.wait_for_log("serving webhooks").await?;
        Ok(process)
    }

    /// The hub, with more flags.
    pub async fn start_hub(&self, hub: &ControlPlane, flags: &[&str]) -> Result<Process> {
        let process = self.process(self.program("ocm"), "ocm-hub").arg("hub");
        let process = run_as(process, HUB, hub, &self.file("hub.kubeconfig")).await?.args(flags).start()?;
        process.wait_for_log("serving /healthz").await?;
        Ok(process)
    }

    /// The agent of a cluster, with a bootstrap token.
    pub async fn start_agent(&self, name: &str, hub: &ControlPlane, managed: &ControlPlane) -> Result<Process> {
        let process = self.process(self.program("ocm"), &format!("ocm-agent-{name}")).arg("agent");
        let process = run_as(process, AGENT, managed, &self.file(&format!("{name}.kubeconfig"))).await?;
        let bootstrap = self.file(&format!("{name}.bootstrap"));
        BOOTSTRAP.write_login(hub, &bootstrap).await?;
        process
            .args(["--spoke-cluster-name", name, "--bootstrap-kubeconfig"])
            .arg(bootstrap)
            .arg("--hub-kubeconfig-dir")
            .arg(self.file(&format!("{name}.hub")))
            .start()
    }
}

/// The flags of both hub and agent.
async fn run_as(
    process: ProcessBuilder,
    account: Account,
    plane: &ControlPlane,
    kubeconfig: &Path,
) -> Result<ProcessBuilder> {
    account.write_login(plane, kubeconfig).await?;
    let process = process.args(["--namespace", account.namespace, "--disable-leader-election"]);
    Ok(process.args(["--listen", "127.0.0.1:0", "--kubeconfig"]).arg(kubeconfig))
}
