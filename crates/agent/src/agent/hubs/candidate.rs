//! The hubs of the list, as their bootstrap kubeconfigs describe them.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use http::Uri;
use ocm_runtime::client::{is_same_server, without_password};

use super::Unusable;
use crate::agent::hub_kubeconfig::Connection;

/// One hub of the list.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) connection: Result<Connection, Unusable>,
}

/// The server and the file, for messages.
impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.server().and_then(|server| server.parse().ok()) {
            Some(server) => write!(f, "{} ({path})", without_password(&server)),
            None => path.fmt(f),
        }
    }
}

impl Candidate {
    fn server(&self) -> Option<&str> {
        self.connection.as_ref().ok().map(|connection| &*connection.server)
    }
}

/// Reads the files. Of several for the same server, only the first can be used.
pub(super) fn read(paths: &[PathBuf]) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for path in paths {
        let connection = Connection::read(path).map_err(Unusable::from).and_then(|connection| {
            match file_for(&candidates, &connection.server) {
                Some(first) => Err(Unusable::SameServer { server: connection.server, first: first.into() }),
                None => Ok(connection),
            }
        });
        candidates.push(Candidate { path: path.clone(), connection });
    }
    candidates
}

fn file_for<'a>(candidates: &'a [Candidate], server: &str) -> Option<&'a Path> {
    let is_same = |known: &str| are_same(known, server);
    candidates.iter().find(|candidate| candidate.server().is_some_and(is_same)).map(|found| &*found.path)
}

/// Whether two addresses are of the same server, however they are written.
fn are_same(one: &str, other: &str) -> bool {
    let uris: Option<(Uri, Uri)> = one.parse().ok().zip(other.parse().ok());
    uris.is_some_and(|(one, other)| is_same_server(&one, &other))
}

/// The order in which they are checked: the present hub first, and then as in the list.
pub(super) fn in_order(mut candidates: Vec<Candidate>, present: Option<&str>) -> Vec<Candidate> {
    let is_present = |server: &str| present.is_some_and(|present| are_same(server, present));
    // The sort is stable.
    candidates.sort_by_key(|candidate| !candidate.server().is_some_and(is_present));
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::files::tests::{Folder, folder};

    fn kubeconfigs(name: &str, servers: &[&str]) -> (Folder, Vec<PathBuf>) {
        let folder = folder(name);
        let write = |(index, server): (usize, &&str)| {
            let path = folder.path().join(index.to_string());
            let text = format!(
                "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c}}}}], \
                 clusters: [{{name: c, cluster: {{server: '{server}'}}}}]}}"
            );
            std::fs::write(&path, text).unwrap();
            path
        };
        let paths = servers.iter().enumerate().map(write).collect();
        (folder, paths)
    }

    fn servers(candidates: &[Candidate]) -> Vec<&str> {
        candidates.iter().map(|candidate| candidate.server().unwrap_or("-")).collect()
    }

    #[test]
    fn the_present_hub_is_checked_first_and_the_others_in_the_order_of_the_list() {
        let (_folder, paths) = kubeconfigs("order", &["https://a", "https://b", "https://c"]);
        let order = |present| servers(&in_order(read(&paths), present)).join(" ");
        assert_eq!(order(Some("https://c")), "https://c https://a https://b");
        assert_eq!(order(Some("https://a")), "https://a https://b https://c");
        assert_eq!(order(Some("https://C:443/")), "https://c https://a https://b", "however its address is written");
        for unknown in [None, Some("https://d")] {
            assert_eq!(order(unknown), "https://a https://b https://c");
        }
    }

    #[test]
    fn the_same_server_is_used_once_however_its_address_is_written() {
        let (_folder, paths) = kubeconfigs("same", &["https://hub:443", "https://b", "https://HUB/"]);
        let candidates = read(&paths);
        assert_eq!(servers(&candidates), ["https://hub:443", "https://b", "-"]);
        let cause = candidates.into_iter().nth(2).unwrap().connection.unwrap_err().to_string();
        assert!(cause.contains("https://HUB/") && cause.contains(&*paths[0].to_string_lossy()), "{cause}");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_and_does_not_hide_the_others() {
        let (folder, mut paths) = kubeconfigs("unreadable", &["https://a"]);
        paths.insert(0, folder.path().join("missing"));
        let candidates = read(&paths);
        assert_eq!(servers(&candidates), ["-", "https://a"]);
        assert_eq!(candidates[0].to_string(), paths[0].to_string_lossy());
        let cause = candidates[0].connection.as_ref().unwrap_err();
        assert!(ocm_runtime::error::chain(cause).contains("missing: No such file"), "{cause}");
    }

    #[test]
    fn a_password_in_an_address_is_not_shown() {
        let (_folder, paths) = kubeconfigs("password", &["https://user:secret@hub:6443"]);
        let shown = read(&paths).remove(0).to_string();
        assert!(shown.starts_with("https://hub:6443/ (") && !shown.contains("secret"), "{shown}");
    }
}
