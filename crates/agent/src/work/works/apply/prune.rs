//! Deleting what was taken out of a work.

use std::collections::HashSet;

use futures::{StreamExt as _, stream};
use kube::ResourceExt as _;
use ocm_api::work::v1::{AppliedManifestResourceMeta, AppliedManifestWork};
use tracing::info;

use super::AT_A_TIME;
use crate::work::{
    identifier, record,
    resources::{Deletion, Resources},
    retry::Retry,
    status::{self, Outcome},
};

/// What came of deleting objects that are no longer in a work.
pub(super) struct Pruned {
    /// What to record: what exists of the work, and what is not deleted yet.
    pub kept: Vec<AppliedManifestResourceMeta>,
    /// What cannot be deleted, with the reasons.
    pub undeleted: Vec<String>,
    pub retry: Retry,
}

/// Deletes what was recorded and is no longer in the work. While it is not known of every object of the work where it is,
/// nothing is deleted and everything stays recorded, also what is still in the work and cannot be read now. What could not be
/// created stays recorded, so that the next attempt needs no write before.
pub(super) async fn prune(
    resources: &Resources,
    applied_work: &AppliedManifestWork,
    planned: &[AppliedManifestResourceMeta],
    outcomes: &[Outcome],
) -> Pruned {
    let (existing, recorded) = (status::existing(outcomes), record::listed(applied_work));
    if outcomes.iter().any(Outcome::is_uncertain) {
        let kept = not_among(recorded, &existing);
        return Pruned { kept: [existing, kept].concat(), undeleted: Vec::new(), retry: Retry::AtRegularPass };
    }
    let obsolete = obsolete(recorded, &existing, outcomes);
    let kept = [existing.clone(), record::not_among(planned, &existing)].concat();
    let mut pruned = Pruned { kept, undeleted: Vec::new(), retry: Retry::AtRegularPass };
    let uid = &applied_work.uid().unwrap_or_default();
    let applied = &existing.into_iter().filter_map(|resource| resource.uid).collect();
    let deletions = stream::iter(obsolete).map(|resource| async move {
        info!(resource = resource.resource, name = resource.name, "no longer in the work, deleting it");
        (resources.delete(&resource, uid, applied).await, resource)
    });
    let deletions: Vec<_> = deletions.buffered(AT_A_TIME).collect().await;
    deletions.into_iter().for_each(|(deletion, resource)| pruned.take(deletion, resource));
    pruned
}

impl Pruned {
    fn take(&mut self, deletion: Deletion, resource: AppliedManifestResourceMeta) {
        if deletion == Deletion::Done {
            return;
        }
        if let Deletion::Failed(cause) = deletion {
            self.undeleted.push(cause);
        }
        self.kept.push(resource);
        self.retry = Retry::BackOff;
    }
}

/// What is recorded and is neither in the spec nor one of its objects under another group.
pub(super) fn obsolete(
    recorded: Vec<AppliedManifestResourceMeta>,
    existing: &[AppliedManifestResourceMeta],
    outcomes: &[Outcome],
) -> Vec<AppliedManifestResourceMeta> {
    let ids: HashSet<_> = outcomes.iter().map(|outcome| identifier::of_manifest(&outcome.meta)).collect();
    let mut obsolete = not_among(recorded, existing);
    obsolete.retain(|resource| !ids.contains(&identifier::of_recorded(resource)));
    obsolete
}

/// What is recorded and is none of the objects that exist, neither by name nor, under another group, by uid.
fn not_among(
    recorded: Vec<AppliedManifestResourceMeta>,
    existing: &[AppliedManifestResourceMeta],
) -> Vec<AppliedManifestResourceMeta> {
    let ids: HashSet<_> = existing.iter().map(identifier::of_recorded).collect();
    let uids: HashSet<_> = existing.iter().filter_map(|resource| resource.uid.as_ref()).collect();
    let is_other = |resource: &AppliedManifestResourceMeta| {
        let is_same_object = resource.uid.as_ref().is_some_and(|uid| uids.contains(uid));
        !ids.contains(&identifier::of_recorded(resource)) && !is_same_object
    };
    recorded.into_iter().filter(is_other).collect()
}
