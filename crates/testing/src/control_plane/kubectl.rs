//! kubectl as the administrator.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail};

use super::ControlPlane;
use crate::spawn;
use crate::wait::{eventually, timeout};

impl ControlPlane {
    /// Runs kubectl as the administrator and returns what it prints.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.kubectl_with_input(args, "").await
    }

    /// Runs kubectl as the administrator with this input, as for `apply -f -`.
    pub async fn kubectl_with_input(&self, args: &[&str], input: &str) -> Result<String> {
        let command = self.kubectl_command(args)?;
        let input = input.to_owned();
        let shown = format!("kubectl {}", args.join(" "));
        let run = tokio::task::spawn_blocking(move || run(command, &input));
        let output = run.await?.with_context(|| format!("failed to run {shown}"))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!("{shown} on {} failed ({}): {}", self.name, output.status, stderr.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Applies YAML documents on the server side, taking over fields that others own, and waits
    /// until the custom resource definitions among them can be used.
    pub async fn apply_yaml(&self, yaml: &str) -> Result<()> {
        let manager = "--field-manager=ocm-testing";
        let apply = ["apply", "--server-side", "--force-conflicts", manager, "-f", "-"];
        self.kubectl_with_input(&apply, yaml).await?;
        if yaml.contains("kind: CustomResourceDefinition") {
            let limit = format!("--timeout={}s", timeout().as_secs());
            // kubectl fails on a definition that has no conditions yet.
            let wait = ["wait", "--for=condition=Established", "crd", "--all", &limit];
            eventually("all CRDs are served", || async { self.kubectl(&wait).await.map(|_| true) }).await?;
        }
        Ok(())
    }

    /// Installs CRDs, waits until they are served, and then other manifests; both are YAML.
    pub async fn install(&self, crds: &str, manifests: &str) -> Result<()> {
        self.apply_yaml(crds).await?;
        self.apply_yaml(manifests).await
    }

    fn kubectl_command(&self, args: &[&str]) -> Result<Command> {
        let mut command = spawn::bound_command(self.kubectl_path()?);
        command
            .args(args)
            .env("KUBECONFIG", self.admin_kubeconfig())
            // The user's own caches and preferences are not used.
            .env("HOME", self.dir())
            .env_remove("KUBECACHEDIR")
            .env_remove("KUBERC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(command)
    }

    /// The kubectl of the same version.
    pub fn kubectl_path(&self) -> Result<PathBuf> {
        self.assets.find("kubectl")
    }
}

fn run(command: Command, input: &str) -> Result<Output> {
    let mut child = spawn::spawn(command)?;
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        // Written while the output is read, since either pipe may fill up. If kubectl reads no input,
        // it closes the pipe, which is no error.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        Ok(child.wait_with_output()?)
    })
}
