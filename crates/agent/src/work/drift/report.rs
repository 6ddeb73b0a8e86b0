//! Tells the owners of works what was repaired: by events on the hub, and in the log.
//!
//! There is an event for the first repair of an object after a quiet time, and one when it begins to be repaired less often.
//! When many objects are changed at once, only some of them get one.

use std::{sync::Arc, time::Duration};

use ocm_api::work::v1::{ManifestWork, ResourceIdentifier};
use ocm_runtime::{
    Cache, ObjectKey,
    error::chain,
    events::{EventRecorder, NewEvent},
};
use tokio::{sync::mpsc, time::sleep};
use tracing::{debug, info, warn};

/// So many repairs wait to be reported; further ones are not.
pub(super) const WAITING: usize = 50;
/// The time between two events.
const PACE: Duration = Duration::from_millis(200);
const NEXT_STEP: &str = "Remove the field from the manifest, have it ignored (updateStrategy ServerSideApply with ignoreFields), \
                         or stop the other controller";

/// An object that was changed by others, and written again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repair {
    pub(super) id: ResourceIdentifier,
    pub(super) works: Vec<Arc<str>>,
    /// The fields that were changed; `None` where the object was deleted.
    pub(super) cause: Option<String>,
    /// Whether later repairs are delayed.
    pub(super) is_contested: bool,
    /// Whether there is an event for it.
    pub(super) is_news: bool,
}

/// The condition of an object of which others keep changing these fields.
pub(super) fn contested(fields: &str) -> String {
    format!(
        "Applied, but others keep changing the object, so it is repaired less and less often: {fields}. {NEXT_STEP}"
    )
}

impl Repair {
    fn object(&self) -> String {
        let ResourceIdentifier { resource, namespace, name, .. } = &self.id;
        if namespace.is_empty() { format!("{resource} {name}") } else { format!("{resource} {namespace}/{name}") }
    }

    fn event(&self) -> NewEvent {
        let object = self.object();
        let cause = match &self.cause {
            None => "it was deleted on the managed cluster".to_owned(),
            Some(fields) => format!("changed on the managed cluster: {fields}"),
        };
        if self.is_contested {
            let note =
                format!("Others keep changing {object}, so it is repaired less and less often. {cause}. {NEXT_STEP}");
            return NewEvent { type_: "Warning", reason: "DriftRepeated", note };
        }
        NewEvent { type_: "Normal", reason: "DriftRepaired", note: format!("Repaired {object}: {cause}") }
    }
}

/// Reports repairs until nobody sends any more.
pub(super) async fn report(
    mut repairs: mpsc::Receiver<Repair>,
    works: Cache<ManifestWork>,
    cluster: String,
    recorder: EventRecorder,
) {
    while let Some(repair) = repairs.recv().await {
        let event = repair.event();
        log(&repair, &event);
        for work in repair.works.iter().filter(|_| repair.is_news) {
            if let Some(work) = works.get(&ObjectKey::new(&cluster, &**work))
                && let Err(error) = recorder.record(&cluster, &*work, event.clone()).await
            {
                debug!(error = %chain(&error), "cannot write the event of a repair");
            }
            sleep(PACE).await;
        }
    }
}

fn log(repair: &Repair, event: &NewEvent) {
    match (repair.is_news, repair.is_contested) {
        (true, true) => warn!(works = ?repair.works, "{}", event.note),
        (true, false) => info!(works = ?repair.works, "{}", event.note),
        (false, _) => debug!(works = ?repair.works, "{}", event.note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repair(cause: Option<&str>, is_contested: bool) -> NewEvent {
        let id = ResourceIdentifier {
            resource: "configmaps".into(),
            namespace: "ns".into(),
            name: "a".into(),
            ..Default::default()
        };
        let cause = cause.map(str::to_owned);
        Repair { id, works: vec!["w".into()], cause, is_contested, is_news: true }.event()
    }

    #[test]
    fn an_event_names_the_object_the_field_and_who_changed_it() {
        let event = repair(Some(".data.a (by kubectl-edit)"), false);
        assert_eq!(event.note, "Repaired configmaps ns/a: changed on the managed cluster: .data.a (by kubectl-edit)");
        assert_eq!((event.type_, event.reason), ("Normal", "DriftRepaired"));
        assert!(repair(None, false).note.contains("it was deleted"));
    }

    #[test]
    fn a_fight_is_a_warning_with_the_next_step() {
        let event = repair(Some(".spec.replicas (by hpa)"), true);
        assert_eq!((event.type_, event.reason), ("Warning", "DriftRepeated"));
        for part in ["configmaps ns/a", ".spec.replicas (by hpa)", "ignoreFields", "stop the other controller"] {
            assert!(event.note.contains(part), "{}", event.note);
        }
        assert!(contested(".spec.replicas (by hpa)").contains("ignoreFields"));
    }
}
