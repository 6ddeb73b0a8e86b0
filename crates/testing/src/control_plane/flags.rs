//! The flags of each part: as in a kubeadm cluster where that affects behaviour, cheaper elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use super::files::Files;
use super::{Part, Ports};

/// The folder of etcd's data in that of the control plane.
pub(super) const ETCD_DATA: &str = "etcd";

/// Controllers that have work only with a cloud, storage or special hardware; each costs watches.
/// The two in front are off by default, but kubeadm has them on: joining with bootstrap tokens needs them.
const CONTROLLERS: &str = "*,bootstrap-signer-controller,token-cleaner-controller,\
    -cloud-node-lifecycle-controller,-device-taint-eviction-controller,-ephemeral-volume-controller,\
    -horizontal-pod-autoscaler-controller,-kube-apiserver-serving-clustertrustbundle-publisher-controller,\
    -legacy-serviceaccount-token-cleaner-controller,-node-ipam-controller,-node-route-controller,\
    -persistentvolume-attach-detach-controller,-persistentvolume-expander-controller,\
    -resourceclaim-controller,-resourcepoolstatusrequest-controller,-service-lb-controller,\
    -storage-version-migrator-controller,-storageversion-garbage-collector-controller,\
    -volumeattributesclass-protection-controller";

/// One `--name=value`.
#[derive(Clone, Debug)]
pub(super) struct Flag {
    name: String,
    value: String,
}

impl Flag {
    pub(super) fn new(name: &str, value: impl Into<String>) -> Self {
        let name = name.trim_start_matches('-').to_owned();
        Self { name, value: value.into() }
    }

    fn path(name: &str, path: &Path) -> Self {
        Self::new(name, path.display().to_string())
    }
}

/// The command lines of all parts.
pub(super) fn all(
    ports: &Ports,
    files: &Files,
    fsync: bool,
    extra: &BTreeMap<Part, Vec<Flag>>,
) -> BTreeMap<Part, Vec<String>> {
    let line = |part: Part| {
        let ours = match part {
            Part::Etcd => etcd(ports, fsync),
            Part::ApiServer => api_server(ports, files),
            Part::ControllerManager => controller_manager(ports, files),
        };
        (part, command_line(ours, extra.get(&part).map_or(&[], Vec::as_slice)))
    };
    Part::ALL.into_iter().map(line).collect()
}

/// An extra flag replaces ours of the same name.
fn command_line(ours: Vec<Flag>, extra: &[Flag]) -> Vec<String> {
    let replaced = |flag: &Flag| extra.iter().any(|other| other.name == flag.name);
    let kept = ours.into_iter().filter(|flag| !replaced(flag));
    kept.chain(extra.iter().cloned()).map(|Flag { name, value }| format!("--{name}={value}")).collect()
}

fn etcd(ports: &Ports, fsync: bool) -> Vec<Flag> {
    let client = format!("http://127.0.0.1:{}", ports.etcd.number());
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer.number());
    vec![
        Flag::new("name", "etcd"),
        Flag::new("data-dir", ETCD_DATA),
        Flag::new("listen-client-urls", &client),
        Flag::new("advertise-client-urls", &client),
        Flag::new("listen-peer-urls", &peer),
        Flag::new("initial-advertise-peer-urls", &peer),
        Flag::new("initial-cluster", format!("etcd={peer}")),
        Flag::new("quota-backend-bytes", "8589934592"),
        Flag::new("unsafe-no-fsync", (!fsync).to_string()),
        Flag::new("log-level", "warn"),
    ]
}

fn api_server(ports: &Ports, files: &Files) -> Vec<Flag> {
    let mut flags = vec![
        Flag::new("etcd-servers", format!("http://127.0.0.1:{}", ports.etcd.number())),
        Flag::new("bind-address", "127.0.0.1"),
        Flag::new("secure-port", ports.api.number().to_string()),
        Flag::new("advertise-address", "127.0.0.1"),
        Flag::new("endpoint-reconciler-type", "none"),
        Flag::new("service-cluster-ip-range", "10.0.0.0/24"),
        Flag::path("tls-cert-file", &files.serving_certificate),
        Flag::path("tls-private-key-file", &files.serving_key),
        Flag::path("client-ca-file", &files.authority_certificate),
        Flag::new("service-account-issuer", "https://kubernetes.default.svc"),
        Flag::path("service-account-key-file", &files.tokens_public),
        Flag::path("service-account-signing-key-file", &files.tokens_key),
        Flag::new("authorization-mode", "RBAC"),
        Flag::new("enable-bootstrap-token-auth", "true"),
        Flag::new("allow-privileged", "true"),
        Flag::new("profiling", "false"),
        // Both poll etcd for metrics that no test reads.
        Flag::new("etcd-count-metric-poll-period", "0"),
        Flag::new("etcd-db-metric-poll-interval", "0"),
    ];
    if let Some(log) = &files.audit_log {
        flags.push(Flag::path("audit-policy-file", &files.audit_policy));
        flags.push(Flag::path("audit-log-path", log));
        // One file of any length: readers follow it by its path.
        flags.push(Flag::new("audit-log-maxsize", "100000"));
    }
    flags
}

fn controller_manager(ports: &Ports, files: &Files) -> Vec<Flag> {
    let kubeconfig = &files.controller_manager_kubeconfig;
    vec![
        Flag::path("kubeconfig", kubeconfig),
        Flag::path("authentication-kubeconfig", kubeconfig),
        Flag::path("authorization-kubeconfig", kubeconfig),
        Flag::new("authentication-tolerate-lookup-failure", "true"),
        Flag::new("bind-address", "127.0.0.1"),
        Flag::new("secure-port", ports.controller_manager.number().to_string()),
        // Otherwise it would generate an RSA key at every start.
        Flag::path("tls-cert-file", &files.serving_certificate),
        Flag::path("tls-private-key-file", &files.serving_key),
        Flag::path("service-account-private-key-file", &files.tokens_key),
        Flag::path("root-ca-file", &files.authority_certificate),
        Flag::path("cluster-signing-cert-file", &files.authority_certificate),
        Flag::path("cluster-signing-key-file", &files.authority_key),
        Flag::new("use-service-account-credentials", "true"),
        Flag::new("leader-elect", "false"),
        Flag::new("controllers", CONTROLLERS),
        // A random pause between controllers, meant for clusters with many of them.
        Flag::new("controller-start-interval", "0s"),
        // Its own throttle would slow down tests with many namespaces.
        Flag::new("kube-api-qps", "500"),
        Flag::new("kube-api-burst", "1000"),
        Flag::new("profiling", "false"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extra_flag_replaces_ours_of_the_same_name() {
        let ours = vec![Flag::new("v", "1"), Flag::new("profiling", "false")];
        let line = command_line(ours, &[Flag::new("--v", "4"), Flag::new("emulated-version", "1.35")]);
        assert_eq!(line, ["--profiling=false", "--v=4", "--emulated-version=1.35"]);
    }
}
