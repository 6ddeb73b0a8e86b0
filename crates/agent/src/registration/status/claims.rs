//! Which ClusterClaims are reported to the hub.

use std::sync::Arc;

use ocm_api::{
    cluster::{v1::ManagedClusterClaim, v1alpha1::ClusterClaim},
    labels, namespaces,
};

/// Which claims are reported.
#[derive(Clone, Debug)]
pub(crate) struct ClaimRules {
    /// How many besides the reserved ones.
    pub(crate) max_custom: usize,
    /// Suffixes of reserved names, besides OCM's reserved names.
    pub(crate) reserved_suffixes: Vec<String>,
}

impl ClaimRules {
    /// The reserved claims sorted by name, then the others sorted by name, up to the limit.
    pub(crate) fn choose(&self, claims: &[Arc<ClusterClaim>]) -> Vec<ManagedClusterClaim> {
        let public = claims.iter().filter(|claim| !stays_here(claim)).map(|claim| reported(claim));
        let (mut reserved, mut custom): (Vec<_>, Vec<_>) = public.partition(|claim| self.is_reserved(&claim.name));
        reserved.sort_by(|a, b| a.name.cmp(&b.name));
        custom.sort_by(|a, b| a.name.cmp(&b.name));
        custom.truncate(self.max_custom);
        reserved.extend(custom);
        reserved
    }

    fn is_reserved(&self, name: &str) -> bool {
        namespaces::RESERVED_CLUSTER_CLAIMS.contains(&name)
            || self.reserved_suffixes.iter().any(|suffix| !suffix.is_empty() && name.ends_with(suffix))
    }
}

fn stays_here(claim: &ClusterClaim) -> bool {
    claim.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(labels::SPOKE_ONLY))
}

fn reported(claim: &ClusterClaim) -> ManagedClusterClaim {
    ManagedClusterClaim {
        name: claim.metadata.name.clone().unwrap_or_default(),
        value: claim.spec.value.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use ocm_api::cluster::v1alpha1::ClusterClaimSpec;

    use super::*;

    pub(crate) fn claim(name: &str) -> ClusterClaim {
        ClusterClaim::new(name, ClusterClaimSpec { value: Some(format!("value of {name}")) })
    }

    fn chosen(rules: &ClaimRules, claims: &[ClusterClaim]) -> Vec<String> {
        let claims: Vec<_> = claims.iter().cloned().map(Arc::new).collect();
        rules.choose(&claims).into_iter().map(|claim| claim.name).collect()
    }

    #[test]
    fn reserved_claims_come_first_and_do_not_count() {
        let rules = ClaimRules { max_custom: 2, reserved_suffixes: vec![".mine".into()] };
        let claims = ["z", "product.open-cluster-management.io", "b", "x.mine", "a", "id.k8s.io"].map(claim);
        let expected = ["id.k8s.io", "product.open-cluster-management.io", "x.mine", "a", "b"];
        assert_eq!(chosen(&rules, &claims), expected);
    }

    #[test]
    fn claims_for_the_cluster_alone_are_not_reported() {
        let rules = ClaimRules { max_custom: 20, reserved_suffixes: Vec::new() };
        let mut private = claim("id.k8s.io");
        private.metadata.labels = Some([(labels::SPOKE_ONLY.to_owned(), String::new())].into());
        assert_eq!(chosen(&rules, &[private, claim("a")]), ["a"]);
    }
}
