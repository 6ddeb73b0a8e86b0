//! Which kubeconfig a command uses, with kubectl's rules.
//!
//! `--kubeconfig` names one file, which must exist. Otherwise the files of `$KUBECONFIG` are merged, and those that do not
//! exist are skipped; without `$KUBECONFIG` it is `~/.kube/config`. If none of these files exists, a process in a pod uses
//! its service account.

use std::{
    env, fmt, io,
    path::{Path, PathBuf},
};

use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};
use ocm_runtime::kubeconfig::{self, KubeconfigError};

use crate::{
    environment::{Environment, ServiceAccount},
    failure::{Failure, root_cause},
};

const CHOOSE: &str = "name the kubeconfig of the hub with --kubeconfig or in $KUBECONFIG";

/// A kubeconfig, and where it was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) kubeconfig: Kubeconfig,
    pub(crate) origin: Origin,
}

/// Where a kubeconfig was found, for messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    Files(Vec<PathBuf>),
    ServiceAccount,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) => {
                let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
                write!(f, "kubeconfig {}", files.join(":"))
            }
            Self::ServiceAccount => f.write_str("the service account of this pod"),
        }
    }
}

/// Finds the kubeconfig to use, given the flags for it.
pub(crate) fn find(file: Option<&Path>, context: Option<&str>, environment: &Environment) -> Result<Found, Failure> {
    if let Some(file) = file {
        let kubeconfig = kubeconfig::read(file).map_err(|error| unreadable(&error))?;
        return Ok(Found { kubeconfig, origin: Origin::Files(vec![file.to_owned()]) });
    }
    let candidates = candidates(environment)?;
    if let Some(found) = merged(&candidates)? {
        return Ok(found);
    }
    // A service account has no contexts to choose from.
    match &environment.service_account {
        Some(account) if context.is_none() => Ok(of_service_account(account)),
        _ => Err(none_exists(&candidates)),
    }
}

/// The files to read if no flag names one.
fn candidates(environment: &Environment) -> Result<Vec<PathBuf>, Failure> {
    if let Some(list) = environment.kubeconfig.as_ref().filter(|list| !list.is_empty()) {
        return Ok(env::split_paths(list).filter(|path| !path.as_os_str().is_empty()).collect());
    }
    match (&environment.home, &environment.service_account) {
        (Some(home), _) => Ok(vec![home.join(".kube/config")]),
        (None, Some(_)) => Ok(Vec::new()),
        (None, None) => Err(Failure::new("no kubeconfig: $KUBECONFIG and the home directory are not set").hint(CHOOSE)),
    }
}

/// The files that exist, merged: the first one that sets a value wins. `None` if none exists.
fn merged(files: &[PathBuf]) -> Result<Option<Found>, Failure> {
    let mut merged: Option<Kubeconfig> = None;
    let mut read = Vec::new();
    for file in files {
        let next = match kubeconfig::read(file) {
            Err(KubeconfigError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => continue,
            outcome => outcome.map_err(|error| unreadable(&error))?,
        };
        read.push(file.clone());
        merged = Some(match merged {
            None => next,
            Some(first) => first.merge(next).map_err(|error| unmergeable(file, &error))?,
        });
    }
    Ok(merged.map(|kubeconfig| Found { kubeconfig, origin: Origin::Files(read) }))
}

fn of_service_account(account: &ServiceAccount) -> Found {
    const NAME: &str = "service-account";
    let file = |name: &str| Some(account.folder.join(name).display().to_string());
    let namespace = std::fs::read_to_string(account.folder.join("namespace")).ok();
    let cluster =
        Cluster { server: Some(account.server.clone()), certificate_authority: file("ca.crt"), ..Cluster::default() };
    let user = AuthInfo { token_file: file("token"), ..AuthInfo::default() };
    let context = Context {
        cluster: NAME.to_owned(),
        user: Some(NAME.to_owned()),
        namespace: namespace.map(|name| name.trim().to_owned()),
        ..Context::default()
    };
    let kubeconfig = Kubeconfig {
        clusters: vec![NamedCluster { name: NAME.to_owned(), cluster: Some(cluster), ..NamedCluster::default() }],
        auth_infos: vec![NamedAuthInfo { name: NAME.to_owned(), auth_info: Some(user), ..NamedAuthInfo::default() }],
        contexts: vec![NamedContext { name: NAME.to_owned(), context: Some(context), ..NamedContext::default() }],
        current_context: Some(NAME.to_owned()),
        ..Kubeconfig::default()
    };
    Found { kubeconfig, origin: Origin::ServiceAccount }
}

fn none_exists(files: &[PathBuf]) -> Failure {
    match files {
        [] => Failure::new("no kubeconfig: $KUBECONFIG names no file").hint(CHOOSE),
        [file] => Failure::new(format!("kubeconfig {} does not exist", file.display())).hint(CHOOSE),
        files => {
            let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            Failure::new(format!("none of the kubeconfigs in $KUBECONFIG exists: {}", files.join(", "))).hint(CHOOSE)
        }
    }
}

fn unreadable(error: &KubeconfigError) -> Failure {
    let cause = root_cause(error);
    // Some causes show the lines of the file, which may contain secrets.
    let failure = Failure::new(format!("{error}: {}", cause.lines().next().unwrap_or_default()));
    match error {
        KubeconfigError::Read { .. } => failure.hint(CHOOSE),
        _ => failure.hint("the file must be a kubeconfig as kubectl writes it; try `kubectl config view` with it"),
    }
}

fn unmergeable(file: &Path, error: &kube::config::KubeconfigError) -> Failure {
    Failure::new(format!(
        "failed to merge kubeconfig {} with those before it in $KUBECONFIG: {}",
        file.display(),
        root_cause(error)
    ))
    .hint("name one of them with --kubeconfig")
}

#[cfg(test)]
#[path = "kubeconfig_tests.rs"]
mod tests;
