//! The status of a ManifestWork, worked out from what happened to its objects. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use ocm_api::{
    conditions::{manifest, status, work},
    reasons,
    work::v1::{ManifestCondition, ManifestResourceMeta},
};
use ocm_runtime::conditions::{self, NewCondition};

/// Whether an object of a work is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It is.
    There,
    /// It is not.
    Missing,
    /// The cluster could not be asked; this is why.
    Unknown(String),
    /// The cluster cannot be asked, since it does not know the kind.
    Unmapped,
}

/// What happened to one object of a work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Which object.
    pub meta: ManifestResourceMeta,
    /// Whether it was applied, and if not, what its owner needs to know.
    pub applied: Result<(), String>,
    /// Whether it is there now.
    pub presence: Presence,
}

/// The conditions of every object after a pass: `outcomes` in the order of the spec, on top of what
/// the status says so far. Objects that are no longer in the spec are dropped.
pub(super) fn manifests(
    stored: &[ManifestCondition],
    outcomes: &[Outcome],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<ManifestCondition> {
    let merge = |outcome: &Outcome| {
        let mut entry = previous(stored, &outcome.meta).cloned().unwrap_or_default();
        entry.resource_meta = outcome.meta.clone();
        set_for_generation(&mut entry.conditions, applied_finding(&outcome.applied), generation, now);
        set_presence(&mut entry.conditions, &outcome.presence, now);
        entry
    };
    outcomes.iter().map(merge).collect()
}

/// The stored entry of an object: of the same place in the spec, or else the only one that names it.
fn previous<'a>(stored: &'a [ManifestCondition], meta: &ManifestResourceMeta) -> Option<&'a ManifestCondition> {
    if let Some(exact) = stored.iter().find(|entry| entry.resource_meta == *meta) {
        return Some(exact);
    }
    let moved = ManifestResourceMeta { ordinal: 0, ..meta.clone() };
    let mut same =
        stored.iter().filter(|entry| ManifestResourceMeta { ordinal: 0, ..entry.resource_meta.clone() } == moved);
    match (same.next(), same.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

fn applied_finding(applied: &Result<(), String>) -> NewCondition {
    match applied {
        Ok(()) => NewCondition::is_true(manifest::APPLIED, reasons::manifest::APPLIED, "Applied"),
        Err(cause) => NewCondition::is_false(manifest::APPLIED, reasons::manifest::APPLY_FAILED, cause.clone()),
    }
}

/// A new generation is a new event: the condition gets a new transition time even when its status is
/// what it was.
fn set_for_generation(list: &mut Vec<Condition>, finding: NewCondition, generation: Option<i64>, now: Timestamp) {
    list.retain(|old| old.type_ != finding.type_ || old.observed_generation == generation);
    conditions::set(list, finding, generation, now);
}

/// Sets what is known of an object's presence. What its feedback said stays while it cannot be asked.
pub(super) fn set_presence(list: &mut Vec<Condition>, presence: &Presence, now: Timestamp) {
    let type_ = manifest::AVAILABLE;
    let finding = match presence {
        Presence::There => NewCondition::is_true(type_, reasons::manifest::RESOURCE_AVAILABLE, "The object exists"),
        Presence::Missing => {
            NewCondition::is_false(type_, reasons::manifest::RESOURCE_NOT_AVAILABLE, "The object does not exist")
        }
        Presence::Unknown(cause) => {
            let message = format!("Cannot tell whether the object exists: {cause}");
            NewCondition::is_unknown(type_, reasons::manifest::FETCHING_RESOURCE_FAILED, message)
        }
        Presence::Unmapped => {
            let message = "Cannot tell whether the object exists: the managed cluster does not know its kind";
            NewCondition::is_unknown(type_, reasons::manifest::INCOMPLETE_RESOURCE_META, message)
        }
    };
    conditions::set(list, finding, None, now);
    if *presence == Presence::There {
        let reason = reasons::manifest::NO_STATUS_FEEDBACK_SYNCED;
        conditions::set(list, NewCondition::is_true(manifest::STATUS_FEEDBACK_SYNCED, reason, ""), None, now);
    }
}

/// The work's own `Applied`.
pub(super) fn applied(manifests: &[ManifestCondition]) -> NewCondition {
    let failed: Vec<_> =
        manifests.iter().filter(|entry| !conditions::is_true(&entry.conditions, manifest::APPLIED)).collect();
    match failed.first() {
        None => NewCondition::is_true(work::APPLIED, reasons::work::APPLIED, "All objects are applied"),
        Some(first) => {
            let (count, total, first) = (failed.len(), manifests.len(), name(&first.resource_meta));
            let message = format!("{count} of {total} objects could not be applied, the first is {first}");
            NewCondition::is_false(work::APPLIED, reasons::work::APPLY_FAILED, message)
        }
    }
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
            let message = format!("Of {unknown} of {total} objects it is not known whether they exist");
            NewCondition::is_unknown(work::AVAILABLE, reasons::work::RESOURCES_STATUS_UNKNOWN, message)
        }
        _ => {
            let message = format!("{missing} of {total} objects do not exist");
            NewCondition::is_false(work::AVAILABLE, reasons::work::RESOURCES_NOT_AVAILABLE, message)
        }
    })
}

fn name(meta: &ManifestResourceMeta) -> String {
    let kind = if meta.kind.is_empty() { "manifest" } else { &meta.kind };
    match (meta.namespace.as_str(), meta.name.as_str()) {
        (_, "") => format!("{kind} at place {}", meta.ordinal),
        ("", name) => format!("{kind} {name}"),
        (namespace, name) => format!("{kind} {namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn meta(ordinal: i32, name: &str) -> ManifestResourceMeta {
        ManifestResourceMeta {
            ordinal,
            version: "v1".into(),
            kind: "ConfigMap".into(),
            resource: "configmaps".into(),
            name: name.into(),
            namespace: "ns".into(),
            ..ManifestResourceMeta::default()
        }
    }

    fn outcome(ordinal: i32, name: &str, applied: Result<(), &str>, presence: Presence) -> Outcome {
        Outcome { meta: meta(ordinal, name), applied: applied.map_err(str::to_owned), presence }
    }

    fn reasons_of(entry: &ManifestCondition) -> Vec<(&str, &str, Option<i64>)> {
        entry.conditions.iter().map(|c| (c.type_.as_str(), c.reason.as_str(), c.observed_generation)).collect()
    }

    #[test]
    fn an_applied_object_has_the_three_conditions_and_only_applied_carries_the_generation() {
        let list = manifests(&[], &[outcome(0, "a", Ok(()), Presence::There)], Some(3), at(1));
        assert_eq!(
            reasons_of(&list[0]),
            [
                ("Applied", "AppliedManifestComplete", Some(3)),
                ("Available", "ResourceAvailable", None),
                ("StatusFeedbackSynced", "NoStatusFeedbackSynced", None)
            ]
        );
    }

    #[test]
    fn an_object_that_is_not_there_has_no_feedback() {
        let list = manifests(&[], &[outcome(0, "a", Err("no"), Presence::Unmapped)], Some(1), at(1));
        assert_eq!(
            reasons_of(&list[0]),
            [("Applied", "AppliedManifestFailed", Some(1)), ("Available", "IncompleteResourceMeta", None)]
        );
    }

    #[test]
    fn a_new_generation_moves_the_transition_time_of_applied_and_nothing_else() {
        let before = manifests(&[], &[outcome(0, "a", Ok(()), Presence::There)], Some(1), at(1));
        let after = manifests(&before, &[outcome(0, "a", Ok(()), Presence::There)], Some(2), at(9));
        let time = |type_| conditions::find(&after[0].conditions, type_).unwrap().last_transition_time.0;
        assert_eq!((time("Applied"), time("Available")), (at(9), at(1)));
        let same = manifests(&after, &[outcome(0, "a", Ok(()), Presence::There)], Some(2), at(20));
        assert_eq!(same, after, "the same generation with the same outcome changes nothing");
    }

    #[test]
    fn an_object_that_moved_in_the_spec_keeps_what_is_known_of_it() {
        let before = manifests(&[], &[outcome(0, "a", Ok(()), Presence::There)], Some(1), at(1));
        let after = manifests(
            &before,
            &[outcome(0, "new", Ok(()), Presence::There), outcome(1, "a", Ok(()), Presence::There)],
            Some(2),
            at(9),
        );
        let time =
            |index: usize| conditions::find(&after[index].conditions, "Available").unwrap().last_transition_time.0;
        assert_eq!((time(0), time(1)), (at(9), at(1)));
    }

    #[test]
    fn the_work_is_applied_when_all_of_it_is() {
        let list = manifests(
            &[],
            &[outcome(0, "a", Ok(()), Presence::There), outcome(1, "b", Err("no"), Presence::Missing)],
            Some(1),
            at(1),
        );
        let finding = applied(&list);
        assert_eq!((finding.status, finding.reason), ("False", "AppliedManifestWorkFailed"));
        assert_eq!(finding.message, "1 of 2 objects could not be applied, the first is ConfigMap ns/b");
        assert_eq!(applied(&list[..1]).status, "True");
    }

    #[test]
    fn a_missing_object_outweighs_an_unknown_one() {
        let unknown = outcome(0, "a", Err("no"), Presence::Unmapped);
        let missing = outcome(1, "b", Err("no"), Presence::Missing);
        let there = outcome(2, "c", Ok(()), Presence::There);
        let of = |outcomes: &[Outcome]| available(&manifests(&[], outcomes, Some(1), at(1))).map(|found| found.reason);
        assert_eq!(of(&[unknown.clone(), missing, there.clone()]), Some("ResourcesNotAvailable"));
        assert_eq!(of(&[unknown, there.clone()]), Some("ResourcesStatusUnknown"));
        assert_eq!(of(&[there]), Some("ResourcesAvailable"));
        assert_eq!(of(&[]), None);
    }
}
