//! Reports how many clusters each cluster set has.
//!
//! A set changes, or a cluster comes, goes or gets other labels → count the clusters the set selects → condition
//! `ClusterSetEmpty`. Every cluster counts, accepted or not. If the selector of a set cannot be read, the condition keeps
//! its status and reason, and its message says why. While many clusters change, a set is counted once a second.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, ResourceExt as _};
use ocm_api::{
    cluster::{v1::ManagedCluster, v1beta2::ManagedClusterSet},
    conditions::set::EMPTY,
    labels::CLUSTER_SET,
    reasons::set as reasons,
};
use ocm_apimachinery::selector::Selector;
use ocm_runtime::{
    Cache, Change, ControllerBuilder, ObjectKey, Requeue, StatusController,
    conditions::{self, NewCondition},
    informer::View,
    write,
};
use ocm_scheduler::{SetError, SetSelector};

use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
    pace::Pace,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct ClusterSetController {
    hub: HubContext,
    sets: Cache<ManagedClusterSet>,
    clusters: Cache<ManagedCluster>,
    labels: View<Labels>,
    /// Of the sets that select by labels.
    selectors: View<Selector>,
    pace: Pace<String>,
}

/// A set, and how many clusters it has.
#[derive(Debug)]
pub(crate) struct Observed {
    set: Arc<ManagedClusterSet>,
    /// Or why they could not be counted.
    members: Result<usize, SetError>,
}

impl ClusterSetController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let clusters = caches::clusters(&hub.informers);
        let labels = clusters.view(|cluster| Some(cluster.labels().clone()));
        let sets = caches::sets(&hub.informers);
        let pace = Pace::default();
        Self { selectors: sets.view(label_selector), sets, clusters, labels, pace, hub: hub.clone() }
    }
}

impl StatusController for ClusterSetController {
    const NAME: &'static str = "cluster-set";
    type Key = String;
    type Observed = Observed;
    type Plan = Condition;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let (pace, queue) = (self.pace.clone(), builder.queue());
        builder.watches(&self.sets, move |change| {
            let name = change.object().name_any();
            match change {
                // Nearly always what was written here: to count again at once would write again while clusters change.
                Change::Updated { old, new } if is_status_only(old, new) => {
                    pace.add(&queue, name);
                    None
                }
                Change::Added(_) | Change::Updated { .. } => Some(name),
                Change::Deleted(_) => {
                    pace.forget(&name);
                    None
                }
            }
        });
        let (selectors, pace, queue) = (self.selectors.clone(), self.pace.clone(), builder.queue());
        builder.watches(&self.clusters, move |change| {
            selectors.read(|all| touched(all, change)).into_iter().for_each(|set| pace.add(&queue, set));
            None
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let Some(set) = self.sets.named(key).filter(|set| !write::is_deleting(set.as_ref())) else {
            self.pace.forget(key);
            return Ok(None);
        };
        self.pace.begin(key);
        let count = |selector: SetSelector| {
            self.labels.read(|all| all.values().filter(|labels| selector.includes(labels)).count())
        };
        Ok(Some(Observed { members: SetSelector::of(&set).map(count), set }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Condition {
        match &observed.members {
            Ok(members) => counted(*members).at(now, None),
            Err(error) => uncounted(&observed.set, error, now),
        }
    }

    async fn report(&self, observed: &Observed, condition: Condition, _: Timestamp) -> Result<Requeue> {
        let mut new = ManagedClusterSet::clone(&observed.set);
        conditions::put(&mut new.status.get_or_insert_default().conditions, condition);
        let api: Api<ManagedClusterSet> = Api::all(self.hub.client.clone());
        if let Some(written) = write::patch_status(&api, &observed.set, &new).await? {
            self.sets.record_write(written);
        }
        Ok(Requeue::OnChange)
    }
}

fn is_status_only(old: &ManagedClusterSet, new: &ManagedClusterSet) -> bool {
    old.metadata.uid == new.metadata.uid && old.metadata.generation == new.metadata.generation
}

fn counted(members: usize) -> NewCondition {
    match members {
        0 => NewCondition::is_true(EMPTY, reasons::NO_CLUSTER_MATCHED, "No ManagedCluster belongs to this set"),
        1 => NewCondition::is_false(EMPTY, reasons::CLUSTERS_SELECTED, "1 ManagedCluster belongs to this set"),
        n => {
            NewCondition::is_false(EMPTY, reasons::CLUSTERS_SELECTED, format!("{n} ManagedClusters belong to this set"))
        }
    }
}

/// The condition as it was, with a message that says what to correct.
fn uncounted(set: &ManagedClusterSet, error: &SetError, now: Timestamp) -> Condition {
    let known = set.status.as_ref().and_then(|status| conditions::find(&status.conditions, EMPTY));
    let mut condition = known.cloned().unwrap_or_else(|| counted(0).at(now, None));
    condition.message = format!("The clusters of this set cannot be counted: {error}. Correct spec.clusterSelector");
    condition
}

/// The sets whose number of clusters a change of a cluster changes. Reads each selector once, however many clusters there
/// are, and of the exclusive sets only those that the cluster's label names.
fn touched(selectors: &Selectors, change: Change<'_, ManagedCluster>) -> BTreeSet<String> {
    match change {
        Change::Added(new) => differing(selectors, None, Some(new.labels())),
        Change::Updated { old, new } if old.labels() == new.labels() => BTreeSet::new(),
        Change::Updated { old, new } => differing(selectors, Some(old.labels()), Some(new.labels())),
        Change::Deleted(old) => differing(selectors, Some(old.labels()), None),
    }
}

type Labels = BTreeMap<String, String>;
type Selectors = BTreeMap<ObjectKey, Selector>;

fn differing(selectors: &Selectors, before: Option<&Labels>, after: Option<&Labels>) -> BTreeSet<String> {
    let [old, new] = [before, after].map(|labels| labels.and_then(|labels| labels.get(CLUSTER_SET)));
    let mut sets: BTreeSet<_> = [old, new].into_iter().filter(|_| old != new).flatten().cloned().collect();
    let matches = |selector: &Selector, labels: Option<&Labels>| labels.is_some_and(|labels| selector.matches(labels));
    let differ = selectors.iter().filter(|(_, selector)| matches(selector, before) != matches(selector, after));
    sets.extend(differ.map(|(key, _)| key.name.clone()));
    sets
}

/// The selector of a set that selects by labels.
fn label_selector(set: &ManagedClusterSet) -> Option<Selector> {
    match SetSelector::of(set) {
        Ok(SetSelector::Selected(selector)) => Some(selector),
        Ok(SetSelector::Exclusive(_)) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::cluster::v1beta2::{ManagedClusterSetSpec, SelectorType};

    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{cluster, now};

    fn set(name: &str) -> ManagedClusterSet {
        ManagedClusterSet::new(name, ManagedClusterSetSpec::default())
    }

    fn said_of(set: ManagedClusterSet, members: Result<usize, SetError>) -> (String, String) {
        let condition = ClusterSetController::plan(&Observed { set: Arc::new(set), members }, now());
        (condition.reason, format!("{}: {}", condition.status, condition.message))
    }

    fn said(members: usize) -> (String, String) {
        said_of(set("s"), Ok(members))
    }

    #[test]
    fn a_set_says_how_many_clusters_it_has() {
        assert_eq!(said(0), ("NoClusterMatched".into(), "True: No ManagedCluster belongs to this set".into()));
        assert_eq!(said(1), ("ClustersSelected".into(), "False: 1 ManagedCluster belongs to this set".into()));
        assert_eq!(said(7), ("ClustersSelected".into(), "False: 7 ManagedClusters belong to this set".into()));
    }

    #[test]
    fn a_selector_that_cannot_be_read_is_named_and_changes_nothing_else() {
        let mut unread = set("s");
        unread.spec.cluster_selector.selector_type = SelectorType::Other("Newer".into());
        let said = |set: &ManagedClusterSet| said_of(set.clone(), SetSelector::of(set).map(|_| 0));
        let (reason, message) = said(&unread);
        assert_eq!(reason, "NoClusterMatched");
        assert!(message.starts_with("True: The clusters of this set cannot be counted: "), "{message}");
        assert!(message.contains("\"Newer\" is not known. Correct spec.clusterSelector"), "{message}");
        conditions::put(&mut unread.status.get_or_insert_default().conditions, counted(7).at(now(), None));
        let (reason, message) = said(&unread);
        assert_eq!(reason, "ClustersSelected");
        assert!(message.starts_with("False: The clusters of this set cannot be counted: "), "{message}");
    }

    fn labelled(key: &str, value: &str) -> Arc<ManagedCluster> {
        let mut cluster = cluster("c1");
        cluster.labels_mut().insert(key.into(), value.into());
        Arc::new(cluster)
    }

    fn selecting(name: &str, labels: &Value) -> (ObjectKey, Selector) {
        let selector = json!({"selectorType": "LabelSelector", "labelSelector": {"matchLabels": labels}});
        let mut set = set(name);
        set.spec.cluster_selector = serde_json::from_value(selector).unwrap();
        (ObjectKey::of(&set), label_selector(&set).unwrap())
    }

    #[test]
    fn a_cluster_that_moves_touches_the_set_it_leaves_and_the_one_it_joins() {
        let selectors = Selectors::from([selecting("all", &json!({})), selecting("red", &json!({"colour": "red"}))]);
        let touched = |change: Change<'_, ManagedCluster>| touched(&selectors, change).into_iter().collect::<Vec<_>>();
        let (a, b, red) = (labelled(CLUSTER_SET, "a"), labelled(CLUSTER_SET, "b"), labelled("colour", "red"));
        assert_eq!(touched(Change::Updated { old: &a, new: &b }), ["a", "b"]);
        assert_eq!(touched(Change::Updated { old: &a, new: &a }), [""; 0]);
        assert_eq!(touched(Change::Updated { old: &a, new: &red }), ["a", "red"]);
        assert_eq!(touched(Change::Added(&a)), ["a", "all"]);
        assert_eq!(touched(Change::Deleted(&red)), ["all", "red"]);
    }
}
