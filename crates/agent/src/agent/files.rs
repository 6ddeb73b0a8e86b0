//! The folder with the agent's credentials for the hub: one file per key of its secret.
//!
//! The folder is 0700, files are 0600 and replaced whole, only when they change, and never removed.

use std::{
    collections::BTreeMap,
    fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use k8s_openapi::ByteString;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The folder or a file in it could not be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {path}, where the agent keeps its hub credentials")]
pub struct FilesError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// The folder with the agent's credentials for the hub.
#[derive(Clone, Debug)]
pub(crate) struct HubDir(PathBuf);

impl HubDir {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, key: &str) -> PathBuf {
        self.0.join(key)
    }

    pub(crate) fn read(&self, key: &str) -> Option<Vec<u8>> {
        fs::read(self.file(key)).ok()
    }

    /// The file's text without space around it; `None` when that is nothing.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let text = String::from_utf8(self.read(key)?).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Those of `data` that the files do not say yet.
    pub(crate) fn outdated(&self, data: &BTreeMap<String, ByteString>) -> BTreeMap<String, ByteString> {
        let differs = |key: &str, value: &ByteString| self.read(key).is_none_or(|content| content != value.0);
        data.iter()
            .filter(|(key, value)| differs(key, value))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    pub(crate) fn write(&self, data: &BTreeMap<String, ByteString>) -> Result<(), FilesError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| FilesError { path, source }
        };
        fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&self.0).map_err(failed(&self.0))?;
        for (key, value) in data {
            let path = self.file(key);
            replace(&path, &value.0).map_err(failed(&path))?;
        }
        Ok(())
    }
}

/// Writes beside the file first, so that nobody ever reads half of it.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let beside = PathBuf::from(name);
    let _ = fs::remove_file(&beside);
    let mut file = fs::File::options().create_new(true).write(true).mode(FILE_MODE).open(&beside)?;
    file.write_all(content)?;
    drop(file);
    fs::rename(&beside, path)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A folder that goes with the test.
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        pub(crate) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    pub(crate) fn folder(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ocm-agent-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn data(entries: &[(&str, &str)]) -> BTreeMap<String, ByteString> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), ByteString((*value).into()))).collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_may_read_what_is_written() {
        let folder = folder("modes");
        let dir = HubDir::new(&folder.path().join("hub"));
        dir.write(&data(&[("tls.key", "secret")])).unwrap();
        assert_eq!((mode(dir.path()), mode(&dir.file("tls.key"))), (0o700, 0o600));
        assert_eq!(dir.text("tls.key").as_deref(), Some("secret"));
    }

    #[test]
    fn only_what_changed_is_written_and_nothing_is_removed() {
        let folder = folder("changes");
        let dir = HubDir::new(folder.path());
        dir.write(&data(&[("a", "1"), ("b", "1")])).unwrap();
        assert_eq!(dir.outdated(&data(&[("a", "1"), ("b", "2"), ("c", "3")])), data(&[("b", "2"), ("c", "3")]));
        dir.write(&data(&[("b", "2")])).unwrap();
        assert_eq!(dir.text("a").as_deref(), Some("1"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no file is left beside them");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = folder("blocked");
        fs::write(folder.path().join("file"), "").unwrap();
        let error = HubDir::new(&folder.path().join("file/hub")).write(&data(&[])).unwrap_err();
        assert!(error.to_string().contains("file/hub"), "{error}");
    }
}
