//! Backups of a control plane's data.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, ensure};

use super::{ControlPlane, Part, flags};

/// A copy of everything that a control plane had stored at a moment. It is in the folder of the control plane.
#[derive(Debug)]
pub struct Backup {
    copy: PathBuf,
}

impl ControlPlane {
    /// Copies the data. etcd and kube-apiserver are stopped meanwhile, and all connections to them end.
    pub async fn back_up(&self) -> Result<Backup> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let copy = self.dir().join(format!("backup-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        self.stopped(|data| copy_folder(data, &copy)).await?;
        Ok(Backup { copy })
    }

    /// Replaces the data by that of a backup, which can be used again. What was written since is lost.
    pub async fn restore(&self, backup: &Backup) -> Result<()> {
        let restore = |data: &Path| {
            fs::remove_dir_all(data).with_context(|| format!("failed to remove {}", data.display()))?;
            copy_folder(&backup.copy, data)
        };
        self.stopped(restore).await
    }

    /// Does something to the data while nothing uses it.
    async fn stopped(&self, act: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        self.stop(Part::ApiServer)?;
        self.stop(Part::Etcd)?;
        act(&self.dir().join(flags::ETCD_DATA))?;
        self.start_part(Part::Etcd)?;
        self.start_part(Part::ApiServer)?;
        self.wait_ready().await
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let copied = Command::new("cp").arg("--recursive").arg(from).arg(to).status()?;
    ensure!(copied.success(), "failed to copy {} to {}", from.display(), to.display());
    Ok(())
}
