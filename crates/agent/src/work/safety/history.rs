//! What the agent has seen of the works on the hub since it started, and whether the hub still knows it.

use std::collections::HashSet;

use kube::{Api, ResourceExt as _, api::ListParams};
use ocm_api::{finalizers, work::v1::ManifestWork};
use ocm_runtime::{
    Change, Result, ResultExt as _,
    write::{has_finalizer, is_deleting},
};

/// What was seen of the works.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The highest version of a work. After a restore of the hub it stays.
    pub(super) newest: u64,
    /// The works with records that somebody deleted although the agent had not released them: their finalizer was removed by
    /// force, or was never there. That is an order, unlike a work that is missing after a list.
    pub(super) deleted: HashSet<String>,
}

impl History {
    pub(super) fn saw(&mut self, change: Change<'_, ManifestWork>, has_record: bool) {
        let work = change.object();
        self.newest = self.newest.max(version(work));
        match change {
            Change::Deleted(_) if has_record && was_ordered(work) => _ = self.deleted.insert(work.name_any()),
            Change::Deleted(_) => {}
            Change::Added(_) | Change::Updated { .. } => _ = self.deleted.remove(&work.name_any()),
        }
    }

    pub(super) fn forget(&mut self, work: &str) {
        self.deleted.remove(work);
    }
}

/// Whether the last state of a work that is gone explains why. One that has the agent's finalizer and no deletion timestamp
/// cannot be deleted: it is missing after a list.
fn was_ordered(work: &ManifestWork) -> bool {
    is_deleting(work) || !has_finalizer(work, finalizers::MANIFEST_WORK)
}

fn version(work: &ManifestWork) -> u64 {
    work.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// Whether the hub does not have the work and has not reached the version `seen`. Versions never go back but by a restore, or
/// when the hub is another one. (Versions that have passed it again prove nothing, and nothing is concluded from them.)
pub(super) async fn has_lost(works: &Api<ManifestWork>, work: &str, seen: u64) -> Result<bool> {
    if seen == 0 {
        return Ok(false);
    }
    let only = ListParams::default().fields(&format!("metadata.name={work}"));
    let listed = works.list_metadata(&only).await.while_trying_to("list", || format!("ManifestWork {work}"))?;
    let now = listed.metadata.resource_version.and_then(|version| version.parse::<u64>().ok());
    Ok(listed.items.is_empty() && now.is_some_and(|now| now < seen))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::{testing::Mock, work::testing::WORKS};

    fn work(metadata: &Value) -> Arc<ManifestWork> {
        let mut work =
            json!({"metadata": {"name": "w", "resourceVersion": "7"}, "spec": {"workload": {"manifests": []}}});
        ocm_apimachinery::merge::apply(&mut work, &json!({"metadata": metadata}));
        Arc::new(serde_json::from_value(work).unwrap())
    }

    /// Whether the deletion of a work that was last seen like this is an order.
    fn is_ordered(metadata: &Value) -> bool {
        let mut history = History::default();
        history.saw(Change::Deleted(&work(metadata)), true);
        history.deleted.contains("w")
    }

    #[test]
    fn a_work_whose_finalizer_was_removed_by_force_was_deleted_and_one_that_is_missing_was_not() {
        let ours = json!([finalizers::MANIFEST_WORK]);
        assert!(is_ordered(&json!({"finalizers": ours, "deletionTimestamp": "2026-01-01T00:00:00Z"})));
        assert!(is_ordered(&json!({})), "the finalizer was removed first");
        assert!(!is_ordered(&json!({"finalizers": ours})));
    }

    #[test]
    fn what_was_deleted_is_remembered_until_it_is_back_or_its_record_is_gone() {
        let (mut history, gone) = (History::default(), work(&json!({})));
        history.saw(Change::Deleted(&gone), false);
        assert!(history.deleted.is_empty(), "it has no record: it was deleted in good order");
        history.saw(Change::Deleted(&gone), true);
        history.saw(Change::Added(&gone), true);
        assert!(history.deleted.is_empty());
        history.saw(Change::Deleted(&gone), true);
        history.forget("w");
        assert!(history.deleted.is_empty());
    }

    #[test]
    fn the_newest_version_stays_when_a_restore_brings_older_ones() {
        let (mut history, new, old) =
            (History::default(), work(&json!({"resourceVersion": "90"})), work(&json!({"resourceVersion": "10"})));
        history.saw(Change::Added(&new), true);
        history.saw(Change::Updated { old: &new, new: &old }, true);
        assert_eq!(history.newest, 90);
    }

    #[tokio::test]
    async fn a_hub_that_has_not_reached_the_version_of_a_missing_work_lost_it() {
        let missing = Mock::default().listing(WORKS, &json!([]));
        let existing = Mock::default().listing(WORKS, &json!([{"metadata": {"name": "w"}}]));
        let api = |hub: &Mock| Api::namespaced(hub.client(), "c1");
        // It answers at version 1.
        assert!(has_lost(&api(&missing), "w", 2).await.unwrap());
        assert!(!has_lost(&api(&missing), "w", 1).await.unwrap());
        assert!(!has_lost(&api(&missing), "w", 0).await.unwrap());
        assert!(!has_lost(&api(&existing), "w", 2).await.unwrap());
    }
}
