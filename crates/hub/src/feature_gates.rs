//! The feature gates that a hub process knows.

use ocm_api::feature_gates::{
    self, ADDON_MANAGEMENT, CLEAN_UP_COMPLETED_MANIFEST_WORK, CLUSTER_PROFILE, DEFAULT_CLUSTER_SET, GateSet,
    MANAGED_CLUSTER_AUTO_APPROVAL, MANIFEST_WORK_REPLICA_SET, NIL_EXECUTOR_VALIDATING, PLACEMENT_DEBUG_SERVER,
    RESOURCE_CLEANUP,
};
use ocm_runtime::feature_gates::Known;

/// Gates whose feature is here.
const BUILT: [&str; 9] = [
    ADDON_MANAGEMENT,
    CLEAN_UP_COMPLETED_MANIFEST_WORK,
    CLUSTER_PROFILE,
    DEFAULT_CLUSTER_SET,
    MANAGED_CLUSTER_AUTO_APPROVAL,
    MANIFEST_WORK_REPLICA_SET,
    NIL_EXECUTOR_VALIDATING,
    PLACEMENT_DEBUG_SERVER,
    RESOURCE_CLEANUP,
];

/// The sets of OCM's commands whose place a hub takes.
const SETS: [GateSet; 4] =
    [GateSet::HubRegistration, GateSet::HubWork, GateSet::HubAddonManager, GateSet::HubPlacement];

/// Every gate of the OCM commands in `SETS`, in the form [`ocm_runtime::feature_gates`] reads.
///
/// A gate whose feature is not built yet stays off, and those who switch it on find it in
/// [`not_built`](ocm_runtime::feature_gates::FeatureGates::not_built).
#[must_use]
pub fn known() -> Vec<Known> {
    let gates = SETS.into_iter().flat_map(feature_gates::of);
    gates
        .map(|gate| {
            let built = BUILT.contains(&gate.name);
            Known { name: gate.name, default: gate.default, stage: gate.stage.switch(), built }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ocm_runtime::feature_gates::FeatureGates;

    use super::*;

    #[test]
    fn what_is_built_is_on_by_default_and_the_rest_says_that_it_is_not_built() {
        let gates = FeatureGates::parse(&known(), &["ClusterImporter=true".into()]).unwrap();
        assert!(gates.enabled(DEFAULT_CLUSTER_SET) && gates.enabled(RESOURCE_CLEANUP));
        assert!(!gates.enabled(feature_gates::CLUSTER_IMPORTER));
        assert_eq!(gates.not_built, [feature_gates::CLUSTER_IMPORTER]);
    }

    #[test]
    fn every_gate_said_to_be_built_exists() {
        assert!(BUILT.iter().all(|name| known().iter().any(|gate| gate.name == *name)));
    }
}
