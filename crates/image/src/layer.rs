//! The one layer of an image, and archives that come out the same every time.

use std::collections::BTreeSet;
use std::io::{self, Write};

use tar::{Builder, EntryType, Header};

use crate::Entry;

/// A tar archive of the files, with the folders they are in.
pub(crate) fn layer(entries: &[(String, Entry)]) -> io::Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    for folder in folders(entries) {
        archive.append_data(&mut header(EntryType::Directory, 0o755), format!("{folder}/"), io::empty())?;
    }
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by_key(|(path, _)| path);
    for (path, entry) in sorted {
        match entry {
            Entry::File { bytes, executable } => {
                append_file(&mut archive, path, if *executable { 0o755 } else { 0o644 }, bytes)?;
            }
            Entry::Link { target } => archive.append_link(&mut header(EntryType::Symlink, 0o777), path, target)?,
        }
    }
    archive.into_inner()
}

/// Adds a file of which nothing but name, mode and content is told.
pub(crate) fn append_file(archive: &mut Builder<impl Write>, path: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut header = header(EntryType::Regular, mode);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, path, bytes)
}

/// Belongs to root, and is from the beginning of time.
fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(0);
    header
}

/// Every folder that a path goes through, outer ones first.
fn folders(entries: &[(String, Entry)]) -> BTreeSet<&str> {
    let of = |path: &'_ str| path.match_indices('/').map(|(end, _)| end).collect::<Vec<_>>();
    entries.iter().flat_map(|(path, _)| of(path).into_iter().map(move |end| &path[..end])).collect()
}
