//! Tells every cluster which namespaces the sets it belongs to want on it.
//!
//! A cluster comes or gets other labels, or a set with managed namespaces changes → which sets does the cluster belong to,
//! and what do they want? → `status.managedNamespaces`, by set and name. What the agent says of a namespace stays with it.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kube::ResourceExt as _;
use ocm_api::cluster::{
    v1::{ClusterSetManagedNamespaceConfig, ManagedCluster},
    v1beta2::ManagedClusterSet,
};
use ocm_runtime::{Cache, Change, ControllerBuilder, ObjectKey, Requeue, StatusController, informer::View, write};

use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
    set_selector::SetSelector,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct ManagedNamespacesController {
    hub: HubContext,
    sets: Cache<ManagedClusterSet>,
    wishes: View<Arc<Wish>>,
    clusters: Cache<ManagedCluster>,
    names: View<()>,
}

/// What a set wants on its clusters.
#[derive(Debug, PartialEq)]
pub(crate) struct Wish {
    /// `None` when nobody can say which clusters belong to it: then what it has got stays.
    membership: Option<SetSelector>,
    namespaces: Vec<String>,
}

/// A cluster, and what each set that wants anything wants.
#[derive(Debug)]
pub(crate) struct Observed {
    cluster: Arc<ManagedCluster>,
    wishes: BTreeMap<String, Arc<Wish>>,
}

impl ManagedNamespacesController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let (sets, clusters) = (caches::sets(&hub.informers), caches::clusters(&hub.informers));
        let (wishes, names) = (sets.view(|set| wish(set).map(Arc::new)), clusters.view(|_| Some(())));
        Self { wishes, names, sets, clusters, hub: hub.clone() }
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
            if changes_wishes(change) { names.read(everyone) } else { Vec::new() }
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let cluster = self.clusters.named(key).filter(|cluster| !write::is_deleting(cluster.as_ref()));
        let wishes = |all: &BTreeMap<ObjectKey, Arc<Wish>>| {
            all.iter().map(|(key, wish)| (key.name.clone(), wish.clone())).collect()
        };
        Ok(cluster.map(|cluster| Observed { cluster, wishes: self.wishes.read(wishes) }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Option<Box<ManagedCluster>> {
        let cluster = &observed.cluster;
        let known = cluster.status.as_ref().map_or(&[][..], |status| &status.managed_namespaces);
        let wanted = wanted(cluster, known, &observed.wishes);
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

/// What a set wants; `None` when that is nothing.
fn wish(set: &ManagedClusterSet) -> Option<Wish> {
    if set.spec.managed_namespaces.is_empty() || write::is_deleting(set) {
        return None;
    }
    let namespaces = set.spec.managed_namespaces.iter().map(|namespace| namespace.name.clone()).collect();
    Some(Wish { membership: SetSelector::of(set).ok(), namespaces })
}

fn changes_wishes(change: Change<'_, ManagedClusterSet>) -> bool {
    match change {
        Change::Added(set) | Change::Deleted(set) => !set.spec.managed_namespaces.is_empty(),
        Change::Updated { old, new } => wish(old) != wish(new),
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
    wishes: &BTreeMap<String, Arc<Wish>>,
) -> Vec<ClusterSetManagedNamespaceConfig> {
    let mut wanted = Vec::new();
    for (set, wish) in wishes {
        let known = || known.iter().filter(|known| known.cluster_set == *set);
        match &wish.membership {
            Some(membership) if membership.includes(cluster.labels()) => {
                wanted.extend(
                    wish.namespaces.iter().map(|name| {
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
        let wishes = sets.iter().filter_map(|set| Some((set.name_any(), Arc::new(wish(set)?)))).collect();
        let observed = Observed { cluster: Arc::new(cluster.clone()), wishes };
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
        let told = plan(&member("a"), &sets()).unwrap();
        let expected = [("a", "z"), ("b", "a"), ("b", "z")].map(|(set, name)| (set.to_owned(), name.to_owned()));
        assert_eq!(listed(&told), expected);
        assert_eq!(plan(&told, &sets()), None, "and is told once");
    }

    #[test]
    fn what_the_agent_said_of_a_namespace_stays_and_what_no_set_wants_goes() {
        let mut told = plan(&member("a"), &sets()).unwrap();
        let available = NewCondition::is_true("NamespaceAvailable", "Applied", "").at(now(), None);
        for namespace in &mut told.status.as_mut().unwrap().managed_namespaces {
            namespace.conditions = vec![available.clone()];
        }
        told.labels_mut().insert(CLUSTER_SET.into(), "elsewhere".into());
        let moved = plan(&told, &sets()).unwrap().status.unwrap().managed_namespaces;
        assert_eq!(moved.iter().map(|left| &*left.cluster_set).collect::<Vec<_>>(), ["b", "b"]);
        assert!(moved.iter().all(|left| left.conditions == [available.clone()]));
    }

    #[test]
    fn a_set_whose_clusters_nobody_can_tell_keeps_what_it_has_and_gets_nothing_new() {
        let told = plan(&member("a"), &sets()).unwrap();
        let mut sets = sets();
        sets[0].spec.cluster_selector = serde_json::from_value(json!({"selectorType": "Newer"})).unwrap();
        assert_eq!(plan(&told, &sets), None);
        assert_eq!(listed(&plan(&member("a"), &sets).unwrap()).len(), 1);
    }
}
