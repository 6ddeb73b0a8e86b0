//! Which ClusterProperties and ClusterClaims are reported to the hub.

use std::{collections::BTreeMap, sync::Arc};

use kube::api::ObjectMeta;
use ocm_api::{
    about::v1alpha1::ClusterProperty,
    cluster::{v1::ManagedClusterClaim, v1alpha1::ClusterClaim},
    labels, limits, namespaces,
};

/// Which claims are reported.
#[derive(Clone, Debug)]
pub(crate) struct ClaimRules {
    /// How many besides the reserved ones.
    pub(crate) max_custom: usize,
    /// Suffixes of reserved names, besides OCM's reserved names.
    pub(crate) reserved_suffixes: Vec<String>,
}

/// What the managed cluster states about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statements {
    pub(crate) properties: Vec<Arc<ClusterProperty>>,
    pub(crate) claims: Vec<Arc<ClusterClaim>>,
}

/// What of it is reported.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) claims: Vec<ManagedClusterClaim>,
    /// Names of those whose values the hub's API does not allow.
    pub(crate) left_out: Vec<String>,
}

impl Statements {
    /// Name and value of what may leave the cluster. A property wins over a claim of the same name.
    fn public(&self) -> BTreeMap<&str, &str> {
        let claims = self.claims.iter().filter(|claim| !stays_here(&claim.metadata));
        let claims = claims.map(|claim| (name_of(&claim.metadata), claim.spec.value.as_deref().unwrap_or_default()));
        let properties = self.properties.iter().filter(|property| !stays_here(&property.metadata));
        let properties = properties.map(|property| (name_of(&property.metadata), &*property.spec.value));
        claims.chain(properties).collect()
    }
}

impl ClaimRules {
    /// The reserved claims sorted by name, then the others sorted by name, up to the limit.
    pub(crate) fn choose(&self, statements: &Statements) -> Chosen {
        let (good, bad): (Vec<_>, Vec<_>) = statements.public().into_iter().partition(|(_, value)| is_allowed(value));
        let (mut chosen, mut custom): (Vec<_>, Vec<_>) = good.into_iter().partition(|(name, _)| self.is_reserved(name));
        custom.truncate(self.max_custom);
        chosen.extend(custom);
        let claim = |(name, value): (&str, &str)| ManagedClusterClaim { name: name.into(), value: value.into() };
        Chosen {
            claims: chosen.into_iter().map(claim).collect(),
            left_out: bad.into_iter().map(|(name, _)| name.to_owned()).collect(),
        }
    }

    fn is_reserved(&self, name: &str) -> bool {
        namespaces::RESERVED_CLUSTER_CLAIMS.contains(&name)
            || self.reserved_suffixes.iter().any(|suffix| !suffix.is_empty() && name.ends_with(suffix))
    }
}

fn stays_here(metadata: &ObjectMeta) -> bool {
    metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(labels::SPOKE_ONLY))
}

fn name_of(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

/// Values of properties can be longer than the hub allows, and the hub would refuse the whole status.
fn is_allowed(value: &str) -> bool {
    (1..=limits::MAX_CLAIM_VALUE_CHARACTERS).contains(&value.chars().count())
}

#[cfg(test)]
pub(super) mod tests {
    use ocm_api::{about::v1alpha1::ClusterPropertySpec, cluster::v1alpha1::ClusterClaimSpec};

    use super::*;

    pub(crate) fn claim(name: &str) -> ClusterClaim {
        ClusterClaim::new(name, ClusterClaimSpec { value: Some(format!("value of {name}")) })
    }

    pub(crate) fn property(name: &str, value: &str) -> ClusterProperty {
        ClusterProperty::new(name, ClusterPropertySpec { value: value.into() })
    }

    fn private(mut metadata: ObjectMeta) -> ObjectMeta {
        metadata.labels = Some([(labels::SPOKE_ONLY.to_owned(), String::new())].into());
        metadata
    }

    fn rules(max_custom: usize) -> ClaimRules {
        ClaimRules { max_custom, reserved_suffixes: vec![".mine".into()] }
    }

    fn statements(
        properties: impl IntoIterator<Item = ClusterProperty>,
        claims: impl IntoIterator<Item = ClusterClaim>,
    ) -> Statements {
        let properties = properties.into_iter().map(Arc::new).collect();
        Statements { properties, claims: claims.into_iter().map(Arc::new).collect() }
    }

    fn names(chosen: &Chosen) -> Vec<&str> {
        chosen.claims.iter().map(|claim| &*claim.name).collect()
    }

    #[test]
    fn reserved_claims_come_first_and_do_not_count() {
        let claims = ["z", "product.open-cluster-management.io", "b", "x.mine", "a", "id.k8s.io"].map(claim);
        let expected = ["id.k8s.io", "product.open-cluster-management.io", "x.mine", "a", "b"];
        assert_eq!(names(&rules(2).choose(&statements([], claims))), expected);
    }

    #[test]
    fn properties_and_claims_are_reported_together_and_the_limit_is_for_both() {
        let properties = [property("b", "1"), property("id.k8s.io", "1"), property("y.mine", "1")];
        let chosen = rules(2).choose(&statements(properties, ["a", "c", "x.mine"].map(claim)));
        assert_eq!(names(&chosen), ["id.k8s.io", "x.mine", "y.mine", "a", "b"]);
    }

    #[test]
    fn a_property_wins_over_a_claim_of_the_same_name_unless_it_stays_on_the_cluster() {
        let claims = ["a", "id.k8s.io", "c"].map(claim);
        let mut hidden = property("c", "hidden");
        hidden.metadata = private(hidden.metadata);
        let chosen =
            rules(20).choose(&statements([property("a", "new"), property("id.k8s.io", "new"), hidden], claims));
        let values: Vec<_> = chosen.claims.iter().map(|claim| (&*claim.name, &*claim.value)).collect();
        assert_eq!(values, [("id.k8s.io", "new"), ("a", "new"), ("c", "value of c")]);
    }

    #[test]
    fn what_is_for_the_cluster_alone_is_not_reported() {
        let (mut claim_here, mut property_here) = (claim("id.k8s.io"), property("b", "1"));
        claim_here.metadata = private(claim_here.metadata);
        property_here.metadata = private(property_here.metadata);
        let chosen = rules(20).choose(&statements([property_here], [claim_here, claim("a")]));
        assert_eq!(names(&chosen), ["a"]);
    }

    #[test]
    fn a_value_that_the_hub_would_refuse_is_left_out_and_named_and_takes_no_ones_place() {
        let longest = "ä".repeat(1024);
        let properties = [property("a", &format!("{longest}x")), property("b", ""), property("c", &longest)];
        let chosen = rules(1).choose(&statements(properties, []));
        assert_eq!(names(&chosen), ["c"]);
        assert_eq!(chosen.left_out, ["a", "b"]);
    }
}
