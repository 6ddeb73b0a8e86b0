//! Files that change atomically: each is a link through `..data`, which is a link to the folder of the current generation.
//!
//! ```text
//!   tls.crt ──> ..data/tls.crt      ..data ──> ..8a41c77e02d95b13
//!   tls.key ──> ..data/tls.key                     ├ tls.crt
//!                                                  └ tls.key
//! ```

use std::{
    collections::BTreeMap,
    fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink},
    path::{Path, PathBuf},
};

use k8s_openapi::ByteString;

/// The link to the current generation, named as by the kubelet.
const CURRENT: &str = "..data";
const PREFIX: &str = "..";
/// The suffix of a new link before it is renamed.
const NEW: &str = ".new";
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

type Files = BTreeMap<String, ByteString>;

/// The current generation; `None` in a folder of plain files.
pub(super) fn current(dir: &Path) -> Option<PathBuf> {
    fs::read_link(dir.join(CURRENT)).ok()
}

/// Writes these files. Others are kept.
pub(super) fn write(dir: &Path, data: &Files) -> io::Result<()> {
    make_folder(dir)?;
    if data.is_empty() {
        return Ok(());
    }
    let mut files = present(dir)?;
    let plain = plain(dir, data)?;
    if !plain.is_empty() {
        // Plain files are replaced by links to the same content, so nothing changes for a reader in between.
        files.extend(plain.clone());
        switch_to(dir, &files)?;
        plain.keys().try_for_each(|name| link(dir, name))?;
    }
    files.extend(data.clone());
    switch_to(dir, &files)?;
    data.keys().filter(|name| !is_link(dir, name)).try_for_each(|name| link(dir, name))?;
    remove_former(dir)
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// The files of the current generation.
fn present(dir: &Path) -> io::Result<Files> {
    let Some(generation) = current(dir) else { return Ok(Files::new()) };
    let mut files = Files::new();
    for entry in fs::read_dir(dir.join(generation))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(name, ByteString(fs::read(entry.path())?));
    }
    Ok(files)
}

/// The present content of those of `data` that are not links yet.
fn plain(dir: &Path, data: &Files) -> io::Result<Files> {
    let mut files = Files::new();
    for name in data.keys().filter(|name| !is_link(dir, name)) {
        match fs::read(dir.join(name)) {
            Ok(content) => files.insert(name.clone(), ByteString(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
    }
    Ok(files)
}

fn is_link(dir: &Path, name: &str) -> bool {
    fs::read_link(dir.join(name)).is_ok_and(|target| target == Path::new(CURRENT).join(name))
}

/// Creates a generation of these files, and makes it the current one with one rename.
fn switch_to(dir: &Path, files: &Files) -> io::Result<()> {
    let generation = format!("{PREFIX}{:016x}", rand::random::<u64>());
    make_folder(&dir.join(&generation))?;
    for (name, content) in files {
        let path = dir.join(&generation).join(name);
        let mut file = fs::File::options().create_new(true).write(true).mode(FILE_MODE).open(path)?;
        file.write_all(&content.0)?;
    }
    replace(dir, CURRENT, Path::new(&generation))
}

fn link(dir: &Path, name: &str) -> io::Result<()> {
    replace(dir, name, &Path::new(CURRENT).join(name))
}

/// Replaces a file or link by a link atomically.
fn replace(dir: &Path, name: &str, target: &Path) -> io::Result<()> {
    let new = dir.join(format!("{name}{NEW}"));
    let _ = fs::remove_file(&new);
    symlink(target, &new)?;
    fs::rename(&new, dir.join(name))
}

/// Removes old and incomplete generations.
fn remove_former(dir: &Path) -> io::Result<()> {
    let current = current(dir);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let is_generation = entry.file_type()?.is_dir() && entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_generation && Some(Path::new(&entry.file_name())) != current.as_deref() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
