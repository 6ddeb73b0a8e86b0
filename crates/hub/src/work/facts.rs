//! The fields of replica sets and their works that decisions depend on.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use ocm_api::{
    conditions::{status, work as types},
    finalizers, labels,
    work::{
        v1::ManifestWorkSpec,
        v1alpha1::{CascadeDeletionPolicy, LocalPlacementReference, ManifestWorkReplicaSet},
    },
};
use ocm_apimachinery::labels::is_value;
use ocm_runtime::{ObjectKey, conditions, write};

use super::kinds::{Digest, ReplicaWork};
use crate::rollout;

pub(crate) type Labels = BTreeMap<String, String>;

/// What a ManifestWorkReplicaSet asks for.
#[derive(Clone, Debug)]
pub(crate) struct ReplicaSet {
    pub(crate) key: ObjectKey,
    pub(crate) uid: String,
    pub(crate) is_deleting: bool,
    pub(crate) has_finalizer: bool,
    /// Whether its deletion waits until its works are gone.
    pub(crate) is_foreground: bool,
    pub(crate) template: Arc<Template>,
    /// In their order.
    pub(crate) placements: Vec<PlacementRef>,
}

/// What its works are made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template {
    pub(crate) spec: ManifestWorkSpec,
    pub(crate) digest: Digest,
    /// The labels of the set, and the one by which its works are found.
    pub(crate) labels: Labels,
    /// The name of the set.
    pub(crate) name: String,
}

/// A placement whose clusters get a work.
#[derive(Clone, Debug)]
pub(crate) struct PlacementRef {
    pub(crate) name: Arc<str>,
    pub(crate) strategy: rollout::Strategy,
    /// Why it cannot be followed.
    pub(crate) problem: Option<String>,
    /// Whether an entry before names the same placement.
    pub(crate) is_repeated: bool,
}

impl ReplicaSet {
    pub(crate) fn of(set: &ManifestWorkReplicaSet) -> Self {
        Self {
            key: ObjectKey::of(set),
            uid: set.uid().unwrap_or_default(),
            is_deleting: write::is_deleting(set),
            has_finalizer: write::has_finalizer(set, finalizers::MANIFEST_WORK_REPLICA_SET),
            is_foreground: set.spec.cascade_deletion_policy == CascadeDeletionPolicy::Foreground,
            template: Arc::new(Template::of(set)),
            placements: placements(&set.spec.placement_refs),
        }
    }

    /// The value of the label on its works.
    pub(crate) fn label(&self) -> &str {
        self.template.label()
    }

    /// Whether a label can have that value, so that it can have works.
    pub(crate) fn has_label(&self) -> bool {
        is_value(self.label())
    }

    pub(crate) fn refers_to(&self, placement: &str) -> bool {
        self.placements.iter().any(|one| &*one.name == placement)
    }
}

impl Template {
    fn of(set: &ManifestWorkReplicaSet) -> Self {
        let spec = set.spec.manifest_work_template.clone();
        let mut labels = set.labels().clone();
        labels.insert(labels::MANIFEST_WORK_REPLICA_SET.into(), label_of(&ObjectKey::of(set)));
        labels.remove(labels::PLACEMENT_NAME);
        Self { digest: Digest::of(&spec), spec, labels, name: set.name_any() }
    }

    pub(crate) fn label(&self) -> &str {
        self.labels.get(labels::MANIFEST_WORK_REPLICA_SET).map(String::as_str).unwrap_or_default()
    }

    /// The labels of a work for a placement.
    pub(crate) fn labels_for(&self, placement: &str) -> Labels {
        let mut labels = self.labels.clone();
        labels.insert(labels::PLACEMENT_NAME.into(), placement.into());
        labels
    }

    /// Whether agents report when they are done: only a condition rule sets `Progressing`.
    pub(crate) fn reports_progress(&self) -> bool {
        let rules = self.spec.manifest_configs.iter().flat_map(|config| &config.condition_rules);
        rules.into_iter().any(|rule| rule.condition == types::PROGRESSING)
    }
}

/// The value of the label on the works of a set.
pub(crate) fn label_of(set: &ObjectKey) -> String {
    format!("{}.{}", set.namespace, set.name)
}

/// The set to whose works a label with that value belongs. The name of a namespace contains no dot, so the first one ends it,
/// however many there are in the name of the set.
pub(crate) fn set_of(label: &str) -> Option<ObjectKey> {
    let (namespace, name) = label.split_once('.')?;
    Some(ObjectKey::new(namespace, name))
}

fn placements(refs: &[LocalPlacementReference]) -> Vec<PlacementRef> {
    let is_repeated = |index: usize, name: &str| refs.iter().take(index).any(|before| before.name == name);
    refs.iter().enumerate().map(|(index, one)| PlacementRef::of(index, one, is_repeated(index, &one.name))).collect()
}

impl PlacementRef {
    fn of(index: usize, reference: &LocalPlacementReference, is_repeated: bool) -> Self {
        let field = format!("spec.placementRefs[{index}]");
        let strategy = rollout::Strategy::read(&reference.rollout_strategy);
        let problem = if is_repeated {
            Some(format!("{field} names placement {} again: remove it, or the entry before", reference.name))
        } else if !is_value(&reference.name) {
            Some(format!(
                "{field}.name cannot be the value of a label, by which the works of a placement are found: rename placement {} \
                 to at most 63 characters",
                reference.name
            ))
        } else {
            strategy.as_ref().err().map(|error| format!("{field}.{error}"))
        };
        // What cannot be read is a problem, so nothing is rolled out by it.
        Self { name: reference.name.as_str().into(), strategy: strategy.unwrap_or_default(), problem, is_repeated }
    }
}

/// A work of a set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Work {
    pub(crate) key: ObjectKey,
    pub(crate) uid: String,
    /// By its label; empty if it has none.
    pub(crate) placement: Arc<str>,
    pub(crate) spec: Digest,
    /// The template that it was last written from, if the API server stored another spec than was sent.
    pub(crate) written_from: Option<Digest>,
    pub(crate) is_deleting: bool,
    pub(crate) created: Option<Timestamp>,
    pub(crate) applied: Option<Reported>,
    pub(crate) available: Option<Reported>,
    pub(crate) progressing: Option<Reported>,
    pub(crate) degraded: Option<Reported>,
}

/// A condition of a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reported {
    /// Whether it is True, or False; `None` for anything else.
    pub(crate) holds: Option<bool>,
    /// Whether it is about the work as it is now.
    pub(crate) is_current: bool,
    pub(crate) since: Timestamp,
}

impl Work {
    /// The set that it belongs to and its fields; `None` if its label names no set.
    pub(crate) fn of(work: &ReplicaWork) -> Option<(ObjectKey, Self)> {
        let label = |key: &str| work.metadata.labels.as_ref().and_then(|labels| labels.get(key));
        let set = set_of(label(labels::MANIFEST_WORK_REPLICA_SET)?)?;
        let reported = |type_| {
            let condition = conditions::find(&work.status.conditions, type_)?;
            Some(Reported::of(condition, work.metadata.generation))
        };
        let this = Self {
            key: ObjectKey::of(work),
            uid: work.metadata.uid.clone().unwrap_or_default(),
            placement: label(labels::PLACEMENT_NAME).map(String::as_str).unwrap_or_default().into(),
            spec: work.spec.clone(),
            written_from: None,
            is_deleting: write::is_deleting(work),
            created: work.metadata.creation_timestamp.as_ref().map(|time| time.0),
            applied: reported(types::APPLIED),
            available: reported(types::AVAILABLE),
            progressing: reported(types::PROGRESSING),
            degraded: reported(types::DEGRADED),
        };
        Some((set, this))
    }

    /// Whether it is what the template asks for.
    pub(crate) fn is_of(&self, template: &Template) -> bool {
        self.spec == template.digest || self.written_from.as_ref() == Some(&template.digest)
    }

    /// How far the rollout of its spec has come, and since when.
    pub(crate) fn rollout_status(&self) -> (rollout::Status, Option<Timestamp>) {
        let to_apply = (rollout::Status::ToApply, None);
        let is_applied = self.applied.is_some_and(|applied| applied.is_current && applied.holds == Some(true));
        let is_old = self.degraded.is_some_and(|degraded| !degraded.is_current);
        let Some(progressing) = self.progressing.filter(|progressing| progressing.is_current) else { return to_apply };
        if !is_applied || is_old {
            return to_apply;
        }
        match (progressing.holds, self.degraded.filter(|degraded| degraded.holds == Some(true))) {
            (Some(true), Some(degraded)) => (rollout::Status::Failed, Some(degraded.since)),
            (Some(false), _) => (rollout::Status::Succeeded, Some(progressing.since)),
            _ => (rollout::Status::Progressing, Some(progressing.since)),
        }
    }

    /// What decides which of several works for a cluster and placement is kept: the oldest that is not being deleted.
    pub(crate) fn seniority(&self) -> (bool, Option<Timestamp>, &str) {
        (self.is_deleting, self.created, &self.key.name)
    }
}

impl Reported {
    fn of(condition: &Condition, generation: Option<i64>) -> Self {
        let holds = match &*condition.status {
            status::TRUE => Some(true),
            status::FALSE => Some(false),
            _ => None,
        };
        let is_current = condition.observed_generation == generation;
        Self { holds, is_current, since: condition.last_transition_time.0 }
    }
}
