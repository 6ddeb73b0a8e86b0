//! What commands read from the process around them.

use std::{env, ffi::OsString, path::PathBuf};

use ocm_runtime::client::Proxies;

use crate::console::Console;

/// What commands read from the process around them, as a value: a caller can give a command another one.
#[derive(Clone, Debug)]
pub struct Environment {
    /// `$KUBECONFIG`: kubeconfig files, separated by colons.
    pub kubeconfig: Option<OsString>,
    /// The user's home directory, which holds `.kube/config`.
    pub home: Option<PathBuf>,
    /// The pod's service account, used if there is no kubeconfig.
    pub service_account: Option<ServiceAccount>,
    /// The proxies to use for servers whose kubeconfig names none.
    pub proxies: Proxies,
    /// Where commands write.
    pub console: Console,
}

/// The service account of a pod, as Kubernetes mounts it.
#[derive(Clone, Debug)]
pub struct ServiceAccount {
    /// The API server's address, as in `https://10.0.0.1:443`.
    pub server: String,
    /// The folder with `token`, `ca.crt` and `namespace`.
    pub folder: PathBuf,
}

/// Where Kubernetes mounts the service account of a pod.
const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

impl Environment {
    /// An environment in which nothing is set.
    #[must_use]
    pub fn empty(console: Console) -> Self {
        Self { kubeconfig: None, home: None, service_account: None, proxies: Proxies::default(), console }
    }

    /// The environment of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            kubeconfig: env::var_os("KUBECONFIG"),
            home: env::home_dir(),
            service_account: ServiceAccount::of_process(),
            proxies: Proxies::from_variables(|name| env::var(name).ok()),
            console: Console::of_process(),
        }
    }
}

impl ServiceAccount {
    /// The service account of this process, if it runs in a pod that has one.
    #[must_use]
    pub fn of_process() -> Option<Self> {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
        let account = Self { server: server(&host, &port), folder: MOUNT.into() };
        account.folder.join("token").is_file().then_some(account)
    }
}

fn server(host: &str, port: &str) -> String {
    if host.contains(':') { format!("https://[{host}]:{port}") } else { format!("https://{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_is_put_in_brackets() {
        assert_eq!(server("10.0.0.1", "443"), "https://10.0.0.1:443");
        assert_eq!(server("fd00::1", "443"), "https://[fd00::1]:443");
    }
}
