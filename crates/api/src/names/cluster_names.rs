//! Which names a hub accepts for clusters.
//!
//! A cluster's name becomes the name of its namespace, of its ClusterRole and of its group on the hub. A name for which
//! one of these belongs to somebody else is reserved: agents of such a cluster would get rights that are not theirs.

use super::{identities, namespaces, rbac};

/// Kubernetes reserves namespaces with this prefix for itself.
const KUBERNETES_PREFIX: &str = "kube-";

/// Namespaces of OCM's components and of products that are built on it have this prefix. Which of them exist depends on the
/// installation, and an agent in the hub's could take the hub's locks.
const OCM_PREFIX: &str = namespaces::OPERATOR;

/// ClusterRoles that the bindings of all clusters refer to.
pub const SHARED_CLUSTER_ROLES: [&str; 2] = [rbac::REGISTRATION_CLUSTER_ROLE, rbac::WORK_CLUSTER_ROLE];

/// The longest name of a namespace.
const LONGEST: usize = 63;

/// Why no cluster may have this name, to complete "the name cannot be used: "; `None` if the name is free.
///
/// A hub refuses the name of its own namespace too, see [`NAMESPACE_IS_TAKEN`].
pub fn reserved_cluster_name(name: &str) -> Option<&'static str> {
    if !is_namespace_name(name) {
        Some(NOT_A_NAMESPACE)
    } else if [KUBERNETES_PREFIX, OCM_PREFIX].iter().any(|prefix| name.starts_with(prefix)) {
        Some(NAMESPACE_IS_TAKEN)
    } else if SHARED_CLUSTER_ROLES.contains(&&*rbac::cluster_role(name)) {
        Some("the ClusterRole of that name is shared by all clusters")
    } else if identities::cluster_group(name) == identities::MANAGED_CLUSTERS_GROUP {
        Some("the group of that name contains the agents of all clusters")
    } else {
        None
    }
}

/// Why a name is refused whose namespace is in use.
pub const NAMESPACE_IS_TAKEN: &str = "the namespace of that name belongs to Kubernetes or to Open Cluster Management";

/// Why a name is refused that no namespace can have.
const NOT_A_NAMESPACE: &str = "a cluster's name is also the name of its namespace on the hub, so it must consist of at \
                               most 63 lower-case letters, digits and dashes";

/// As in Kubernetes: a DNS label.
fn is_namespace_name(name: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let edges_fit = bytes.first().is_some_and(is_edge) && bytes.last().is_some_and(is_edge);
    edges_fit && bytes.len() <= LONGEST && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_of_kubernetes_and_of_ocm_are_reserved() {
        for name in ["kube-system", "kube-node-lease", "open-cluster-management", "open-cluster-management-hub"] {
            assert_eq!(reserved_cluster_name(name), Some(NAMESPACE_IS_TAKEN), "{name}");
        }
        for namespace in [namespaces::OPERATOR, namespaces::HUB, namespaces::AGENT, namespaces::AGENT_ADDON] {
            assert_eq!(reserved_cluster_name(namespace), Some(NAMESPACE_IS_TAKEN), "{namespace}");
        }
        assert_eq!(reserved_cluster_name("open-cluster-management-global-set"), Some(NAMESPACE_IS_TAKEN));
    }

    #[test]
    fn every_name_whose_role_or_group_is_shared_by_all_clusters_is_reserved() {
        for role in SHARED_CLUSTER_ROLES {
            let name = role.strip_prefix(&rbac::cluster_role("")).unwrap();
            assert!(reserved_cluster_name(name).unwrap().contains("ClusterRole"), "{name}");
        }
        let all = identities::MANAGED_CLUSTERS_GROUP.strip_prefix(identities::PREFIX).unwrap();
        assert!(reserved_cluster_name(all).unwrap().contains("group"), "{all}");
    }

    #[test]
    fn a_name_that_no_namespace_can_have_is_refused() {
        let long = "a".repeat(64);
        for name in ["a.b", "-a", "a-", "A", "", "a:b", long.as_str()] {
            assert!(reserved_cluster_name(name).is_some(), "{name}");
        }
        assert_eq!(reserved_cluster_name(&long[1..]), None);
    }

    #[test]
    fn other_names_are_free() {
        for name in [
            "cluster1",
            "open-cluster",
            "default",
            "kubernetes",
            "local-cluster",
            "working",
            "registration-2",
            "cluster",
        ] {
            assert_eq!(reserved_cluster_name(name), None, "{name}");
        }
    }
}
