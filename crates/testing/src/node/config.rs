//! The configuration files of the parts of a node.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{ADDRESS, NAME};

/// The folder of the CNI plugins in Debian.
pub(super) const CNI_PLUGINS: &str = "/usr/lib/cni";
/// What every pod's own container runs, see images.rs.
pub(super) const PAUSE: &str = "localhost/pause:1";
const SOCKET: &str = "/run/containerd/containerd.sock";
const PODS: &str = "10.244.0.0/24";

/// The files of a node, in its folder.
pub(super) struct Files {
    pub(super) containerd: PathBuf,
    pub(super) kubelet: PathBuf,
    pub(super) kube_proxy: PathBuf,
    pub(super) registry: PathBuf,
}

impl Files {
    /// Writes them all. Those of kubelet, kube-proxy and the scheduler for the API server are written with the logins.
    pub(super) fn write(dir: &Path, cgroup: &str, registry_port: u16) -> Result<Self> {
        write(&dir.join("cni/10-pods.conflist"), &network().to_string())?;
        write(&dir.join("registries/_default/hosts.toml"), &registries(registry_port))?;
        let files = Self {
            containerd: dir.join("containerd.toml"),
            kubelet: dir.join("kubelet.json"),
            kube_proxy: dir.join("kube-proxy.json"),
            registry: dir.join("registry.json"),
        };
        write(&files.containerd, &containerd(dir))?;
        write(&files.kubelet, &kubelet(cgroup).to_string())?;
        write(&files.kube_proxy, &kube_proxy(&login_path(dir, "kube-proxy")).to_string())?;
        write(&files.registry, &registry(registry_port).to_string())?;
        Ok(files)
    }
}

/// The path of a part's kubeconfig.
pub(super) fn login_path(dir: &Path, part: &str) -> PathBuf {
    dir.join(format!("{part}.kubeconfig"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(path, text)).with_context(|| format!("failed to write {}", path.display()))
}

/// `restrict_oom_score_adj`: where root lacks `CAP_SYS_RESOURCE`, as in most virtual machines of CI, no sandbox would start.
fn containerd(dir: &Path) -> String {
    format!(
        r#"version = 2
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = {cni:?}
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = {registries:?}
"#,
        cni = dir.join("cni"),
        registries = dir.join("registries"),
    )
}

/// Each pod is connected to the machine by a veth pair of its own. A bridge between pods would carry the answer of a service's
/// pod past the packet rules that have to turn it back into the service's, unless the kernel has `br_netfilter`.
fn network() -> Value {
    let addresses = json!({"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}]});
    let pods = json!({"type": "ptp", "ipMasq": false, "ipam": addresses});
    json!({"cniVersion": "0.4.0", "name": "pods", "plugins": [pods, {"type": "portmap", "capabilities": {"portMappings": true}}]})
}

/// Our registry instead of all others, for containerd: nothing else can be pulled.
fn registries(port: u16) -> String {
    let url = format!("http://127.0.0.1:{port}");
    format!("server = \"{url}\"\n[host.\"{url}\"]\n  capabilities = [\"pull\", \"resolve\"]\n")
}

fn registry(port: u16) -> Value {
    json!({
        "version": "0.1",
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": "/var/lib/registry"}},
        "http": {"addr": format!("127.0.0.1:{port}")},
    })
}

/// The network contains only this program, so kubelet allows anonymous requests; the API server makes them, for logs.
fn kubelet(cgroup: &str) -> Value {
    let never = json!({"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.inodesFree": "0%"});
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{cgroup}"),
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        "evictionHard": never,
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": false,
        "resolvConf": "",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "healthzPort": 0,
        "syncFrequency": "10s",
    })
}

/// `conntrack`: its limits are those of the whole machine, and are not changed.
fn kube_proxy(kubeconfig: &Path) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": kubeconfig},
        "clusterCIDR": PODS,
        "hostnameOverride": NAME,
        "healthzBindAddress": format!("{ADDRESS}:10256"),
        "metricsBindAddress": "127.0.0.1:10249",
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    })
}
