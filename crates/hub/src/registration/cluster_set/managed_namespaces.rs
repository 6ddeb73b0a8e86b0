//! Lists in the status of every cluster the namespaces that its cluster sets ask for.
//!
//! A cluster comes or gets other labels, or a set with managed namespaces changes → which sets select the cluster, and
//! which namespaces do they ask for? → `status.managedNamespaces`, by set and name. The conditions that the agent reports
//! of a namespace are kept.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kube::ResourceExt as _;
use ocm_api::cluster::{
    v1::{ClusterSetManagedNamespaceConfig, ManagedCluster},
    v1beta2::ManagedClusterSet,
};
use ocm_runtime::{Cache, Change, ControllerBuilder, ObjectKey, Requeue, StatusController, informer::View, write};
use ocm_scheduler::SetSelector;

use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct ManagedNamespacesController {
    hub: HubContext,
    sets: Cache<ManagedClusterSet>,
    requested: View<Arc<RequestedNamespaces>>,
    clusters: Cache<ManagedCluster>,
    names: View<()>,
}

/// The namespaces that a set asks for on its clusters.
#[derive(Debug, PartialEq)]
pub(crate) struct RequestedNamespaces {
    /// `None` if the set's selector cannot be read: then the namespaces that clusters have for it are kept.
    selector: Option<SetSelector>,
    namespaces: Vec<String>,
}

/// A cluster, and the namespaces that each set asks for.
#[derive(Debug)]
pub(crate) struct Observed {
    cluster: Arc<ManagedCluster>,
    requested: BTreeMap<String, Arc<RequestedNamespaces>>,
}

impl ManagedNamespacesController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let (sets, clusters) = (caches::sets(&hub.informers), caches::clusters(&hub.informers));
        let (requested, names) = (sets.view(|set| requested_by(set).map(Arc::new)), clusters.view(|_| Some(())));
        Self { requested, names, sets, clusters, hub: hub.clone() }
    }
}

impl StatusController for ManagedNamespacesController {
    const NAME: &'static str = "managed-namespaces";
    type Key = String;
    type Observed = Observed;
    type Plan = Option<Box<ManagedCluster>>;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.watches(&self.clusters, |change| concerns(change).then(|| change.object().name_any()));
        let names = self.names.clone();
        builder.watches(&self.sets, move |change| {
            let everyone = |names: &BTreeMap<ObjectKey, ()>| names.keys().map(|key| key.name.clone()).collect();
            if changes_request(change) { names.read(everyone) } else { Vec::new() }
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let cluster = self.clusters.named(key).filter(|cluster| !write::is_deleting(cluster.as_ref()));
        let requested = |all: &BTreeMap<ObjectKey, Arc<RequestedNamespaces>>| {
            all.iter().map(|(key, set_asks)| (key.name.clone(), set_asks.clone())).collect()
        };
        Ok(cluster.map(|cluster| Observed { cluster, requested: self.requested.read(requested) }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Option<Box<ManagedCluster>> {
        let cluster = &observed.cluster;
        let known = cluster.status.as_ref().map_or(&[][..], |status| &status.managed_namespaces);
        let wanted = wanted(cluster, known, &observed.requested);
        (wanted != known).then(|| {
            let mut new = ManagedCluster::clone(cluster);
            new.status.get_or_insert_default().managed_namespaces = wanted;
            Box::new(new)
        })
    }

    async fn report(&self, observed: &Observed, new: Option<Box<ManagedCluster>>, _: Timestamp) -> Result<Requeue> {
        if let Some(new) = new {
            self.hub.writer().patch_status(&observed.cluster, &new).await?;
        }
        Ok(Requeue::OnChange)
    }
}

/// The namespaces that a set asks for; `None` if it asks for none.
fn requested_by(set: &ManagedClusterSet) -> Option<RequestedNamespaces> {
    if set.spec.managed_namespaces.is_empty() || write::is_deleting(set) {
        return None;
    }
    let namespaces = set.spec.managed_namespaces.iter().map(|namespace| namespace.name.clone()).collect();
    Some(RequestedNamespaces { selector: SetSelector::of(set).ok(), namespaces })
}

fn changes_request(change: Change<'_, ManagedClusterSet>) -> bool {
    match change {
        Change::Added(set) | Change::Deleted(set) => !set.spec.managed_namespaces.is_empty(),
        Change::Updated { old, new } => requested_by(old) != requested_by(new),
    }
}

fn concerns(change: Change<'_, ManagedCluster>) -> bool {
    let listed = |cluster: &ManagedCluster| {
        let all = cluster.status.iter().flat_map(|status| &status.managed_namespaces);
        all.map(|namespace| (namespace.cluster_set.clone(), namespace.name.clone())).collect::<Vec<_>>()
    };
    match change {
        Change::Added(_) => true,
        Change::Updated { old, new } => old.labels() != new.labels() || listed(old) != listed(new),
        Change::Deleted(_) => false,
    }
}

fn wanted(
    cluster: &ManagedCluster,
    known: &[ClusterSetManagedNamespaceConfig],
    requested: &BTreeMap<String, Arc<RequestedNamespaces>>,
) -> Vec<ClusterSetManagedNamespaceConfig> {
    let mut wanted = Vec::new();
    for (set, set_asks) in requested {
        let known = || known.iter().filter(|known| known.cluster_set == *set);
        match &set_asks.selector {
            Some(selector) if selector.includes(cluster.labels()) => {
                wanted.extend(
                    set_asks.namespaces.iter().map(|name| {
                        known().find(|known| known.name == *name).cloned().unwrap_or_else(|| new(set, name))
                    }),
                );
            }
            Some(_) => {}
            None => wanted.extend(known().cloned()),
        }
    }
    wanted.sort_by(|one, other| (&one.cluster_set, &one.name).cmp(&(&other.cluster_set, &other.name)));
    wanted
}

fn new(set: &str, name: &str) -> ClusterSetManagedNamespaceConfig {
    ClusterSetManagedNamespaceConfig { cluster_set: set.into(), name: name.into(), conditions: Vec::new() }
}

#[cfg(test)]
mod tests {
    use ocm_api::labels::CLUSTER_SET;
    use ocm_runtime::conditions::NewCondition;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{cluster, now};

    fn set(name: &str, spec: Value) -> ManagedClusterSet {
        ManagedClusterSet::new(name, serde_json::from_value(spec).unwrap())
    }

    fn plan(cluster: &ManagedCluster, sets: &[ManagedClusterSet]) -> Option<ManagedCluster> {
        let requested = sets.iter().filter_map(|set| Some((set.name_any(), Arc::new(requested_by(set)?)))).collect();
        let observed = Observed { cluster: Arc::new(cluster.clone()), requested };
        ManagedNamespacesController::plan(&observed, now()).map(|new| *new)
    }

    fn listed(cluster: &ManagedCluster) -> Vec<(String, String)> {
        let all = cluster.status.iter().flat_map(|status| &status.managed_namespaces);
        all.map(|namespace| (namespace.cluster_set.clone(), namespace.name.clone())).collect()
    }

    fn member(set: &str) -> ManagedCluster {
        let mut cluster = cluster("c1");
        cluster.labels_mut().insert(CLUSTER_SET.into(), set.into());
        cluster
    }

    fn sets() -> [ManagedClusterSet; 3] {
        let all = json!({"selectorType": "LabelSelector", "labelSelector": {}});
        [
            set("b", json!({"clusterSelector": all, "managedNamespaces": [{"name": "z"}, {"name": "a"}]})),
            set("a", json!({"managedNamespaces": [{"name": "z"}]})),
            set("other", json!({"managedNamespaces": [{"name": "x"}]})),
        ]
    }

    #[test]
    fn a_cluster_gets_the_namespaces_of_its_sets_by_set_and_name() {
        let listing = plan(&member("a"), &sets()).unwrap();
        let expected = [("a", "z"), ("b", "a"), ("b", "z")].map(|(set, name)| (set.to_owned(), name.to_owned()));
        assert_eq!(listed(&listing), expected);
        assert_eq!(plan(&listing, &sets()), None, "and it is written once");
    }

    #[test]
    fn conditions_of_the_agent_stay_and_namespaces_that_no_set_asks_for_go() {
        let mut listing = plan(&member("a"), &sets()).unwrap();
        let available = NewCondition::is_true("NamespaceAvailable", "Applied", "").at(now(), None);
        for namespace in &mut listing.status.as_mut().unwrap().managed_namespaces {
            namespace.conditions = vec![available.clone()];
        }
        listing.labels_mut().insert(CLUSTER_SET.into(), "elsewhere".into());
        let moved = plan(&listing, &sets()).unwrap().status.unwrap().managed_namespaces;
        assert_eq!(moved.iter().map(|left| &*left.cluster_set).collect::<Vec<_>>(), ["b", "b"]);
        assert!(moved.iter().all(|left| left.conditions == [available.clone()]));
    }

    #[test]
    fn a_set_whose_selector_cannot_be_read_keeps_what_it_has_and_gets_nothing_new() {
        let listing = plan(&member("a"), &sets()).unwrap();
        let mut sets = sets();
        sets[0].spec.cluster_selector = serde_json::from_value(json!({"selectorType": "Newer"})).unwrap();
        assert_eq!(plan(&listing, &sets), None);
        assert_eq!(listed(&plan(&member("a"), &sets).unwrap()).len(), 1);
    }
}
