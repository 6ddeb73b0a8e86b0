//! Maintains the cluster sets `default` and `global`: creates them, and restores their selectors.
//!
//! A set changes, or some time has passed → does it exist, with the right selector? → create or patch.
//! Annotation `cluster.open-cluster-management.io/autoupdate: "false"` makes the hub ignore an existing set.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{Api, ResourceExt as _};
use ocm_api::{
    annotations::AUTO_UPDATE,
    cluster::v1beta2::{ManagedClusterSelector, ManagedClusterSet, ManagedClusterSetSpec, SelectorType},
    limits::CLUSTER_SET_ENFORCEMENT,
    namespaces::{DEFAULT_CLUSTER_SET, GLOBAL_CLUSTER_SET},
};
use ocm_runtime::{Cache, Controller, ControllerBuilder, write};

use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
};

const SETS: [&str; 2] = [DEFAULT_CLUSTER_SET, GLOBAL_CLUSTER_SET];

/// See the module.
#[derive(Debug)]
pub(crate) struct DefaultSetsController {
    hub: HubContext,
    sets: Cache<ManagedClusterSet>,
}

/// One of the two sets, if it exists.
#[derive(Debug)]
pub(crate) struct Observed {
    name: &'static str,
    set: Option<Arc<ManagedClusterSet>>,
}

/// What makes the set as it should be.
#[derive(Debug, PartialEq)]
pub(crate) enum Plan {
    Leave,
    Create(Box<ManagedClusterSet>),
    Restore(Box<ManagedClusterSet>),
}

impl DefaultSetsController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        Self { sets: caches::sets(&hub.informers), hub: hub.clone() }
    }
}

impl Controller for DefaultSetsController {
    const NAME: &'static str = "default-cluster-sets";
    type Key = &'static str;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, &'static str>) {
        builder.watches(&self.sets, |change| SETS.into_iter().find(|name| change.object().name_any() == *name));
        SETS.into_iter().for_each(|name| builder.every(CLUSTER_SET_ENFORCEMENT, name));
    }

    async fn observe(&self, name: &&'static str) -> Result<Option<Observed>> {
        Ok(Some(Observed { name, set: self.sets.named(name) }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        let cluster_selector = selector(observed.name);
        let Some(set) = &observed.set else {
            let spec = ManagedClusterSetSpec { cluster_selector, ..ManagedClusterSetSpec::default() };
            return Plan::Create(Box::new(ManagedClusterSet::new(observed.name, spec)));
        };
        if is_left_alone(set) || set.spec.cluster_selector == cluster_selector {
            return Plan::Leave;
        }
        let mut new = ManagedClusterSet::clone(set);
        new.spec.cluster_selector = cluster_selector;
        Plan::Restore(Box::new(new))
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<()> {
        let api: Api<ManagedClusterSet> = Api::all(self.hub.client.clone());
        let written = match (plan, &observed.set) {
            (Plan::Create(new), _) => Some(write::create(&api, &new).await?),
            (Plan::Restore(new), Some(old)) => write::patch(&api, old, &new).await?,
            (Plan::Leave | Plan::Restore(_), _) => None,
        };
        written.into_iter().for_each(|set| self.sets.record_write(set));
        Ok(())
    }
}

fn is_left_alone(set: &ManagedClusterSet) -> bool {
    write::is_deleting(set) || set.annotations().get(AUTO_UPDATE).is_some_and(|value| value == "false")
}

/// `global` selects every cluster, `default` those whose label names it.
fn selector(name: &str) -> ManagedClusterSelector {
    match name {
        GLOBAL_CLUSTER_SET => ManagedClusterSelector {
            selector_type: SelectorType::LabelSelector,
            label_selector: Some(LabelSelector::default()),
        },
        _ => ManagedClusterSelector::default(),
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::cluster::v1beta2::ManagedNamespaceConfig;
    use serde_json::json;

    use super::*;
    use crate::testing::now;

    fn plan(name: &'static str, set: Option<ManagedClusterSet>) -> Plan {
        DefaultSetsController::plan(&Observed { name, set: set.map(Arc::new) }, now())
    }

    fn created(name: &'static str) -> ManagedClusterSet {
        let Plan::Create(set) = plan(name, None) else { panic!() };
        *set
    }

    #[test]
    fn both_sets_are_made_with_nothing_but_their_selectors() {
        let spec = |name| serde_json::to_value(created(name)).unwrap()["spec"]["clusterSelector"].clone();
        assert_eq!(spec("default"), json!({"selectorType": "ExclusiveClusterSetLabel"}));
        assert_eq!(spec("global"), json!({"selectorType": "LabelSelector", "labelSelector": {}}));
        assert_eq!(created("global").metadata.annotations, None);
    }

    fn edited() -> ManagedClusterSet {
        let mut set = created("global");
        set.spec.cluster_selector = selector("default");
        set.spec.managed_namespaces = vec![ManagedNamespaceConfig { name: "n".into() }];
        set
    }

    #[test]
    fn an_edited_selector_is_restored_and_the_rest_of_the_set_stays() {
        let Plan::Restore(set) = plan("global", Some(edited())) else { panic!() };
        assert_eq!(set.spec.cluster_selector, selector("global"));
        assert_eq!(set.spec.managed_namespaces.len(), 1);
    }

    #[test]
    fn a_set_as_it_should_be_or_with_the_annotation_or_that_is_being_deleted_is_left_alone() {
        assert_eq!(plan("default", Some(created("default"))), Plan::Leave);
        let mut own = edited();
        own.annotations_mut().insert(AUTO_UPDATE.into(), "false".into());
        assert_eq!(plan("global", Some(own)), Plan::Leave);
        let mut leaving = edited();
        leaving.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
        assert_eq!(plan("global", Some(leaving)), Plan::Leave);
    }
}
