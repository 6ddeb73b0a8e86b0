//! Which cluster names the hub refuses, for they are somebody else's.

use ocm_api::{identities, namespaces, rbac};

/// Namespaces of Kubernetes itself begin so; it reserves the prefix.
const KUBERNETES: &str = "kube-";

/// The longest name of a namespace.
const LONGEST: usize = 63;

/// Why a cluster of that name gets no rights, for a sentence; `None` when it can.
pub(crate) fn refusal(cluster: &str, hub_namespace: &str) -> Option<&'static str> {
    if !is_namespace_name(cluster) {
        Some("no namespace can have its name, which must be at most 63 lower-case letters, digits and dashes")
    } else if is_namespace_of_others(cluster, hub_namespace) {
        Some("the namespace of its name belongs to Kubernetes or to the hub itself")
    } else if is_shared_by_clusters(cluster) {
        Some("the role or group of its name belongs to all clusters")
    } else {
        None
    }
}

/// As Kubernetes has it: a DNS label.
fn is_namespace_name(name: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let edges_fit = bytes.first().is_some_and(is_edge) && bytes.last().is_some_and(is_edge);
    edges_fit && bytes.len() <= LONGEST && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
}

/// Whether the namespace of that name belongs to Kubernetes or to the hub. An agent may renew leases and write works in
/// its cluster's namespace: in one of these it could take the locks of control planes or of this hub.
fn is_namespace_of_others(cluster: &str, hub_namespace: &str) -> bool {
    cluster.starts_with(KUBERNETES) || [hub_namespace, namespaces::HUB, namespaces::OPERATOR].contains(&cluster)
}

/// Whether the cluster's own role would be one that all clusters share, or its own group that of all agents.
fn is_shared_by_clusters(cluster: &str) -> bool {
    let role = rbac::cluster_role(cluster);
    let is_shared_role = role == rbac::REGISTRATION_CLUSTER_ROLE || role == rbac::WORK_CLUSTER_ROLE;
    is_shared_role || identities::cluster_group(cluster) == identities::MANAGED_CLUSTERS_GROUP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kubernetes_of_the_hub_and_of_what_clusters_share_are_reserved() {
        for name in
            ["kube-system", "kube-node-lease", "my-hub", "open-cluster-management-hub", "open-cluster-management"]
        {
            assert!(refusal(name, "my-hub").is_some(), "{name}");
        }
        for name in ["registration", "work", "managed-clusters"] {
            assert!(refusal(name, "my-hub").is_some(), "{name}");
        }
        for name in ["cluster1", "default", "kubernetes", "local-cluster", "my-hub-2"] {
            assert!(refusal(name, "my-hub").is_none(), "{name}");
        }
    }
    #[test]
    fn what_is_no_name_of_a_namespace_is_refused() {
        let long = "a".repeat(64);
        for name in ["a.b", "-a", "a-", "A", "", long.as_str()] {
            assert!(refusal(name, "my-hub").is_some(), "{name}");
        }
        assert!(refusal(&long[1..], "my-hub").is_none());
    }
}
