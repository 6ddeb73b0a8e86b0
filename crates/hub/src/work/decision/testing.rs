//! Builders for unit tests.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use ocm_runtime::ObjectKey;
use serde_json::{Value, json};

use super::{Decision, Failures, Followed, Inputs, State, Works, decide};
use crate::{
    decisions::{DecisionGroups, GroupKey, PlacementSnapshot, testing::chosen},
    testing::now,
    work::{
        facts::{ReplicaSet, Work, label_of},
        kinds::{Digest, ReplicaWork},
    },
};

/// Set `fleet/settings` of that spec, in addition to a template with one object of this name.
pub(crate) fn set_named(name: &str, object: &str, spec: &Value) -> ReplicaSet {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": object}});
    let mut all = json!({"manifestWorkTemplate": {"workload": {"manifests": [manifest]}}, "placementRefs": []});
    all.as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap());
    let finalizers = ["work.open-cluster-management.io/manifest-work-cleanup"];
    let metadata = json!({"name": name, "namespace": "fleet", "uid": "uid", "finalizers": finalizers});
    ReplicaSet::of(&serde_json::from_value(json!({"metadata": metadata, "spec": all})).unwrap())
}

/// Set `fleet/settings` that follows these placements, each with a strategy.
pub(crate) fn set(object: &str, placements: &[(&str, Value)]) -> ReplicaSet {
    let refs: Vec<_> =
        placements.iter().map(|(name, strategy)| json!({"name": name, "rolloutStrategy": strategy})).collect();
    set_named("settings", object, &json!({"placementRefs": refs}))
}

pub(crate) fn all() -> Value {
    json!({"type": "All"})
}

/// So many clusters at a time.
pub(crate) fn progressive(max_concurrency: usize) -> Value {
    json!({"type": "Progressive", "progressive": {"maxConcurrency": max_concurrency}})
}

/// A condition of the current generation: type, status and since when.
pub(crate) type Told<'a> = (&'a str, &'a str);

/// What an agent says of a work that is done, with a condition rule for Progressing.
pub(crate) const DONE: &[Told<'_>] = &[("Applied", "True"), ("Available", "True"), ("Progressing", "False")];
/// The same while it is in progress.
pub(crate) const ACTIVE: &[Told<'_>] = &[("Applied", "True"), ("Progressing", "True")];

/// A work of a set, created so many seconds after [`now`].
pub(crate) fn work(
    set: &ReplicaSet,
    (cluster, name): (&str, &str),
    placement: &str,
    created: i64,
    conditions: &[Told<'_>],
) -> Work {
    let at = now() + SignedDuration::from_secs(created);
    let conditions: Vec<_> = conditions.iter().map(|(type_, status)| condition(type_, status, 1, at)).collect();
    let labels = json!({
        "work.open-cluster-management.io/manifestworkreplicaset": label_of(&set.key),
        "work.open-cluster-management.io/placementname": placement,
    });
    let metadata = json!({"namespace": cluster, "name": name, "uid": format!("{cluster}/{name}"), "generation": 1,
        "creationTimestamp": at.to_string(), "labels": labels});
    let spec = serde_json::to_value(&set.template.spec).unwrap();
    let work = json!({"metadata": metadata, "spec": spec, "status": {"conditions": conditions}});
    Work::of(&serde_json::from_value::<ReplicaWork>(work).unwrap()).unwrap().1
}

pub(crate) fn condition(type_: &str, status: &str, generation: i64, since: Timestamp) -> Value {
    json!({"type": type_, "status": status, "reason": "r", "message": "", "observedGeneration": generation,
        "lastTransitionTime": since.to_string()})
}

/// A set, and what decisions on it depend on.
pub(crate) struct World {
    pub(crate) set: ReplicaSet,
    /// The clusters of each placement by group; those that are missing here do not exist.
    pub(crate) placements: BTreeMap<&'static str, Vec<Vec<String>>>,
    pub(crate) has_unreadable: bool,
    pub(crate) works: Works,
    pub(crate) failures: Failures,
    pub(crate) before: Decision,
    pub(crate) now: Timestamp,
}

impl World {
    pub(crate) fn new(set: ReplicaSet) -> Self {
        Self {
            set,
            placements: BTreeMap::new(),
            has_unreadable: false,
            works: Works::new(),
            failures: Failures::new(),
            before: Decision::default(),
            now: now(),
        }
    }

    /// With a placement that has chosen these clusters, in one group.
    pub(crate) fn choosing(mut self, placement: &'static str, clusters: &[&str]) -> Self {
        self.choose(placement, &[clusters]);
        self
    }

    pub(crate) fn choose(&mut self, placement: &'static str, groups: &[&[&str]]) {
        let owned = |group: &&[&str]| group.iter().map(|cluster| (*cluster).to_owned()).collect();
        self.placements.insert(placement, groups.iter().map(owned).collect());
    }

    /// A work of the set as it is now, on a cluster, named like it.
    pub(crate) fn add(&mut self, cluster: &str, placement: &str, conditions: &[Told<'_>]) {
        self.put(work(&self.set, (cluster, placement), placement, 0, conditions));
    }

    pub(crate) fn put(&mut self, work: Work) {
        self.works.insert(work.key.clone(), Arc::new(work));
    }

    pub(crate) fn edit(&mut self, cluster: &str, name: &str, edit: impl FnOnce(&mut Work)) {
        edit(Arc::make_mut(self.works.get_mut(&ObjectKey::new(cluster, name)).unwrap()));
    }

    /// Another template, that no work has yet.
    pub(crate) fn change_template(&mut self, object: &str) {
        let template = Arc::make_mut(&mut self.set.template);
        template.spec = set_named("settings", object, &json!({})).template.spec.clone();
        template.digest = Digest::of(&template.spec);
    }

    pub(crate) fn inputs(&self) -> Inputs {
        let placements = self.set.placements.iter().map(|one| self.placements.get(&*one.name).map(|it| followed(it)));
        Inputs {
            placements: placements.collect(),
            has_unreadable: self.has_unreadable,
            works: Arc::new(self.works.clone()),
            failures: Arc::new(self.failures.clone()),
            before: Arc::new(self.before.clone()),
            set: Arc::new(self.set.clone()),
        }
    }

    /// Decides, and remembers that.
    pub(crate) fn decide(&mut self) -> Decision {
        self.before = decide(&self.inputs(), self.now);
        self.before.clone()
    }

    /// What is desired, as `cluster placement state`, without what is to stay as it is.
    pub(crate) fn desired(&mut self) -> Vec<String> {
        shown(&self.decide())
    }

    pub(crate) fn pass(&mut self, time: SignedDuration) {
        self.now += time;
    }
}

pub(crate) fn shown(decision: &Decision) -> Vec<String> {
    let state = |state: &State| match state {
        State::Current => "current",
        State::Kept => "kept",
        State::Leaving { .. } => "leaving",
        State::Absent { .. } => "absent",
    };
    let shown =
        |((cluster, placement), desired): (&(_, _), &State)| format!("{cluster} {placement} {}", state(desired));
    decision.desired.iter().map(shown).collect()
}

fn followed(groups: &[Vec<String>]) -> Followed {
    let clusters: Vec<&str> = groups.iter().flatten().map(String::as_str).collect();
    let selected = i32::try_from(clusters.len()).unwrap();
    let snapshot = PlacementSnapshot { selected, decision_groups: groups.len(), ..chosen(&clusters) };
    let listed = groups.iter().enumerate().flat_map(|(index, group)| {
        let key = GroupKey { name: "".into(), index: i32::try_from(index).unwrap() };
        group.iter().map(move |cluster| (key.clone(), cluster.as_str().into()))
    });
    Followed { snapshot, groups: Arc::new(DecisionGroups::new(listed)), problem: None }
}
