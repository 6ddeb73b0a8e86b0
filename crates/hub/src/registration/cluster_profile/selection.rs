//! Which clusters a namespace may use: those of the sets that are bound to it.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use ocm_api::{
    cluster::{
        v1::ManagedCluster,
        v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
    },
    conditions::{
        cluster::{AVAILABLE, JOINED},
        set_binding::BOUND,
    },
    multicluster::v1alpha1::ClusterProfile,
};
use ocm_runtime::{Cache, Change, Informers, ObjectKey, conditions, informer::View, write};
use ocm_scheduler::SetSelector;

use crate::{caches, registration::status::condition};

type Labels = BTreeMap<String, String>;

/// Whether a namespace may use a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selected {
    Yes,
    No,
    /// A set or a binding that decides it cannot be read, or is not known yet: existing profiles are kept.
    Unknown,
}

/// Sets, bindings and the labels of clusters. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    pub(super) bindings: Cache<ManagedClusterSetBinding>,
    pub(super) sets: Cache<ManagedClusterSet>,
    /// The set of each binding that is bound.
    bound: View<String>,
    /// `None` for a set whose selector cannot be read.
    selectors: View<Option<SetSelector>>,
    /// Of the clusters that are not being deleted.
    labels: View<Labels>,
}

impl Selection {
    pub(super) fn new(informers: &Informers) -> Self {
        let (bindings, sets) = (caches::set_bindings(informers), caches::sets(informers));
        Self {
            bound: bindings.view(bound_set),
            selectors: sets.view(|set| Some(SetSelector::of(set).ok())),
            labels: caches::clusters(informers).view(|cluster| usable(cluster).cloned()),
            bindings,
            sets,
        }
    }

    /// Whether the namespace may use a cluster with these labels.
    pub(super) fn of(&self, namespace: &str, labels: &Labels) -> Selected {
        let sets = self.bound.read(|all| sets_of(all, namespace));
        let selected = self.selectors.read(|selectors| selects(selectors, &sets, labels));
        match selected {
            Selected::No if self.bindings.left_out_in(namespace).is_some() => Selected::Unknown,
            selected => selected,
        }
    }

    /// The profiles that a change of a cluster can change.
    pub(super) fn of_cluster(&self, change: Change<'_, ManagedCluster>) -> Vec<ObjectKey> {
        let (before, after) = match change {
            Change::Added(new) => (None, usable(new)),
            Change::Updated { old, new } if is_same(old, new) => return Vec::new(),
            Change::Updated { old, new } => (usable(old), usable(new)),
            Change::Deleted(old) => (usable(old), None),
        };
        let name = change.object().name_any();
        let sets = self
            .selectors
            .read(|all| names(all, |it| [before, after].iter().flatten().any(|labels| it.includes(labels))));
        let namespaces = self.bound.read(|all| namespaces_of(all, &sets));
        namespaces.into_iter().map(|namespace| ObjectKey::new(namespace, &name)).collect()
    }

    /// The namespaces whose clusters a change of a binding can change.
    pub(super) fn of_binding(&self, change: Change<'_, ManagedClusterSetBinding>) -> BTreeSet<String> {
        let is_relevant = match change {
            Change::Updated { old, new } => bound_set(old) != bound_set(new),
            Change::Added(_) | Change::Deleted(_) => true,
        };
        is_relevant.then(|| change.object().namespace().unwrap_or_default()).into_iter().collect()
    }

    /// The namespaces whose clusters a change of a set can change.
    pub(super) fn of_set(&self, change: Change<'_, ManagedClusterSet>) -> BTreeSet<String> {
        let is_relevant = match change {
            Change::Updated { old, new } => old.spec.cluster_selector != new.spec.cluster_selector,
            Change::Added(_) | Change::Deleted(_) => true,
        };
        let set = is_relevant.then(|| change.object().name_any()).into_iter().collect();
        self.bound.read(|all| namespaces_of(all, &set))
    }

    /// The profiles that exist in these namespaces, and those that should.
    pub(super) fn keys(&self, namespaces: &BTreeSet<String>, profiles: &Cache<ClusterProfile>) -> Vec<ObjectKey> {
        if namespaces.is_empty() {
            return Vec::new();
        }
        let existing = profiles.keys().into_iter().filter(|key| namespaces.contains(&key.namespace));
        existing.chain(namespaces.iter().flat_map(|namespace| self.clusters_of(namespace))).collect()
    }

    /// The clusters that a namespace may use.
    fn clusters_of(&self, namespace: &str) -> Vec<ObjectKey> {
        let sets = self.bound.read(|all| sets_of(all, namespace));
        self.selectors.read(|selectors| {
            let may_use = |labels: &Labels| selects(selectors, &sets, labels) == Selected::Yes;
            self.labels.read(|all| {
                let used = all.iter().filter(|(_, labels)| may_use(labels));
                used.map(|(key, _)| ObjectKey::new(namespace, &key.name)).collect()
            })
        })
    }
}

/// The set that a binding binds.
fn bound_set(binding: &ManagedClusterSetBinding) -> Option<String> {
    let is_bound = binding.status.as_ref().is_some_and(|status| conditions::is_true(&status.conditions, BOUND));
    is_bound.then(|| binding.spec.cluster_set.clone())
}

/// The labels of a cluster that is not being deleted.
fn usable(cluster: &ManagedCluster) -> Option<&Labels> {
    (!write::is_deleting(cluster)).then(|| cluster.labels())
}

/// Whether two versions of a cluster lead to the same profiles.
fn is_same(old: &ManagedCluster, new: &ManagedCluster) -> bool {
    let facts = |cluster: &ManagedCluster| {
        let status = cluster.status.as_ref();
        let conditions = [AVAILABLE, JOINED].map(|type_| condition(cluster, type_).cloned());
        (status.map(|status| (status.version.clone(), status.cluster_claims.clone())), conditions)
    };
    (usable(old), &old.metadata.uid) == (usable(new), &new.metadata.uid) && facts(old) == facts(new)
}

fn sets_of(bound: &BTreeMap<ObjectKey, String>, namespace: &str) -> Vec<String> {
    let from_here = bound.range(ObjectKey::new(namespace, "")..);
    from_here.take_while(|(key, _)| key.namespace == namespace).map(|(_, set)| set.clone()).collect()
}

fn namespaces_of(bound: &BTreeMap<ObjectKey, String>, sets: &BTreeSet<String>) -> BTreeSet<String> {
    bound.iter().filter(|(_, set)| sets.contains(*set)).map(|(key, _)| key.namespace.clone()).collect()
}

type Selectors = BTreeMap<ObjectKey, Option<SetSelector>>;

fn names(selectors: &Selectors, is_wanted: impl Fn(&SetSelector) -> bool) -> BTreeSet<String> {
    let wanted = selectors.iter().filter(|(_, selector)| selector.as_ref().is_some_and(&is_wanted));
    wanted.map(|(key, _)| key.name.clone()).collect()
}

/// Whether one of the sets has clusters with these labels. A bound set that is not known was deleted, or
/// its event has not arrived yet.
fn selects(selectors: &Selectors, sets: &[String], labels: &Labels) -> Selected {
    let mut selected = Selected::No;
    for set in sets {
        match selectors.get(&ObjectKey::new("", set)) {
            Some(Some(selector)) if selector.includes(labels) => return Selected::Yes,
            Some(Some(_)) => {}
            Some(None) | None => selected = Selected::Unknown,
        }
    }
    selected
}

#[cfg(test)]
mod tests {
    use ocm_api::labels::CLUSTER_SET;
    use serde_json::json;

    use super::*;
    use crate::testing::{cluster, deleting, with_condition};

    fn labels(set: &str) -> Labels {
        [(CLUSTER_SET.to_owned(), set.to_owned())].into()
    }

    fn selectors() -> Selectors {
        let exclusive = |name: &str| (ObjectKey::new("", name), Some(SetSelector::Exclusive(name.into())));
        [exclusive("a"), exclusive("b"), (ObjectKey::new("", "unread"), None)].into()
    }

    fn selected(sets: &[&str], cluster_of: &str) -> Selected {
        let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
        selects(&selectors(), &sets, &labels(cluster_of))
    }

    #[test]
    fn a_namespace_may_use_the_clusters_of_all_its_sets() {
        assert_eq!(selected(&["a", "b"], "b"), Selected::Yes);
        assert_eq!(selected(&["a"], "b"), Selected::No);
        assert_eq!(selected(&[], "b"), Selected::No);
    }

    #[test]
    fn a_set_that_is_not_known_or_cannot_be_read_decides_nothing() {
        assert_eq!(selected(&["unread"], "a"), Selected::Unknown);
        assert_eq!(selected(&["gone", "b"], "a"), Selected::Unknown);
        assert_eq!(selected(&["unread", "a"], "a"), Selected::Yes);
    }

    #[test]
    fn only_a_binding_that_is_bound_counts() {
        let binding = |status: &str| -> ManagedClusterSetBinding {
            let condition = json!({"type": "Bound", "status": status, "reason": "R", "message": "",
                "lastTransitionTime": "2027-01-15T08:00:00Z"});
            let object =
                json!({"metadata": {"name": "a"}, "spec": {"clusterSet": "a"}, "status": {"conditions": [condition]}});
            serde_json::from_value(object).unwrap()
        };
        assert_eq!(bound_set(&binding("True")).as_deref(), Some("a"));
        assert_eq!(bound_set(&binding("False")), None);
        assert_eq!(bound_set(&ManagedClusterSetBinding::default()), None);
    }

    #[test]
    fn the_namespaces_of_a_set_and_the_sets_of_a_namespace() {
        let bound = [("n1", "a"), ("n1", "b"), ("n10", "a")];
        let bound = bound.map(|(namespace, set)| (ObjectKey::new(namespace, set), set.to_owned())).into();
        assert_eq!(sets_of(&bound, "n1"), ["a", "b"]);
        let of_b: Vec<_> = namespaces_of(&bound, &["b".to_owned()].into()).into_iter().collect();
        assert_eq!(of_b, ["n1"]);
    }

    #[test]
    fn labels_facts_and_deletion_of_a_cluster_count_and_its_lease_and_taints_do_not() {
        let old = cluster("c1");
        let mut moved = old.clone();
        moved.labels_mut().insert(CLUSTER_SET.into(), "a".into());
        let available = with_condition(&old, AVAILABLE, "True", "Available");
        for new in [&moved, &available, &deleting(old.clone(), &["f"])] {
            assert!(!is_same(&old, new), "{new:?}");
        }
        let mut accepted = with_condition(&old, "HubAcceptedManagedCluster", "True", "Accepted");
        assert!(!is_same(&old, &available));
        accepted.spec.hub_accepts_client = true;
        assert!(is_same(&accepted.clone(), &{
            accepted.spec.lease_duration_seconds = Some(5);
            accepted
        }));
    }
}
