//! The finalizers and taints that this hub maintains on a cluster, together.
//!
//! Three controllers maintain them: `resource-cleanup` and `managed-cluster` a finalizer each, `cluster-taints` the taints.
//! They observe a new cluster at the same moment. So that one patch is enough, the writer of clusters adds to each patch what
//! else is missing ([`Maintained::add_to`]), and the other controllers find nothing to do.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt as _;
use ocm_api::{
    cluster::v1::ManagedCluster,
    finalizers::{CLUSTER_API_RESOURCE_CLEANUP, CLUSTER_RESOURCE_CLEANUP},
};
use ocm_runtime::{Controller as _, write};

use super::{
    availability::taints::{self, TaintController},
    cleanup::CleanupController,
    cluster::ClusterController,
    names,
};
use crate::{HubConfig, controllers::runs};

/// What a hub maintains: only what one of its controllers would.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maintained {
    /// The finalizer for what is deleted with a cluster.
    cleanup: bool,
    /// The finalizer for the rights of accepted clusters.
    rights: bool,
    taints: bool,
    hub_namespace: Arc<str>,
}

impl Maintained {
    pub(crate) fn by(config: &HubConfig) -> Self {
        Self {
            cleanup: runs(config, CleanupController::NAME),
            rights: runs(config, ClusterController::NAME),
            taints: runs(config, TaintController::NAME),
            hub_namespace: config.namespace.as_str().into(),
        }
    }

    /// The cluster with everything that is missing; a cluster that is being deleted as it is.
    pub(crate) fn add_to(&self, cluster: &ManagedCluster, now: Timestamp) -> ManagedCluster {
        let mut complete = cluster.clone();
        if write::is_deleting(cluster) {
            return complete;
        }
        let cleanup = self.cleanup.then_some(CLUSTER_RESOURCE_CLEANUP);
        let rights = (self.rights && self.gives_rights(cluster)).then_some(CLUSTER_API_RESOURCE_CLEANUP);
        for finalizer in cleanup.into_iter().chain(rights) {
            complete = write::with_finalizer(&complete, finalizer).unwrap_or(complete);
        }
        if self.taints {
            complete.spec.taints = taints::desired(cluster, now);
        }
        complete
    }

    fn gives_rights(&self, cluster: &ManagedCluster) -> bool {
        cluster.spec.hub_accepts_client && names::refusal(&cluster.name_any(), &self.hub_namespace).is_none()
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::{
        conditions::cluster::AVAILABLE,
        feature_gates::RESOURCE_CLEANUP,
        taints::{UNAVAILABLE, UNREACHABLE},
    };
    use ocm_runtime::feature_gates::FeatureGates;

    use super::*;
    use crate::{
        feature_gates,
        testing::{accepted, cluster, deleting, now, with_condition},
    };

    fn only(controllers: &[&str]) -> Maintained {
        let controllers = controllers.iter().map(|name| (*name).to_owned()).collect();
        Maintained::by(&HubConfig { controllers, ..HubConfig::default() })
    }

    /// The finalizers and the keys of the taints that a cluster has then.
    fn completed(maintained: &Maintained, cluster: &ManagedCluster) -> (Vec<String>, Vec<String>) {
        let complete = maintained.add_to(cluster, now());
        let taints = complete.spec.taints.iter().map(|taint| taint.key.clone()).collect();
        (complete.finalizers().to_vec(), taints)
    }

    fn text(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn a_new_cluster_gets_finalizer_and_taint_and_an_accepted_one_the_finalizer_of_its_rights_too() {
        let all = only(&[]);
        assert_eq!(completed(&all, &cluster("c1")), (text(&[CLUSTER_RESOURCE_CLEANUP]), text(&[UNREACHABLE])));
        let both = text(&[CLUSTER_RESOURCE_CLEANUP, CLUSTER_API_RESOURCE_CLEANUP]);
        assert_eq!(completed(&all, &accepted("c1")), (both.clone(), text(&[UNREACHABLE])));
        let failing = with_condition(&accepted("c1"), AVAILABLE, "False", "R");
        assert_eq!(completed(&all, &failing), (both, text(&[UNAVAILABLE])));
    }

    #[test]
    fn what_is_complete_stays_as_it_is_and_so_does_a_cluster_that_is_being_deleted() {
        let all = only(&[]);
        let complete = all.add_to(&accepted("c1"), now());
        assert_eq!(all.add_to(&complete, now()), complete);
        let leaving = deleting(accepted("c1"), &["other"]);
        assert_eq!(all.add_to(&leaving, now()), leaving);
    }

    #[test]
    fn a_cluster_whose_name_is_refused_gets_no_finalizer_for_rights() {
        for name in ["work", "kube-system", "open-cluster-management-hub"] {
            assert_eq!(completed(&only(&[]), &accepted(name)).0, text(&[CLUSTER_RESOURCE_CLEANUP]), "{name}");
        }
    }

    #[test]
    fn only_what_a_running_controller_maintains_is_added() {
        let none = (text(&[]), text(&[]));
        assert_eq!(completed(&only(&["cluster-lease"]), &accepted("c1")), none);
        assert_eq!(completed(&only(&["cluster-taints"]), &accepted("c1")), (text(&[]), text(&[UNREACHABLE])));
        let rights = (text(&[CLUSTER_API_RESOURCE_CLEANUP]), text(&[]));
        assert_eq!(completed(&only(&["managed-cluster"]), &accepted("c1")), rights);
        let off = [format!("{RESOURCE_CLEANUP}=false")];
        let gates = FeatureGates::parse(&feature_gates::known(), &off).unwrap();
        let without = Maintained::by(&HubConfig { gates, ..HubConfig::default() });
        assert_eq!(completed(&without, &cluster("c1")), (text(&[]), text(&[UNREACHABLE])));
    }
}
