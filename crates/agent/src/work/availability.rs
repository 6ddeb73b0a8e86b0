//! Looks from time to time whether what was applied is still there.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use kube::{
    Api, ResourceExt as _,
    core::{ApiResource, GroupVersionKind},
};
use ocm_api::{
    conditions,
    work::v1::{ManifestCondition, ManifestResourceMeta, ManifestWork},
};
use ocm_runtime::{
    ControllerBuilder, Error, ObjectKey, Requeue, Result, StatusController,
    conditions::{find, set},
    error::{chain, found},
    write,
};

use super::{
    Shared,
    mapping::Target,
    status::{self, Presence},
};

/// The longest time between two looks is this much more than the shortest, so that works spread out.
const JITTER: f64 = 0.9;
/// How many objects of a work are looked at at a time.
const AT_A_TIME: usize = 8;

/// The controller; its keys are names of ManifestWorks.
#[derive(Debug)]
pub(super) struct Availability {
    shared: Shared,
}

impl Availability {
    pub(super) fn new(shared: Shared) -> Self {
        Self { shared }
    }

    async fn look(&self, meta: &ManifestResourceMeta) -> Presence {
        if meta.resource.is_empty() || meta.version.is_empty() || meta.name.is_empty() {
            return Presence::Unmapped;
        }
        match self.shared.resources.look(&target_of(meta), &meta.namespace, &meta.name).await {
            Ok(Some(_)) => Presence::There,
            Ok(None) => Presence::Missing,
            Err(error) => Presence::Unknown(chain(&error)),
        }
    }
}

fn target_of(meta: &ManifestResourceMeta) -> Target {
    let gvk = GroupVersionKind::gvk(&meta.group, &meta.version, &meta.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &meta.resource);
    Target { resource, namespaced: !meta.namespace.is_empty() }
}

/// Some time after the shortest interval, other for every work.
fn next_look(shortest: Duration) -> Duration {
    shortest.mul_f64(1.0 + JITTER * rand::random_range(0.0..1.0))
}

impl StatusController for Availability {
    const NAME: &'static str = "manifestwork-availability";
    type Key = String;
    type Observed = (Arc<ManifestWork>, Vec<Presence>);
    type Plan = Vec<ManifestCondition>;
    type Error = Error;

    /// A work is looked at some time after it changed: what has just been applied is there.
    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let (queue, shortest) = (builder.queue(), self.shared.settings.status_sync);
        builder.watches(&self.shared.works, move |change| {
            queue.add_after(change.object().name_any(), next_look(shortest));
            None
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Self::Observed>> {
        let Some(work) = self.shared.works.get(&ObjectKey::new(&self.shared.settings.cluster, key)) else {
            return Ok(None);
        };
        if !is_to_be_looked_at(&work) {
            return Ok(None);
        }
        let metas: Vec<_> = manifests(&work).iter().map(|entry| entry.resource_meta.clone()).collect();
        let looks = stream::iter(metas).map(|meta| async move { self.look(&meta).await });
        let presences = looks.buffered(AT_A_TIME).collect().await;
        Ok(Some((work, presences)))
    }

    fn plan((work, presences): &Self::Observed, now: Timestamp) -> Vec<ManifestCondition> {
        let mut entries = manifests(work).to_vec();
        for (entry, presence) in entries.iter_mut().zip(presences) {
            status::set_presence(&mut entry.conditions, presence, now);
        }
        entries
    }

    async fn report(
        &self,
        (work, _): &Self::Observed,
        entries: Vec<ManifestCondition>,
        now: Timestamp,
    ) -> Result<Requeue> {
        let mut new = work.as_ref().clone();
        let generation = work.metadata.generation;
        let reported = new.status.get_or_insert_default();
        if let Some(finding) = status::available(&entries) {
            set(&mut reported.conditions, finding, generation, now);
        }
        reported.resource_status.manifests = entries;
        let api = Api::namespaced(self.shared.hub.client().clone(), &self.shared.settings.cluster);
        if let Some(Some(patched)) = found(write::patch_status(&api, work.as_ref(), &new).await)? {
            self.shared.works.record_write(patched);
        }
        Ok(Requeue::After(next_look(self.shared.settings.status_sync)))
    }
}

/// A work that was applied and is not on its way out.
fn is_to_be_looked_at(work: &ManifestWork) -> bool {
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    !manifests(work).is_empty()
        && !write::is_deleting(work)
        && find(conditions, conditions::work::APPLIED).is_some_and(|applied| {
            // Until the present generation has been applied, its objects are not known.
            applied.observed_generation == work.metadata.generation
        })
}

fn manifests(work: &ManifestWork) -> &[ManifestCondition] {
    work.status.as_ref().map(|status| status.resource_status.manifests.as_slice()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn work() -> ManifestWork {
        serde_json::from_value(json!({
            "metadata": {"name": "w", "generation": 2},
            "status": {
                "conditions": [{"type": "Applied", "status": "True", "reason": "x", "message": "", "observedGeneration": 2,
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                "resourceStatus": {"manifests": [{"conditions": [],
                    "resourceMeta": {"ordinal": 0, "version": "v1", "resource": "pods", "name": "a", "namespace": "b"}}]}
            }
        }))
        .unwrap()
    }

    #[test]
    fn only_works_whose_present_generation_was_applied_are_looked_at() {
        assert!(is_to_be_looked_at(&work()));
        let mut edited = work();
        edited.metadata.generation = Some(3);
        assert!(!is_to_be_looked_at(&edited));
        let mut fresh = work();
        fresh.status = None;
        assert!(!is_to_be_looked_at(&fresh));
    }

    #[test]
    fn an_object_that_went_missing_turns_its_condition() {
        let observed = (Arc::new(work()), vec![Presence::Missing]);
        let plan = Availability::plan(&observed, Timestamp::UNIX_EPOCH);
        let available = find(&plan[0].conditions, "Available").unwrap();
        assert_eq!((available.status.as_str(), available.reason.as_str()), ("False", "ResourceNotAvailable"));
    }
}
