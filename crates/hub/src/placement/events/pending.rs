//! Events that wait to be written: at most [`LIMIT`], and of each placement only the latest of a kind.

use std::{
    collections::{HashMap, VecDeque},
    mem,
    sync::Arc,
};

use kube::ResourceExt as _;
use ocm_api::cluster::v1beta1::{Placement, PlacementDecision};
use ocm_runtime::{ObjectKey, events::NewEvent};

/// How many events may wait. One takes up to 2 KB.
pub(super) const LIMIT: usize = 5_000;

/// An event about a decision.
#[derive(Clone, Debug)]
pub(super) struct DecisionEvent {
    pub(super) event: NewEvent,
    pub(super) action: &'static str,
    pub(super) decision: PlacementDecision,
}

/// The waiting events of one placement, in their order.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) placement: Arc<Placement>,
    pub(super) events: Vec<DecisionEvent>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The placements with events, the one that has waited longest first.
    order: VecDeque<ObjectKey>,
    batches: HashMap<ObjectKey, Batch>,
    /// How many events wait.
    count: usize,
    /// How many were dropped since the last report.
    dropped: u64,
}

impl Pending {
    /// Adds an event. It replaces one of the same kind about the same decision, which is out of date. When too many wait, it
    /// is dropped and counted.
    pub(super) fn add(&mut self, placement: &Arc<Placement>, event: DecisionEvent) {
        let key = ObjectKey::of(placement.as_ref());
        if let Some(batch) = self.batches.get_mut(&key) {
            let before = batch.events.len();
            batch.events.retain(|waiting| !waiting.is_replaced_by(&event));
            self.count -= before - batch.events.len();
        }
        if self.count >= LIMIT {
            self.dropped += 1;
            return;
        }
        let batch = self.batches.entry(key.clone()).or_insert_with(|| {
            self.order.push_back(key);
            Batch { placement: placement.clone(), events: Vec::new() }
        });
        batch.placement = placement.clone();
        batch.events.push(event);
        self.count += 1;
    }

    /// Takes the events of the placement that has waited longest, and the number of those that were dropped since the last
    /// call.
    pub(super) fn take(&mut self) -> Option<(Batch, u64)> {
        let batch = self.batches.remove(&self.order.pop_front()?)?;
        self.count -= batch.events.len();
        Some((batch, mem::take(&mut self.dropped)))
    }
}

impl DecisionEvent {
    fn is_replaced_by(&self, newer: &Self) -> bool {
        self.event.reason == newer.event.reason && self.decision.name_any() == newer.decision.name_any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(name: &str) -> Arc<Placement> {
        Arc::new(Placement::new("ns", name, <_>::default()))
    }

    fn event(reason: &'static str, decision: &str, note: &str) -> DecisionEvent {
        let event = NewEvent { type_: "Normal", reason, note: note.into() };
        DecisionEvent { event, action: reason, decision: PlacementDecision::new("ns", decision) }
    }

    fn notes(batch: &Batch) -> Vec<&str> {
        batch.events.iter().map(|event| &*event.event.note).collect()
    }

    #[test]
    fn events_are_taken_by_placement_in_their_order() {
        let mut pending = Pending::default();
        pending.add(&placement("p"), event("A", "d", "1"));
        pending.add(&placement("q"), event("A", "d", "2"));
        pending.add(&placement("p"), event("B", "d", "3"));
        let (batch, _) = pending.take().unwrap();
        assert_eq!((batch.placement.name_any(), notes(&batch)), ("p".into(), vec!["1", "3"]));
        let (batch, _) = pending.take().unwrap();
        assert_eq!(notes(&batch), ["2"]);
        assert!(pending.take().is_none());
    }

    #[test]
    fn of_several_events_of_a_kind_about_a_decision_only_the_latest_waits() {
        let mut pending = Pending::default();
        for (decision, note) in [("d", "1"), ("e", "2"), ("d", "3"), ("d", "4")] {
            pending.add(&placement("p"), event("Update", decision, note));
        }
        assert_eq!(pending.count, 2);
        assert_eq!(notes(&pending.take().unwrap().0), ["2", "4"]);
        assert_eq!(pending.count, 0);
    }

    #[test]
    fn when_too_many_wait_further_ones_are_dropped_and_counted() {
        let mut pending = Pending::default();
        for index in 0..LIMIT + 3 {
            pending.add(&placement(&format!("p{index}")), event("A", "d", "1"));
        }
        assert_eq!((pending.count, pending.order.len(), pending.batches.len()), (LIMIT, LIMIT, LIMIT));
        pending.add(&placement("p0"), event("A", "d", "newer"));
        let (batch, dropped) = pending.take().unwrap();
        assert_eq!((notes(&batch), dropped), (vec!["newer"], 3), "what replaces another one has room");
        assert_eq!(pending.take().unwrap().1, 0, "they are reported once");
        pending.add(&placement("late"), event("A", "d", "1"));
        assert_eq!(pending.dropped, 0);
    }
}
