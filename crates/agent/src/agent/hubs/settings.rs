//! The settings of an agent with several hubs.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use ocm_api::limits;
use ocm_runtime::Backoff;

use crate::agent::OptionError;

/// The hubs that an agent selects from.
#[derive(Clone, Debug)]
pub struct Hubs {
    /// The bootstrap kubeconfig of each, the preferred one first.
    pub bootstrap_kubeconfigs: Vec<PathBuf>,
    /// After how long without contact the agent selects again.
    pub connection_timeout: Duration,
    /// How often the contact is checked.
    pub check_period: Duration,
    /// How long it is not checked after the agent has connected.
    pub check_grace: Duration,
    /// The delays between selections while no hub can be used.
    pub retry: Backoff,
}

impl Default for Hubs {
    fn default() -> Self {
        Self {
            bootstrap_kubeconfigs: Vec::new(),
            connection_timeout: limits::HUB_CONNECTION_TIMEOUT,
            check_period: limits::HUB_CONNECTION_CHECK_PERIOD,
            check_grace: limits::HUB_CONNECTION_CHECK_GRACE,
            retry: Backoff::new(Duration::from_secs(1), Duration::from_secs(60)),
        }
    }
}

impl Hubs {
    pub(crate) fn validate(&self) -> Result<(), OptionError> {
        if self.bootstrap_kubeconfigs.len() < 2 {
            return Err(OptionError::TooFewHubs(self.bootstrap_kubeconfigs.len()));
        }
        if self.connection_timeout.is_zero() {
            return Err(OptionError::HubTimeout);
        }
        match self.repeated_file() {
            Some(path) => Err(OptionError::SameHubFile(path.into())),
            None => Ok(()),
        }
    }

    /// A file that is in the list twice, also under two names.
    fn repeated_file(&self) -> Option<&Path> {
        let file = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let files: Vec<_> = self.bootstrap_kubeconfigs.iter().map(file).collect();
        let repeated = (1..files.len()).find(|index| files[..*index].contains(&files[*index]))?;
        self.bootstrap_kubeconfigs.get(repeated).map(PathBuf::as_path)
    }

    /// The secrets with the bootstrap kubeconfigs: the klusterlet's operator mounts each in a folder of its name.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = String> {
        let folders = self.bootstrap_kubeconfigs.iter().filter_map(|path| path.parent()?.file_name());
        folders.map(|name| name.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::files::tests::folder;

    fn hubs(files: &[&str]) -> Hubs {
        Hubs { bootstrap_kubeconfigs: files.iter().map(PathBuf::from).collect(), ..Hubs::default() }
    }

    #[test]
    fn a_list_that_cannot_be_meant_is_refused_with_what_to_do() {
        for (files, said) in [
            (&[][..], "0 files"),
            (&["/a/kubeconfig"], "1 file,"),
            (&["/a/kubeconfig", "/b/kubeconfig", "/a/kubeconfig"], "/a/kubeconfig twice"),
        ] {
            let error = hubs(files).validate().unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("--bootstrap-kubeconfigs"), "{error}");
        }
        assert_eq!(hubs(&["/a/kubeconfig", "/b/kubeconfig"]).validate(), Ok(()));
        let no_time = Hubs { connection_timeout: Duration::ZERO, ..hubs(&["/a", "/b"]) };
        assert_eq!(no_time.validate(), Err(OptionError::HubTimeout));
    }

    #[test]
    fn a_file_is_the_same_under_another_name() {
        let folder = folder("same-hub");
        let (file, link) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let hubs = Hubs { bootstrap_kubeconfigs: vec![file, link.clone()], ..Hubs::default() };
        assert_eq!(hubs.validate(), Err(OptionError::SameHubFile(link)));
    }

    #[test]
    fn the_secrets_are_those_that_the_operator_mounts() {
        let hubs = hubs(&["/spoke/hub1-bootstrap/kubeconfig", "/spoke/hub2-bootstrap/kubeconfig", "kubeconfig"]);
        assert_eq!(hubs.secrets().collect::<Vec<_>>(), ["hub1-bootstrap", "hub2-bootstrap"]);
    }
}
