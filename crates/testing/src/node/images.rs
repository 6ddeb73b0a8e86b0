//! Images on the node.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use ocm_image::{Image, Reference};

use super::config::PAUSE;
use super::{Node, requirements};
use crate::{TempDir, spawn};

/// The containerd namespace of the images of pods.
const NAMESPACE: &str = "k8s.io";

/// The program of the container that keeps the namespaces of a pod: it sleeps.
pub(super) fn pause() -> Result<Image> {
    // By this path, since busybox selects its function by the name of the program.
    Ok(Image::new(Reference::parse(PAUSE)?).executable("/busybox", busybox()?).entrypoint([
        "/busybox",
        "sleep",
        "2147483647",
    ]))
}

fn busybox() -> Result<Vec<u8>> {
    let path = requirements::find("busybox")?;
    fs::read(&path).with_context(|| format!("failed to read {}", path.display()))
}

impl Node {
    /// Imports the images of an archive of `make image` into containerd, and puts them into the registry, so that pods find
    /// them with any pull policy. Returns their names.
    pub async fn import(&self, archive: &Path) -> Result<Vec<Reference>> {
        let file = File::open(archive)
            .with_context(|| format!("failed to open {}: `make image` writes the images", archive.display()))?;
        let names = Reference::all_of_archive(file)
            .with_context(|| format!("{} is no archive of an image", archive.display()))?;
        let path = archive.to_string_lossy();
        self.ctr(&["images", "import", &path]).await.with_context(|| format!("failed to import {path}"))?;
        for name in &names {
            self.push(name).await?;
        }
        Ok(names)
    }

    /// Packs an image and [imports](Self::import) it.
    pub async fn import_image(&self, image: &Image) -> Result<()> {
        let folder = TempDir::new("image")?;
        let path = folder.path().join("image.tar");
        let file = File::create(&path).with_context(|| format!("failed to create {}", path.display()))?;
        image.write(&mut BufWriter::new(file))?;
        self.import(&path).await.map(drop)
    }

    /// Imports `busybox`, packed from that of the machine. The name has no tag, which means pull policy Always.
    pub async fn serve_busybox(&self) -> Result<()> {
        let program = requirements::find("busybox")?;
        let output = Command::new(&program).arg("--list").output();
        let output = output.with_context(|| format!("failed to run {}", program.display()))?;
        let image = Image::new(Reference::parse("busybox")?).executable("/bin/busybox", busybox()?).command(["sh"]);
        let applets = String::from_utf8(output.stdout)?;
        let links = applets.lines().filter(|applet| *applet != "busybox");
        let image = links.fold(image, |image, applet| image.link(&format!("/bin/{applet}"), "busybox"));
        self.import_image(&image).await
    }

    async fn push(&self, name: &Reference) -> Result<()> {
        let there = format!("127.0.0.1:{}/{}:{}", self.registry_port, name.repository(), name.tag());
        let push = ["images", "push", "--plain-http", &there, &name.to_string()];
        self.ctr(&push).await.with_context(|| format!("failed to put {name} into the registry of the node")).map(drop)
    }

    /// Runs containerd's own command.
    pub(super) async fn ctr(&self, args: &[&str]) -> Result<String> {
        let mut command = spawn::bound_command(requirements::find("ctr")?);
        command.args(["--namespace", NAMESPACE]).args(args);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let run = tokio::task::spawn_blocking(move || anyhow::Ok(spawn::spawn(command)?.wait_with_output()?));
        let output = run.await??;
        if !output.status.success() {
            bail!("ctr {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
