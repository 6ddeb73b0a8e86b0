//! The conditions of a ManifestWork and of its manifests. Pure.

mod size;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::{DynamicObject, ObjectMeta};
use ocm_api::{
    conditions::{manifest, status, work},
    reasons,
    work::v1::{AppliedManifestResourceMeta, ManifestCondition, ManifestResourceMeta},
};
use ocm_runtime::{
    Classified as _, Result,
    conditions::{self, NewCondition},
};
use serde_json::Value;

use super::{
    evaluation::{Evaluation, EvaluationPool},
    feedback::{self, FeedbackSettings},
    identifier,
    options::ManifestOptions,
    resources::explain,
    retry::Retry,
};

/// How many failures a message lists.
const LISTED: usize = 3;

/// What happened to one manifest of a work.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Which object.
    pub meta: ManifestResourceMeta,
    /// What came of applying it.
    pub applied: ApplyResult,
    /// The object as it is now.
    pub object: ObjectState,
    /// What the rules of the work yield for it; `None` while it cannot be read.
    pub evaluation: Option<Evaluation>,
}

/// What came of applying an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ApplyResult {
    /// It was not tried: the condition stays as it is.
    NotTried,
    Applied,
    /// It was applied, and somebody keeps changing it: what its owner needs to know.
    Contested(String),
    /// It failed, with what its owner needs to know.
    Failed {
        reason: &'static str,
        cause: String,
        retry: Retry,
    },
}

/// An object on the managed cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ObjectState {
    /// It exists. Its data is null where only its metadata was read.
    Exists(Box<DynamicObject>),
    NotFound,
    /// It could not be read, for this reason.
    Unknown {
        cause: String,
        retry: Retry,
    },
    /// The manifest is invalid, or the managed cluster does not serve its kind.
    Unmapped,
}

impl ObjectState {
    /// From the metadata of an object.
    pub(super) fn of(read: Result<Option<ObjectMeta>>) -> Self {
        let object = |metadata| DynamicObject { types: None, metadata, data: Value::Null };
        Self::of_object(read.map(|found| found.map(object)))
    }

    /// From an object.
    pub(super) fn of_object(read: Result<Option<DynamicObject>>) -> Self {
        match read {
            Ok(Some(object)) => Self::Exists(Box::new(object)),
            Ok(None) => Self::NotFound,
            Err(error) => Self::Unknown { cause: explain(&error), retry: Retry::after(error.class()) },
        }
    }
}

impl Outcome {
    /// An outcome with what the rules of the work yield.
    pub(super) fn new(
        meta: ManifestResourceMeta,
        applied: ApplyResult,
        object: ObjectState,
        options: &ManifestOptions,
        settings: FeedbackSettings,
    ) -> Self {
        let evaluation = match &object {
            // Of an object of which only the metadata are known, nothing can be computed.
            ObjectState::Exists(object) if !options.has_rules() || !object.data.is_null() => {
                Some(Evaluation::of(object, &meta, options, settings))
            }
            _ => None,
        };
        Self { meta, applied, object, evaluation }
    }

    /// The same, evaluated in a thread of its own if there are rules.
    pub(super) async fn evaluated(
        pool: &EvaluationPool,
        meta: ManifestResourceMeta,
        applied: ApplyResult,
        object: ObjectState,
        options: &ManifestOptions,
        settings: FeedbackSettings,
    ) -> Self {
        if !options.has_rules() {
            return Self::new(meta, applied, object, options, settings);
        }
        let options = options.clone();
        pool.run(move || Self::new(meta, applied, object, &options, settings)).await
    }

    /// The same, but what the status says of values and conditions stays.
    pub(super) fn without_evaluation(self) -> Self {
        Self { evaluation: None, ..self }
    }

    /// When to apply it again, where that failed, or where it could not be read: until then nothing is deleted.
    pub(super) fn retry(&self) -> Option<Retry> {
        let after_apply = match self.applied {
            ApplyResult::Failed { retry, .. } => Some(retry),
            ApplyResult::NotTried | ApplyResult::Applied | ApplyResult::Contested(_) => None,
        };
        let after_read = match self.object {
            ObjectState::Unknown { retry, .. } => Some(retry),
            ObjectState::Exists(_) | ObjectState::NotFound | ObjectState::Unmapped => None,
        };
        after_apply.into_iter().chain(after_read).reduce(Retry::sooner)
    }

    /// Whether it is not known which object this is, or whether it exists.
    pub(super) fn is_uncertain(&self) -> bool {
        matches!(self.object, ObjectState::Unknown { .. } | ObjectState::Unmapped)
    }
}

/// The objects that exist, as a record lists them.
pub(super) fn existing(outcomes: &[Outcome]) -> Vec<AppliedManifestResourceMeta> {
    let entry = |outcome: &Outcome| match &outcome.object {
        ObjectState::Exists(object) => Some(identifier::recorded(&outcome.meta, object.metadata.uid.clone())),
        ObjectState::NotFound | ObjectState::Unknown { .. } | ObjectState::Unmapped => None,
    };
    outcomes.iter().filter_map(entry).collect()
}

/// The entries of the status after a pass or a poll: `outcomes` in the order of the spec, on top of what the status says
/// so far. Objects that are no longer in the spec are dropped.
pub(super) fn manifests(
    stored: &[ManifestCondition],
    outcomes: &[Outcome],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<ManifestCondition> {
    let mut left = feedback::MAX_TEXT;
    let merge = |outcome: &Outcome| {
        let mut entry = previous(stored, &outcome.meta).cloned().unwrap_or_default();
        entry.resource_meta = outcome.meta.clone();
        set_conditions(&mut entry.conditions, outcome, generation, now);
        // Feedback stays as it was while the object cannot be read.
        outcome.evaluation.iter().for_each(|evaluation| evaluation.within(left).store(&mut entry, generation, now));
        left = left.saturating_sub(feedback::text(&entry.status_feedback.values));
        entry
    };
    let mut entries: Vec<_> = outcomes.iter().map(merge).collect();
    size::cut_messages(&mut entries, size::MOST_MESSAGES);
    entries
}

/// Sets the conditions of a manifest that need no rules.
fn set_conditions(list: &mut Vec<Condition>, outcome: &Outcome, generation: Option<i64>, now: Timestamp) {
    if let Some(applied) = manifest_applied(&outcome.applied) {
        // A new generation is a new event: the transition time changes even when the status does not.
        list.retain(|old| old.type_ != applied.type_ || old.observed_generation == generation);
        conditions::set(list, applied, generation, now);
    }
    conditions::set(list, manifest_available(&outcome.object), None, now);
}

/// The stored entry of an object: of the same place in the spec, or else the only one that names it.
pub(super) fn previous<'a>(
    stored: &'a [ManifestCondition],
    meta: &ManifestResourceMeta,
) -> Option<&'a ManifestCondition> {
    if let Some(exact) = stored.iter().find(|entry| entry.resource_meta == *meta) {
        return Some(exact);
    }
    let mut same = stored.iter().filter(|entry| is_same_object(&entry.resource_meta, meta));
    match (same.next(), same.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// Whether two entries are of one object, wherever in the spec.
fn is_same_object(a: &ManifestResourceMeta, b: &ManifestResourceMeta) -> bool {
    let ManifestResourceMeta { ordinal: _, group, version, kind, resource, name, namespace } = a;
    let of_b = [&b.group, &b.version, &b.kind, &b.resource, &b.name, &b.namespace];
    [group, version, kind, resource, name, namespace] == of_b
}

fn manifest_applied(applied: &ApplyResult) -> Option<NewCondition> {
    let type_ = manifest::APPLIED;
    match applied {
        ApplyResult::NotTried => None,
        ApplyResult::Applied => Some(NewCondition::is_true(type_, reasons::manifest::APPLIED, "Applied")),
        ApplyResult::Contested(who) => Some(NewCondition::is_true(type_, reasons::manifest::APPLIED, who.clone())),
        ApplyResult::Failed { reason, cause, .. } => Some(NewCondition::is_false(type_, reason, cause.clone())),
    }
}

/// Whether a manifest's object exists.
pub(super) fn manifest_available(object: &ObjectState) -> NewCondition {
    let type_ = manifest::AVAILABLE;
    match object {
        ObjectState::Exists(_) => {
            NewCondition::is_true(type_, reasons::manifest::RESOURCE_AVAILABLE, "The object exists")
        }
        ObjectState::NotFound => {
            NewCondition::is_false(type_, reasons::manifest::RESOURCE_NOT_AVAILABLE, "The object does not exist")
        }
        ObjectState::Unknown { cause, .. } => {
            let message = format!("Cannot tell whether the object exists: {cause}");
            NewCondition::is_unknown(type_, reasons::manifest::FETCHING_RESOURCE_FAILED, message)
        }
        ObjectState::Unmapped => {
            let message =
                "Cannot tell whether the object exists: its manifest leads to no resource of the managed cluster";
            NewCondition::is_unknown(type_, reasons::manifest::INCOMPLETE_RESOURCE_META, message)
        }
    }
}

/// The work's own `Applied`. `undeleted` says what was taken out of the work and cannot be deleted.
pub(super) fn applied(manifests: &[ManifestCondition], undeleted: &[String]) -> NewCondition {
    let failed: Vec<_> =
        manifests.iter().filter(|entry| !conditions::is_true(&entry.conditions, manifest::APPLIED)).collect();
    let undeleted = match undeleted.len() {
        0 => String::new(),
        count => format!(". {count} objects that were taken out of the work cannot be deleted: {}", list(undeleted)),
    };
    match failed.first() {
        None => {
            let message = format!("All objects are applied{undeleted}");
            NewCondition::is_true(work::APPLIED, reasons::work::APPLIED, message)
        }
        Some(first) => {
            let (count, total, first) = (failed.len(), manifests.len(), name(&first.resource_meta));
            let message = format!("{count} of {total} objects could not be applied, the first is {first}{undeleted}");
            NewCondition::is_false(work::APPLIED, reasons::work::APPLY_FAILED, message)
        }
    }
}

/// `Applied` of a work that is not applied at all.
pub(super) fn refused(reason: String) -> NewCondition {
    NewCondition::is_false(work::APPLIED, reasons::work::APPLY_FAILED, reason)
}

/// `Applied` of a work whose record is being deleted.
pub(super) fn blocked(failures: &[String]) -> NewCondition {
    let cause = match failures.len() {
        0 => "its objects are being deleted".to_owned(),
        count => format!("{count} of its objects cannot be deleted: {}", list(failures)),
    };
    let message = format!(
        "The AppliedManifestWork of this work was deleted on the managed cluster, and {cause}. The work is applied \
                 again when they are gone"
    );
    NewCondition::is_false(work::APPLIED, reasons::work::APPLY_FAILED, message)
}

/// `Deleting` of a work that is being deleted.
pub(super) fn deleting(failures: &[String]) -> NewCondition {
    let message = match failures.len() {
        0 => "The work is being deleted: waiting until its objects are gone from the managed cluster".to_owned(),
        count => format!(
            "The work cannot be deleted yet, since {count} of its objects cannot be deleted or orphaned. This is retried: {}",
            list(failures)
        ),
    };
    NewCondition::is_true(work::DELETING, reasons::work::DELETING, message)
}

/// `Deleting` of a work that is kept because of this field.
pub(super) fn held(field: &str) -> NewCondition {
    let message = format!(
        "Not deleted: this agent does not support {field} yet and would delete objects that are to stay. Set \
         spec.deleteOption.propagationPolicy to Foreground to delete them all or to Orphan to keep them all"
    );
    NewCondition::is_false(work::DELETING, reasons::work::DELETING, message)
}

fn list(failures: &[String]) -> String {
    let mut text = failures.iter().take(LISTED).cloned().collect::<Vec<_>>().join("; ");
    if let Some(more) = failures.len().checked_sub(LISTED).filter(|more| *more > 0) {
        text += &format!("; and {more} more");
    }
    text
}

/// The work's own `Available`; `None` when it has no objects.
pub(super) fn available(manifests: &[ManifestCondition]) -> Option<NewCondition> {
    let with = |wanted: &str| {
        let is = |entry: &&ManifestCondition| {
            conditions::find(&entry.conditions, manifest::AVAILABLE).is_some_and(|found| found.status == wanted)
        };
        manifests.iter().filter(is).count()
    };
    let total = manifests.len();
    let (missing, there) = (with(status::FALSE), with(status::TRUE));
    let unknown = total - missing - there;
    Some(match (total, missing, unknown) {
        (0, ..) => return None,
        (_, 0, 0) => NewCondition::is_true(work::AVAILABLE, reasons::work::RESOURCES_AVAILABLE, "All objects exist"),
        (_, 0, _) => {
            let message = format!("It is not known whether {unknown} of {total} objects exist");
            NewCondition::is_unknown(work::AVAILABLE, reasons::work::RESOURCES_STATUS_UNKNOWN, message)
        }
        _ => {
            let message = format!("{missing} of {total} objects do not exist");
            NewCondition::is_false(work::AVAILABLE, reasons::work::RESOURCES_NOT_AVAILABLE, message)
        }
    })
}

/// A manifest's object for a message: `ConfigMap default/a`.
pub(super) fn name(meta: &ManifestResourceMeta) -> String {
    let kind = if meta.kind.is_empty() { "manifest" } else { &meta.kind };
    match (meta.namespace.as_str(), meta.name.as_str()) {
        (_, "") => format!("{kind} at place {}", meta.ordinal),
        ("", name) => format!("{kind} {name}"),
        (namespace, name) => format!("{kind} {namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests;
