//! The folder with the agent's credentials for the hub: one file per key of its secret.
//!
//! The files are symbolic links into a folder with one generation of them, which never changes. A write creates the next
//! generation and switches to it with one rename ([`generation`]), as the kubelet does with a mounted secret. A reader that
//! reads several files uses [`HubDir::consistently`], so that they are of one generation. Plain files of an earlier version and
//! mounted secrets are read in the same way. Files are never removed.

mod generation;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use k8s_openapi::ByteString;

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

    /// The file's text without surrounding white space; `None` if it is empty.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let text = String::from_utf8(self.read(key)?).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The entries of `data` that differ from the files.
    pub(crate) fn outdated(&self, data: &BTreeMap<String, ByteString>) -> BTreeMap<String, ByteString> {
        let differs = |key: &str, value: &ByteString| self.read(key).is_none_or(|content| content != value.0);
        data.iter()
            .filter(|(key, value)| differs(key, value))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// Calls `read`, and repeats it if a writer has switched to another generation in the meantime.
    pub(crate) fn consistently<T>(&self, read: impl Fn() -> T) -> T {
        loop {
            let before = generation::current(&self.0);
            let outcome = read();
            if generation::current(&self.0) == before {
                return outcome;
            }
        }
    }

    /// Writes these files. Others are kept.
    pub(crate) fn write(&self, data: &BTreeMap<String, ByteString>) -> Result<(), FilesError> {
        generation::write(&self.0, data).map_err(|source| FilesError { path: self.0.clone(), source })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{collections::BTreeSet, os::unix::fs::PermissionsExt as _};

    use super::*;

    /// A folder that is removed at the end of the test.
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

    fn names(path: &Path) -> BTreeSet<String> {
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
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
        assert_eq!(mode(&dir.path().join(generation::current(dir.path()).unwrap())), 0o700);
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
        let files =
            ["..data", "a", "b", &generation::current(dir.path()).unwrap().to_string_lossy()].map(str::to_owned);
        assert_eq!(names(dir.path()), BTreeSet::from(files), "no former generation is left");
    }

    /// As the kubelet mounts a secret, read-only: the agent must not write where there is nothing to write.
    #[test]
    fn files_that_are_up_to_date_are_not_written() {
        let folder = folder("mounted");
        fs::create_dir(folder.path().join("..2026_01_01")).unwrap();
        fs::write(folder.path().join("..2026_01_01/tls.key"), "1").unwrap();
        std::os::unix::fs::symlink("..2026_01_01", folder.path().join("..data")).unwrap();
        std::os::unix::fs::symlink("..data/tls.key", folder.path().join("tls.key")).unwrap();
        let dir = HubDir::new(folder.path());
        dir.write(&dir.outdated(&data(&[("tls.key", "1")]))).unwrap();
        assert_eq!(generation::current(dir.path()).as_deref(), Some(Path::new("..2026_01_01")));
    }

    #[test]
    fn plain_files_become_links_and_what_is_not_written_stays_as_it_is() {
        let folder = folder("plain");
        for (name, content) in [("tls.crt", "old"), ("tls.key", "old"), ("note", "kept")] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let dir = HubDir::new(folder.path());
        dir.write(&data(&[("tls.crt", "new"), ("tls.key", "new")])).unwrap();
        assert_eq!([dir.text("tls.crt"), dir.text("tls.key")], [Some("new".to_owned()), Some("new".to_owned())]);
        assert!(fs::symlink_metadata(dir.file("note")).unwrap().is_file());
        dir.write(&data(&[("tls.key", "newer")])).unwrap();
        assert_eq!([dir.text("tls.crt"), dir.text("tls.key")], [Some("new".to_owned()), Some("newer".to_owned())]);
    }

    /// A writer and a reader at the same time, starting with plain files.
    #[test]
    fn a_reader_never_finds_files_of_two_generations() {
        const GENERATIONS: usize = 300;
        let folder = folder("reader");
        let dir = HubDir::new(folder.path());
        let pair =
            |generation: usize| data(&[("tls.crt", &generation.to_string()), ("tls.key", &generation.to_string())]);
        for (name, content) in pair(0) {
            fs::write(dir.file(&name), content.0).unwrap();
        }
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (1..=GENERATIONS).for_each(|generation| dir.write(&pair(generation)).unwrap()));
            while !writer.is_finished() {
                let (certificate, key) = dir.consistently(|| (dir.text("tls.crt"), dir.text("tls.key")));
                assert_eq!(certificate, key);
            }
        });
        assert_eq!(dir.text("tls.crt"), Some(GENERATIONS.to_string()));
    }

    #[test]
    fn a_write_that_was_broken_off_is_made_good_by_the_next_one() {
        let folder = folder("broken-off");
        let dir = HubDir::new(folder.path());
        dir.write(&data(&[("tls.crt", "1"), ("tls.key", "1")])).unwrap();
        // The first write over plain files stopped between two links, and another one within a generation.
        fs::remove_file(dir.file("tls.key")).unwrap();
        fs::write(dir.file("tls.key"), "1").unwrap();
        fs::create_dir(dir.file("..0123456789abcdef")).unwrap();
        std::os::unix::fs::symlink("..0123456789abcdef", dir.file("..data.new")).unwrap();
        dir.write(&data(&[("tls.crt", "2"), ("tls.key", "2")])).unwrap();
        assert_eq!([dir.text("tls.crt"), dir.text("tls.key")], [Some("2".to_owned()), Some("2".to_owned())]);
        assert_eq!(names(dir.path()).len(), 4, "{:?}", names(dir.path()));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = folder("blocked");
        fs::write(folder.path().join("file"), "").unwrap();
        let error = HubDir::new(&folder.path().join("file/hub")).write(&data(&[])).unwrap_err();
        assert!(error.to_string().contains("file/hub"), "{error}");
    }
}
