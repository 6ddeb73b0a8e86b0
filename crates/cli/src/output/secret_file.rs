//! Files that only their owner may read.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// Writes a file that only its owner may read. An existing file is replaced by a new one, so that its mode does not apply and
/// processes that have it open do not read the new content; a symbolic link is followed. A device or a pipe, such as
/// `/dev/stdout`, is written to directly.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let target = match fs::metadata(path) {
        Ok(found) if is_stream(&found) => return File::options().write(true).open(path)?.write_all(text.as_bytes()),
        Ok(_) => path.canonicalize()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => path.to_owned(),
        Err(error) => return Err(error),
    };
    replace(&target, text)
}

fn is_stream(found: &fs::Metadata) -> bool {
    let kind = found.file_type();
    kind.is_char_device() || kind.is_fifo() || kind.is_socket()
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let beside = beside(path)?;
    let written = File::options()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&beside, path));
    if written.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists) {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A name for a file in the same folder that no other process uses.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", std::process::id()));
    Ok(path.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use ocm_testing::TempDir;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o777
    }

    fn names(folder: &TempDir) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_file_can_be_read_by_its_owner_only() {
        let folder = TempDir::new("secret").unwrap();
        let path = folder.path().join("token");
        write(&path, "secret").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("secret", 0o600));
        assert_eq!(names(&folder), ["token"]);
    }

    #[test]
    fn a_file_that_everyone_may_read_is_replaced_and_processes_that_have_it_open_read_nothing_new() {
        let folder = TempDir::new("secret").unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let open = File::open(&path).unwrap();
        write(&path, "secret").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("secret", 0o600));
        assert_eq!(io::read_to_string(open).unwrap(), "old");
        assert_eq!(names(&folder), ["token"]);
    }

    #[test]
    fn a_link_stays_and_the_file_it_points_to_is_replaced() {
        let folder = TempDir::new("secret").unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        symlink(&file, &link).unwrap();
        write(&link, "secret").unwrap();
        assert!(link.is_symlink());
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("secret", 0o600));
    }

    #[test]
    fn a_link_to_nothing_and_a_folder_are_refused() {
        let folder = TempDir::new("secret").unwrap();
        let link = folder.path().join("link");
        symlink(folder.path().join("nowhere"), &link).unwrap();
        assert_eq!(write(&link, "secret").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(write(folder.path(), "secret").unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(names(&folder), ["link"]);
    }

    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        write(Path::new("/dev/null"), "secret").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}
