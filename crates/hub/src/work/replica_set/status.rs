//! What the status of a set says.
//!
//! Types and reasons of conditions are OCM's, and so is what is counted. A condition that is True has no message, as in OCM.

use jiff::Timestamp;
use ocm_api::{
    conditions::replica_set as types,
    reasons::replica_set as reasons,
    work::v1alpha1::{
        ManifestWorkReplicaSet, ManifestWorkReplicaSetStatus, ManifestWorkReplicaSetSummary, PlacementSummary,
    },
};
use ocm_runtime::{
    ObjectKey,
    conditions::{self, NewCondition},
};

use crate::work::{
    decision::{Counts, PlacementProgress, Progress},
    facts::label_of,
};

/// What there is to report on a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No label can name it.
    Unnameable,
    Decided(Box<Progress>),
    /// Its works are being deleted.
    Deleting(Box<Progress>),
}

/// The set with the status that it should have.
pub(super) fn reported(set: &ManifestWorkReplicaSet, outcome: &Outcome, now: Timestamp) -> ManifestWorkReplicaSet {
    let mut new = set.clone();
    let status = new.status.get_or_insert_default();
    let conditions = match outcome {
        Outcome::Unnameable => vec![unnameable(set)],
        Outcome::Deleting(progress) => Vec::from_iter(not_written(progress)),
        Outcome::Decided(progress) => match &progress.missing {
            Some(placement) => vec![missing(&set.metadata.namespace.clone().unwrap_or_default(), placement)],
            None => {
                count(status, progress);
                vec![verified(progress), rolled_out(progress), applied(progress)]
            }
        },
    };
    for condition in conditions {
        conditions::set(&mut status.conditions, condition, None, now);
    }
    new
}

fn count(status: &mut ManifestWorkReplicaSetStatus, progress: &Progress) {
    status.summary = summary(&progress.total(), &status.summary);
    let none = ManifestWorkReplicaSetSummary::default();
    status.placements_summary =
        progress.placements.iter().map(|placement| placement_summary(placement, &none)).collect();
}

fn placement_summary(placement: &PlacementProgress, none: &ManifestWorkReplicaSetSummary) -> PlacementSummary {
    let PlacementProgress { name, groups, selected, counts } = placement;
    PlacementSummary {
        name: name.to_string(),
        available_decision_groups: format!("{groups} ({} / {selected} clusters applied)", counts.total),
        summary: summary(counts, none),
    }
}

/// The counters that OCM does not set stay as they are.
fn summary(counts: &Counts, known: &ManifestWorkReplicaSetSummary) -> ManifestWorkReplicaSetSummary {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    ManifestWorkReplicaSetSummary {
        total: number(counts.total),
        applied: number(counts.applied),
        available: number(counts.available),
        progressing: number(counts.progressing),
        degraded: number(counts.degraded),
        ..known.clone()
    }
}

fn unnameable(set: &ManifestWorkReplicaSet) -> NewCondition {
    let label = label_of(&ObjectKey::of(set));
    let message = format!(
        "Its works would have the label value {label}, which is not valid: namespace and name of a ManifestWorkReplicaSet have \
         62 characters together at most. Create it under a shorter name"
    );
    NewCondition::is_false(types::MANIFEST_WORK_APPLIED, reasons::INVALID_MANIFEST_WORK_NAME, message)
}

fn missing(namespace: &str, placement: &str) -> NewCondition {
    let message = format!(
        "Placement {namespace}/{placement} does not exist: create it, or remove it from spec.placementRefs. The entries after it \
         wait"
    );
    NewCondition::is_false(types::PLACEMENT_VERIFIED, reasons::PLACEMENT_DECISION_NOT_FOUND, message)
}

fn verified(progress: &Progress) -> NewCondition {
    let type_ = types::PLACEMENT_VERIFIED;
    if !progress.problems.is_empty() {
        let message = format!("Works for these placements stay as they are: {}", progress.problems.join("; "));
        return NewCondition::is_false(type_, reasons::NOT_AS_EXPECTED, message);
    }
    match progress.total().chosen {
        0 => {
            let message = "The placements have chosen no cluster";
            NewCondition::is_false(type_, reasons::PLACEMENT_DECISION_EMPTY, message)
        }
        _ => NewCondition::is_true(type_, reasons::AS_EXPECTED, ""),
    }
}

fn rolled_out(progress: &Progress) -> NewCondition {
    let (succeeded, selected) = (progress.total().succeeded, progress.selected());
    if i64::try_from(succeeded) == Ok(selected) {
        return NewCondition::is_true(types::PLACEMENT_ROLLED_OUT, reasons::COMPLETE, "");
    }
    let mut message = format!("The template has been rolled out to {succeeded} of {selected} clusters");
    if !progress.reports_progress {
        message.push_str(
            ". Its works do not report when they are done: add a condition rule for Progressing to \
             spec.manifestWorkTemplate.manifestConfigs",
        );
    }
    NewCondition::is_false(types::PLACEMENT_ROLLED_OUT, reasons::PROGRESSING, message)
}

fn applied(progress: &Progress) -> NewCondition {
    let (type_, counts) = (types::MANIFEST_WORK_APPLIED, progress.total());
    if let Some(failed) = not_written(progress) {
        return failed;
    }
    let Counts { total, pending, available, progressing, degraded, .. } = counts;
    let expected = total + pending;
    let message =
        format!("Of {expected} works, {available} are available, {progressing} progressing, {degraded} degraded");
    match (progressing, degraded) {
        _ if counts.chosen == 0 => {
            let message = "The placements have chosen no cluster";
            NewCondition::is_false(type_, reasons::PLACEMENT_DECISION_EMPTY, message)
        }
        (0, 0) if available == expected && expected > 0 => NewCondition::is_true(type_, reasons::AS_EXPECTED, ""),
        (1.., 0) => NewCondition::is_false(type_, reasons::PROCESSING, message),
        _ => NewCondition::is_false(type_, reasons::NOT_AS_EXPECTED, message),
    }
}

/// That works could not be written, and the first of them with the API server's answer.
fn not_written(progress: &Progress) -> Option<NewCondition> {
    let (cluster, failure) = progress.failure.as_ref()?;
    let others = progress.failed.saturating_sub(1);
    let others = if others == 0 { String::new() } else { format!(", nor that on {others} more") };
    let message = format!("The work on cluster {cluster} could not be written{others}: {failure}. It is retried");
    Some(NewCondition::is_false(types::MANIFEST_WORK_APPLIED, reasons::NOT_AS_EXPECTED, message))
}
