//! Folders for control planes and logs, which are always removed.
//!
//! `$TMPDIR/ocm-testing-<uid>/<pid>/<name>-<n>`. Each process locks a file in its folder as long as
//! it runs, so the next one recognizes the folders of ended ones (killed processes, or statics, which are
//! never dropped) and removes them, also where process ids are others (containers).

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{Context as _, Result, anyhow, bail};

const LOCK: &str = "lock";
const KEEP: &str = "keep";

/// A folder that is removed when dropped, unless it is to be kept.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
    keep: AtomicBool,
}

impl TempDir {
    /// A new empty folder, readable by this user only.
    pub fn new(name: &str) -> Result<Self> {
        static COUNTER: AtomicU32 = AtomicU32::new(1);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = run_folder()?.join(format!("{name}-{number}"));
        create(&path)?;
        Ok(Self { path, keep: AtomicBool::new(false) })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the folder: later runs do not remove it either.
    pub fn keep(&self) -> Result<()> {
        self.keep.store(true, Ordering::Relaxed);
        fs::write(self.path.join(KEEP), "")
            .with_context(|| format!("failed to mark {} to be kept", self.path.display()))
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if !self.keep.load(Ordering::Relaxed) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The folder of this user, shared by all processes.
pub(crate) fn root() -> Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let root = std::env::temp_dir().join(format!("ocm-testing-{user}"));
    create(&root)?;
    let owner = fs::metadata(&root)?.uid();
    if owner != user {
        bail!("{} belongs to user {owner}; remove it or set TMPDIR", root.display());
    }
    Ok(root)
}

fn create(path: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("failed to create {}", path.display()))
}

fn run_folder() -> Result<&'static Path> {
    static RUN: OnceLock<std::result::Result<(PathBuf, File), String>> = OnceLock::new();
    RUN.get_or_init(|| new_run().map_err(|error| format!("{error:#}")))
        .as_ref()
        .map(|(path, _lock)| path.as_path())
        .map_err(|error| anyhow!("{error}"))
}

fn new_run() -> Result<(PathBuf, File)> {
    let root = root()?;
    // Held while sweeping and creating, so that no other process sweeps a folder before its lock is taken.
    let guard = lock_file(&root.join(".lock"))?;
    guard.lock().context("failed to lock the folder of all runs")?;
    remove_dead_runs(&root);
    let path = unused(&root);
    create(&path)?;
    let lock = lock_file(&path.join(LOCK))?;
    lock.lock().with_context(|| format!("failed to lock {}", path.display()))?;
    Ok((path, lock))
}

/// An earlier process of the same id may have left a folder that is kept.
fn unused(root: &Path) -> PathBuf {
    let pid = std::process::id();
    let names = (1..).map(|number| if number == 1 { format!("{pid}") } else { format!("{pid}.{number}") });
    let mut paths = names.map(|name| root.join(name));
    paths.find(|path| !path.exists()).unwrap_or_else(|| root.join("run"))
}

pub(crate) fn lock_file(path: &Path) -> Result<File> {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .with_context(|| format!("failed to open {}", path.display()))
}

/// Whether the lock was free; it is held as long as the file is open.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A folder that cannot be removed is left for the next run.
fn remove_dead_runs(root: &Path) {
    for run in folders_in(root) {
        let Ok(lock) = File::options().write(true).open(run.join(LOCK)) else {
            continue;
        };
        if matches!(try_lock(&lock), Ok(true)) {
            remove_run(&run);
        }
    }
}

fn remove_run(run: &Path) {
    let (kept, rest): (Vec<_>, Vec<_>) = folders_in(run).into_iter().partition(|path| path.join(KEEP).exists());
    for path in rest {
        let _ = fs::remove_dir_all(path);
    }
    if kept.is_empty() {
        let _ = fs::remove_dir_all(run);
    }
}

fn folders_in(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead_run(root: &Path, name: &str) -> PathBuf {
        let run = root.join(name);
        create(&run.join("hub-1")).unwrap();
        lock_file(&run.join(LOCK)).unwrap();
        run
    }

    #[test]
    fn the_folder_of_an_ended_process_is_removed() {
        let root = TempDir::new("sweep").unwrap();
        let run = dead_run(root.path(), "17");
        remove_dead_runs(root.path());
        assert!(!run.exists());
    }

    #[test]
    fn the_folder_of_a_running_process_is_kept() {
        let root = TempDir::new("sweep").unwrap();
        let run = dead_run(root.path(), "17");
        let lock = lock_file(&run.join(LOCK)).unwrap();
        lock.lock().unwrap();
        remove_dead_runs(root.path());
        assert!(run.join("hub-1").exists());
    }

    #[test]
    fn a_folder_that_is_kept_survives_later_runs() {
        let root = TempDir::new("sweep").unwrap();
        let run = dead_run(root.path(), "17");
        create(&run.join("hub-2")).unwrap();
        fs::write(run.join("hub-2").join(KEEP), "").unwrap();
        remove_dead_runs(root.path());
        assert!(run.join("hub-2").exists());
        assert!(!run.join("hub-1").exists());
    }

    #[test]
    fn a_folder_is_removed_when_it_is_dropped() {
        let dir = TempDir::new("dropped").unwrap();
        let path = dir.path().to_owned();
        fs::write(path.join("file"), "x").unwrap();
        drop(dir);
        assert!(!path.exists());
    }
}
