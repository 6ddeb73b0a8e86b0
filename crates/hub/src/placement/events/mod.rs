//! Events about changes of decisions, written in the background.
//!
//! Decisions are more urgent than events, and the API server takes only so many writes a second. So events wait in a bounded
//! queue ([`pending`]) for a few writers. Events that cannot be written, that find the queue full, or that are still waiting
//! when the hub ends are lost; the log contains their number.

mod pending;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt as _;
use ocm_api::{
    cluster::v1beta1::{Placement, PlacementDecision},
    limits::MAX_SCORE_NOTE,
    reasons::placement as reasons,
};
use ocm_runtime::{
    Context,
    error::chain,
    events::{EventRecorder, NewEvent},
};
use tokio::sync::Notify;
use tracing::warn;

use self::pending::{Batch, DecisionEvent, Pending};
use ocm_scheduler::Name;

use super::apply::DecisionWrite;

/// How many placements' events are written at a time.
const WRITERS: usize = 4;

/// Where events wait until they are written. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct EventQueue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    pending: Mutex<Pending>,
    added: Notify,
}

impl EventQueue {
    /// A queue, and its writers, which run until `context` ends.
    pub(super) fn start(context: &Context, recorder: &EventRecorder) -> Self {
        let queue = Self::default();
        for _ in 0..WRITERS {
            let (queue, recorder) = (queue.clone(), recorder.clone());
            context.spawn(async move {
                loop {
                    let (batch, dropped) = queue.next().await;
                    report(dropped);
                    write(&recorder, batch).await;
                }
            });
        }
        queue
    }

    /// Adds events about these writes.
    pub(super) fn add(&self, placement: &Arc<Placement>, writes: &[DecisionWrite], cause: &Cause<'_>) {
        let mut pending = self.lock();
        for event in writes.iter().flat_map(|write| events(placement, write, cause)) {
            pending.add(placement, event);
        }
        drop(pending);
        self.0.added.notify_one();
    }

    /// The events of the placement that has waited longest, and how many were dropped since the last call.
    async fn next(&self) -> (Batch, u64) {
        loop {
            let next = self.lock().take();
            if let Some(next) = next {
                // One notification may have been for the events of several placements.
                self.0.added.notify_one();
                return next;
            }
            self.0.added.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn report(dropped: u64) {
    if dropped > 0 {
        warn!(
            dropped,
            limit = pending::LIMIT,
            "events about placement decisions were dropped: too many were waiting for the API server"
        );
    }
}

async fn write(recorder: &EventRecorder, Batch { placement, events }: Batch) {
    let namespace = placement.namespace().unwrap_or_default();
    for DecisionEvent { event, action, decision } in events {
        let written = recorder.record_related(&namespace, placement.as_ref(), event, action, &decision);
        if let Err(error) = written.await {
            warn!(error = %chain(&error), "failed to write an event about a placement decision; it is not tried again");
        }
    }
}

/// Why the clusters were selected.
#[derive(Debug, Default)]
pub(super) struct Cause<'a> {
    /// The scores of all that fit.
    pub(super) scores: &'a [(Name, i64)],
    /// Which scores of add-ons have expired.
    pub(super) expired: Option<&'a str>,
}

fn events(placement: &Placement, write: &DecisionWrite, cause: &Cause<'_>) -> Vec<DecisionEvent> {
    let event = |reason, action, decision: &PlacementDecision, note| DecisionEvent {
        event: NewEvent { type_: "Normal", reason, note },
        action,
        // Only what identifies it, as many may wait.
        decision: PlacementDecision { metadata: decision.metadata.clone(), status: None },
    };
    match write {
        DecisionWrite::Created(created) => {
            let note = format!("Created PlacementDecision {}", created.name_any());
            vec![event(reasons::DECISION_CREATE, reasons::DECISION_CREATED, created, note)]
        }
        DecisionWrite::Deleted(deleted) => {
            let (deleted_name, placement) = (deleted.name_any(), placement.name_any());
            let note = format!("Deleted PlacementDecision {deleted_name}, which placement {placement} no longer needs");
            vec![event(reasons::DECISION_DELETE, reasons::DECISION_DELETED, deleted, note)]
        }
        DecisionWrite::Listed(updated) => {
            let expired = cause.expired.map(|expired| format!(". {expired}")).unwrap_or_default();
            let note = format!("Updated the clusters of PlacementDecision {}{expired}", updated.name_any());
            let mut update = event(reasons::DECISION_UPDATE, reasons::DECISION_UPDATED, updated, note);
            if cause.expired.is_some() {
                update.event.type_ = "Warning";
            }
            let has_scores = !cause.scores.is_empty();
            let scores = has_scores
                .then(|| event(reasons::SCORE_UPDATE, reasons::SCORE_UPDATED, updated, score_note(cause.scores)));
            [update].into_iter().chain(scores).collect()
        }
    }
}

/// Each cluster with its score, as long as there is room.
fn score_note(scores: &[(Name, i64)]) -> String {
    let mut note = String::new();
    for (name, score) in scores {
        let entry = format!("{name}:{score} ");
        if note.len() + entry.len() > MAX_SCORE_NOTE {
            note.push_str("......");
            break;
        }
        note.push_str(&entry);
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_lists_scores_as_long_as_there_is_room() {
        let scores = |count: usize| (0..count).map(|index| (format!("c{index:05}").into(), 100)).collect::<Vec<_>>();
        assert_eq!(score_note(&scores(2)), "c00000:100 c00001:100 ");
        let long = score_note(&scores(1000));
        assert!(long.len() <= 1006 && long.ends_with("c00089:100 ......"), "{long}");
    }

    #[test]
    fn an_updated_list_of_clusters_comes_with_scores_if_there_are_any() {
        let placement = Placement::new("ns", "p", <_>::default());
        let listed = DecisionWrite::Listed(Arc::new(PlacementDecision::new("ns", "p-decision-1")));
        let reasons = |scores: &[(Name, i64)]| -> Vec<_> {
            let cause = Cause { scores, ..Cause::default() };
            events(&placement, &listed, &cause).into_iter().map(|new| (new.event.reason, new.action)).collect()
        };
        assert_eq!(reasons(&[]), [("DecisionUpdate", "DecisionUpdated")]);
        let both = [("DecisionUpdate", "DecisionUpdated"), ("ScoreUpdate", "ScoreUpdated")];
        assert_eq!(reasons(&[("c".into(), 1)]), both);
    }

    #[test]
    fn scores_that_have_expired_make_the_update_a_warning() {
        let placement = Placement::new("ns", "p", <_>::default());
        let listed = DecisionWrite::Listed(Arc::new(PlacementDecision::new("ns", "p-decision-1")));
        let cause = Cause { scores: &[], expired: Some("These have expired: c1/r") };
        let [update] = &events(&placement, &listed, &cause)[..] else { panic!() };
        assert_eq!((update.event.type_, update.event.reason), ("Warning", "DecisionUpdate"));
        assert!(update.event.note.ends_with(" p-decision-1. These have expired: c1/r"), "{}", update.event.note);
    }

    #[tokio::test]
    async fn several_writers_take_the_events_of_several_placements() {
        let queue = EventQueue::default();
        let takers: Vec<_> = (0..2)
            .map(|_| {
                tokio::spawn({
                    let queue = queue.clone();
                    async move { queue.next().await }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        let writes = [DecisionWrite::Created(Arc::new(PlacementDecision::new("ns", "d")))];
        for name in ["p", "q"] {
            queue.add(&Arc::new(Placement::new("ns", name, <_>::default())), &writes, &Cause::default());
        }
        let mut taken = Vec::new();
        for taker in takers {
            taken.push(taker.await.unwrap().0.placement.name_any());
        }
        taken.sort_unstable();
        assert_eq!(taken, ["p", "q"]);
    }
}
