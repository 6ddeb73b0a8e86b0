//! Polls whether what was applied still exists.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    num::NonZeroU64,
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, ResourceExt as _};
use ocm_api::{
    conditions,
    work::v1::{ManifestCondition, ManifestResourceMeta, ManifestWork},
};
use ocm_runtime::{
    ControllerBuilder, Error, ObjectKey, Requeue, Result,
    conditions::{NewCondition, find, set},
    controller::StatusController,
    error::found,
    informer::View,
    write,
};

use super::{
    Shared, identifier,
    status::{self, ApplyResult, ObjectState, Outcome},
};

/// The longest time between two polls is this much more than the shortest, so that works spread out.
const JITTER: f64 = 0.9;
/// How many objects of a work are read at a time.
const AT_A_TIME: usize = 8;

/// The controller; its keys are names of ManifestWorks.
#[derive(Debug)]
pub(super) struct Availability {
    shared: Shared,
    /// What is polled of each work. The works themselves are read only where that leads to a change.
    polled: View<Arc<Polled>>,
}

/// What a poll needs to know about a work. It is kept for all objects of all works, so it is small.
#[derive(Clone, Debug, PartialEq)]
struct Polled {
    /// The objects, a list of [`ManifestResourceMeta`] as JSON.
    objects: Box<str>,
    /// Their entries in the status.
    reported: Box<[Option<Summary>]>,
    /// Whether the work's own condition follows from those of its objects.
    is_aggregated: bool,
}

/// A hash of status, reason and message of a condition.
type Summary = NonZeroU64;

/// What a poll has found.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// The work, if its status has to change.
    work: Option<Arc<ManifestWork>>,
    outcomes: Vec<Outcome>,
}

impl Availability {
    pub(super) fn new(shared: Shared) -> Self {
        let polled = shared.works.view(|work| polled(work).map(Arc::new));
        Self { shared, polled }
    }

    async fn poll(&self, meta: ManifestResourceMeta) -> Outcome {
        let is_addressable = identifier::is_addressable(&identifier::recorded(&meta, None));
        let object = match is_addressable {
            true => ObjectState::of(self.shared.resources.metadata(&meta).await),
            false => ObjectState::Unmapped,
        };
        Outcome { meta, applied: ApplyResult::NotTried, object }
    }

    /// The work whose status differs from what was found; not if it has other objects since.
    fn outdated(&self, key: &ObjectKey, polled_before: &Polled, outcomes: &[Outcome]) -> Option<Arc<ManifestWork>> {
        if !polled_before.is_outdated(outcomes) {
            return None;
        }
        let work = self.shared.works.get(key)?;
        let is_same = polled(&work).is_some_and(|now| now.has_the_objects_of(polled_before));
        is_same.then_some(work)
    }
}

/// Some time after the shortest interval, different for every work.
fn next_poll(shortest: Duration) -> Duration {
    shortest.mul_f64(1.0 + JITTER * rand::random_range(0.0..1.0))
}

impl StatusController for Availability {
    const NAME: &'static str = "manifestwork-availability";
    type Key = String;
    type Observed = Observed;
    type Plan = Option<ManifestWork>;
    type Error = Error;

    /// A work is polled some time after it changed: what has just been applied exists.
    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let (queue, shortest) = (builder.queue(), self.shared.settings.status_sync);
        builder.watches(&self.shared.works, move |change| {
            queue.add_after(change.object().name_any(), next_poll(shortest));
            None
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let key = ObjectKey::new(&self.shared.settings.cluster, key);
        let Some(polled) = self.polled.get(&key) else { return Ok(None) };
        let polls = stream::iter(polled.objects()).map(|meta| self.poll(meta));
        let outcomes: Vec<_> = polls.buffered(AT_A_TIME).collect().await;
        let work = self.outdated(&key, &polled, &outcomes);
        Ok(Some(Observed { work, outcomes }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Option<ManifestWork> {
        let mut new = observed.work.as_ref()?.as_ref().clone();
        let generation = new.metadata.generation;
        let reported = new.status.get_or_insert_default();
        let entries = status::manifests(&reported.resource_status.manifests, &observed.outcomes, generation, now);
        if let Some(available) = status::available(&entries) {
            set(&mut reported.conditions, available, generation, now);
        }
        reported.resource_status.manifests = entries;
        Some(new)
    }

    async fn report(&self, observed: &Observed, plan: Option<ManifestWork>, _: Timestamp) -> Result<Requeue> {
        if let (Some(old), Some(new)) = (&observed.work, plan) {
            let api = Api::namespaced(self.shared.hub.client().clone(), &self.shared.settings.cluster);
            if let Some(Some(patched)) = found(write::patch_status(&api, old.as_ref(), &new).await)? {
                self.shared.works.record_write(patched);
            }
        }
        Ok(Requeue::After(next_poll(self.shared.settings.status_sync)))
    }
}

impl Polled {
    /// Whether the status differs from what was observed.
    fn is_outdated(&self, outcomes: &[Outcome]) -> bool {
        let differs = |(reported, outcome): (&Option<Summary>, &Outcome)| {
            *reported != Some(summary_of_new(&status::manifest_available(&outcome.object)))
        };
        !self.is_aggregated || self.reported.iter().zip(outcomes).any(differs)
    }

    fn objects(&self) -> Vec<ManifestResourceMeta> {
        // It was serialized here.
        serde_json::from_str(&self.objects).unwrap_or_default()
    }

    fn has_the_objects_of(&self, other: &Self) -> bool {
        self.objects == other.objects
    }
}

/// What to poll of a work; `None` for one that was not applied. One that is being deleted is still polled.
fn polled(work: &ManifestWork) -> Option<Polled> {
    let status = work.status.as_ref()?;
    let applied = find(&status.conditions, conditions::work::APPLIED)?;
    // Until the current generation has been applied, its objects are not known.
    let is_current = write::is_deleting(work) || applied.observed_generation == work.metadata.generation;
    let entries = &status.resource_status.manifests;
    if !is_current || entries.is_empty() {
        return None;
    }
    let objects: Vec<_> = entries.iter().map(|entry| &entry.resource_meta).collect();
    Some(Polled {
        objects: serde_json::to_string(&objects).ok()?.into_boxed_str(),
        reported: entries.iter().map(reported).collect(),
        is_aggregated: is_aggregated(work, &status.conditions, entries),
    })
}

fn reported(entry: &ManifestCondition) -> Option<Summary> {
    find(&entry.conditions, conditions::manifest::AVAILABLE).map(summary)
}

fn is_aggregated(work: &ManifestWork, conditions: &[Condition], entries: &[ManifestCondition]) -> bool {
    let reported = find(conditions, conditions::work::AVAILABLE);
    let reported = reported.filter(|found| found.observed_generation == work.metadata.generation);
    reported.map(summary) == status::available(entries).as_ref().map(summary_of_new)
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
    use crate::{
        testing::{Mock, not_found},
        work::testing,
    };

    fn work(change: &Value) -> Value {
        let time = "2026-01-01T00:00:00Z";
        let condition = |type_: &str, reason: &str, message: &str| {
            json!({"type": type_, "status": "True", "reason": reason, "message": message, "observedGeneration": 2,
                "lastTransitionTime": time})
        };
        let mut available = condition("Available", "ResourceAvailable", "The object exists");
        available["observedGeneration"] = Value::Null;
        let mut work = json!({
            "metadata": {"name": "w", "namespace": "c1", "generation": 2, "uid": "1", "resourceVersion": "1"},
            "spec": {"workload": {"manifests": []}},
            "status": {
                "conditions": [condition("Applied", "x", ""), condition("Available", "ResourcesAvailable", "All objects exist")],
                "resourceStatus": {"manifests": [{"conditions": [available],
                    "resourceMeta": {"ordinal": 0, "version": "v1", "kind": "Pod", "resource": "pods", "name": "a", "namespace": "b"}}]}
            }
        });
        ocm_apimachinery::merge::apply(&mut work, change);
        work
    }

    fn parsed(change: &Value) -> ManifestWork {
        serde_json::from_value(work(change)).unwrap()
    }

    async fn observed(change: &Value, answer: (u16, Value)) -> (Observed, Vec<String>) {
        let hub = Mock::default().listing(testing::WORKS, &json!([work(change)]));
        let managed = Mock::answering(vec![answer]);
        let controller = Availability::new(testing::shared(&hub, &managed).await);
        (controller.observe(&"w".to_owned()).await.unwrap().unwrap(), managed.asked())
    }

    fn pod() -> (u16, Value) {
        (200, json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"}}))
    }

    #[test]
    fn only_works_whose_current_generation_was_applied_are_polled() {
        assert!(polled(&parsed(&json!({}))).is_some());
        assert_eq!(polled(&parsed(&json!({"metadata": {"generation": 3}}))), None);
        assert_eq!(polled(&parsed(&json!({"status": null}))), None);
    }

    #[test]
    fn what_is_kept_of_an_object_is_small() {
        let names = ["network-policies-of-the-team", "deployment-of-the-frontend"];
        let meta = json!({"ordinal": 41, "group": "networking.k8s.io", "version": "v1", "kind": "NetworkPolicy",
            "resource": "networkpolicies", "name": names[0], "namespace": names[1]});
        let entry = json!({"conditions": [], "resourceMeta": meta});
        let entries = vec![entry; 100];
        let polled = polled(&parsed(&json!({"status": {"resourceStatus": {"manifests": entries}}}))).unwrap();
        let bytes = size_of_val(&*polled.objects) + size_of_val(&*polled.reported);
        assert!(bytes < 100 * 220, "{bytes}");
        assert_eq!(polled.objects().len(), 100);
    }

    #[test]
    fn a_work_that_is_being_deleted_is_polled_on() {
        let deleted = json!({"metadata": {"generation": 3, "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert!(polled(&parsed(&deleted)).is_some());
    }

    #[tokio::test]
    async fn a_work_whose_objects_are_as_its_status_says_is_not_read() {
        let (observed, asked) = observed(&json!({}), pod()).await;
        assert!(observed.work.is_none());
        assert_eq!(asked, ["GET /api/v1/namespaces/b/pods/a"]);
        assert_eq!(Availability::plan(&observed, Timestamp::UNIX_EPOCH), None);
    }

    #[tokio::test]
    async fn an_object_that_went_missing_turns_its_condition_and_that_of_the_work() {
        let (observed, _) = observed(&json!({}), not_found()).await;
        let status = Availability::plan(&observed, Timestamp::UNIX_EPOCH).unwrap().status.unwrap();
        let available = find(&status.resource_status.manifests[0].conditions, "Available").unwrap();
        assert_eq!((available.status.as_str(), available.reason.as_str()), ("False", "ResourceNotAvailable"));
        assert_eq!(find(&status.conditions, "Available").unwrap().status, "False");
    }

    #[tokio::test]
    async fn a_condition_of_the_work_that_does_not_follow_from_its_objects_is_corrected() {
        let applied = work(&json!({}))["status"]["conditions"][0].clone();
        let (observed, _) = observed(&json!({"status": {"conditions": [applied]}}), pod()).await;
        let status = Availability::plan(&observed, Timestamp::UNIX_EPOCH).unwrap().status.unwrap();
        assert_eq!(find(&status.conditions, "Available").unwrap().status, "True");
    }

    #[tokio::test]
    async fn an_entry_of_the_status_whose_name_is_no_path_segment_is_not_requested() {
        let odd = json!({"ordinal": 0, "version": "v1", "kind": "Pod", "resource": "pods", "name": "a/log", "namespace": "b"});
        let entries = json!([{"conditions": [], "resourceMeta": odd}]);
        let (observed, asked) = observed(&json!({"status": {"resourceStatus": {"manifests": entries}}}), pod()).await;
        assert_eq!((observed.outcomes[0].object.clone(), asked.len()), (ObjectState::Unmapped, 0));
    }
}
