//! What a poll needs to know about a work.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    num::NonZeroU64,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use ocm_api::{
    conditions,
    work::v1::{ManifestCondition, ManifestConfigOption, ManifestResourceMeta, ManifestWork},
};
use ocm_runtime::{
    conditions::{NewCondition, find, is_true},
    write,
};

use crate::work::{
    conditions::{self as conditions_of_work, is_complete},
    evaluation, identifier,
    options::{ManifestConfigs, ManifestOptions},
    status::{self, Outcome},
};

/// What a poll needs to know about a work. It is kept for all objects of all works, so it is small.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Polled {
    /// The objects, a list of [`ManifestResourceMeta`] as JSON.
    pub(super) objects: Box<str>,
    /// `spec.manifestConfigs` as JSON; empty if nothing is computed from any object.
    configs: Box<str>,
    /// Their entries in the status.
    pub(super) reported: Box<[Reported]>,
    /// The places of those from which nothing is computed, as the executor of the work may not be allowed to read them.
    unread: Box<[usize]>,
    /// Whether the work's own conditions follow from those of its objects.
    is_aggregated: bool,
    /// Of the work.
    generation: Option<i64>,
}

/// An object, and what the work asks for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PolledObject {
    pub meta: ManifestResourceMeta,
    pub options: ManifestOptions,
    /// Whether the executor of the work may not be allowed to read it: what the status says of it stays until it is applied.
    pub is_unread: bool,
}

/// What the status says of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reported {
    available: Option<Summary>,
    /// The hash of values and further conditions.
    evaluation: u64,
}

/// A hash of status, reason and message of a condition.
type Summary = NonZeroU64;

impl Polled {
    /// What to poll of a work; `None` for one that was not applied. One that is being deleted is still polled.
    pub(super) fn of(work: &ManifestWork) -> Option<Self> {
        let status = work.status.as_ref()?;
        let applied = find(&status.conditions, conditions::work::APPLIED)?;
        // Until the current generation has been applied, its objects are not known. Of a work that is complete they stay
        // those that were applied.
        let is_applied = applied.observed_generation == work.metadata.generation;
        let is_current = is_applied || write::is_deleting(work) || is_complete(work);
        let entries = &status.resource_status.manifests;
        if !is_current || entries.is_empty() {
            return None;
        }
        let objects: Vec<_> = entries.iter().map(|entry| &entry.resource_meta).collect();
        Some(Self {
            objects: serde_json::to_string(&objects).ok()?.into_boxed_str(),
            configs: configs(&work.spec.manifest_configs),
            reported: entries.iter().map(Reported::of).collect(),
            unread: unread(work, entries),
            is_aggregated: is_aggregated(work, &status.conditions, entries),
            generation: work.metadata.generation,
        })
    }

    /// Whether the status differs from what was observed.
    pub(super) fn is_outdated(&self, outcomes: &[Outcome]) -> bool {
        !self.is_aggregated
            || self.reported.iter().zip(outcomes).any(|(reported, outcome)| reported.differs(outcome, self.generation))
    }

    /// Whether anything is computed from an object.
    pub(super) fn has_rules(&self) -> bool {
        !self.configs.is_empty()
    }

    pub(super) fn objects(&self) -> Vec<PolledObject> {
        // Both were serialized here.
        let objects: Vec<ManifestResourceMeta> = serde_json::from_str(&self.objects).unwrap_or_default();
        let configs: Vec<ManifestConfigOption> = serde_json::from_str(&self.configs).unwrap_or_default();
        let configs = ManifestConfigs::from(configs);
        let polled = |(place, meta)| {
            let options = configs.options(&identifier::of_manifest(&meta));
            let is_unread = self.unread.contains(&place);
            let options = if is_unread { options.without_rules() } else { options };
            PolledObject { meta, options, is_unread }
        };
        objects.into_iter().enumerate().map(polled).collect()
    }

    pub(super) fn has_the_objects_of(&self, other: &Self) -> bool {
        self.objects == other.objects && self.configs == other.configs && self.unread == other.unread
    }
}

/// With an executor, only what it could apply is read: an agent may read more than its works' authors.
fn unread(work: &ManifestWork, entries: &[ManifestCondition]) -> Box<[usize]> {
    let is_applied = |entry: &ManifestCondition| is_true(&entry.conditions, conditions::manifest::APPLIED);
    let unapplied = entries.iter().enumerate().filter(|(_, entry)| !is_applied(entry)).map(|(place, _)| place);
    if work.spec.executor.is_some() { unapplied.collect() } else { Box::default() }
}

/// The entries in their order, without what does not matter to a poll.
fn configs(configs: &[ManifestConfigOption]) -> Box<str> {
    let has_rules =
        |config: &ManifestConfigOption| !config.feedback_rules.is_empty() || !config.condition_rules.is_empty();
    if !configs.iter().any(has_rules) {
        return Box::default();
    }
    let without_strategy =
        |config: &ManifestConfigOption| ManifestConfigOption { update_strategy: None, ..config.clone() };
    let configs: Vec<_> = configs.iter().map(without_strategy).collect();
    serde_json::to_string(&configs).unwrap_or_default().into_boxed_str()
}

impl Reported {
    fn of(entry: &ManifestCondition) -> Self {
        let available = find(&entry.conditions, conditions::manifest::AVAILABLE);
        Self { available: available.map(summary), evaluation: evaluation::summary(entry) }
    }

    fn differs(&self, outcome: &Outcome, generation: Option<i64>) -> bool {
        let available = summary_of_new(&status::manifest_available(&outcome.object));
        let evaluation = outcome.evaluation.as_ref().map(|evaluation| evaluation.summary(generation));
        self.available != Some(available) || evaluation.is_some_and(|evaluation| evaluation != self.evaluation)
    }
}

fn is_aggregated(work: &ManifestWork, conditions: &[Condition], entries: &[ManifestCondition]) -> bool {
    let reported = find(conditions, conditions::work::AVAILABLE);
    let reported = reported.filter(|found| found.observed_generation == work.metadata.generation);
    reported.map(summary) == status::available(entries).as_ref().map(summary_of_new)
        && conditions_of_work::is_aggregated(conditions, entries)
}

fn summary(condition: &Condition) -> Summary {
    hash([&condition.status, &condition.reason, &condition.message])
}

fn summary_of_new(condition: &NewCondition) -> Summary {
    hash([condition.status, condition.reason, &condition.message])
}

fn hash(texts: [&str; 3]) -> Summary {
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    NonZeroU64::new(hasher.finish()).unwrap_or(NonZeroU64::MIN)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Whether something is computed from each object of a work with an executor, which has applied the second one.
    fn computed(executor: &Value) -> Vec<bool> {
        let condition = |type_: &str, status: &str| {
            json!({"type": type_, "status": status, "reason": "R", "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let entry = |name: &str, applied: &str| {
            json!({"resourceMeta": {"ordinal": 0, "version": "v1", "resource": "secrets", "name": name, "namespace": "ns"},
                "conditions": [condition("Applied", applied)]})
        };
        let rules = json!([{"type": "JSONPaths", "jsonPaths": [{"name": "token", "path": ".data.token"}]}]);
        let id = json!({"resource": "secrets", "namespace": "*", "name": "*"});
        let work = json!({
            "metadata": {"name": "w", "generation": 1},
            "spec": {"executor": executor, "manifestConfigs": [{"resourceIdentifier": id, "feedbackRules": rules}]},
            "status": {"conditions": [condition("Applied", "False")],
                "resourceStatus": {"manifests": [entry("theirs", "False"), entry("own", "True")]}},
        });
        let polled = Polled::of(&serde_json::from_value(work).unwrap()).unwrap();
        polled.objects().iter().map(|object| object.options.has_rules() && !object.is_unread).collect()
    }

    #[test]
    fn nothing_is_computed_from_what_an_executor_could_not_apply() {
        let account = json!({"namespace": "ns", "name": "deployer"});
        assert_eq!(computed(&json!({"subject": {"type": "ServiceAccount", "serviceAccount": account}})), [false, true]);
        assert_eq!(computed(&Value::Null), [true, true]);
    }
}
