//! Which cluster names the hub refuses.

use ocm_api::cluster_names::{NAMESPACE_IS_TAKEN, reserved_cluster_name};

/// Why a cluster of that name gets no rights, for a sentence; `None` if it can get them. An agent may renew leases and
/// write works in its cluster's namespace: in the hub's own namespace it could take the hub's locks.
pub(crate) fn refusal(cluster: &str, hub_namespace: &str) -> Option<&'static str> {
    if cluster == hub_namespace { Some(NAMESPACE_IS_TAKEN) } else { reserved_cluster_name(cluster) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_and_that_of_the_hubs_namespace_are_refused() {
        for name in ["work", "registration", "managed-clusters", "kube-system", "my-hub"] {
            assert!(refusal(name, "my-hub").is_some(), "{name}");
        }
        assert_eq!(refusal("my-hub-2", "my-hub"), None);
    }
}
