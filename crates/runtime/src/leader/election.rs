//! Decides who may lead: a state machine without clock and network.
//!
//! It is client-go's protocol. A lease is free when nobody holds it, or when its record has not
//! changed for as long as it says that it lasts, by the observer's own clock: the times inside are
//! never compared with anybody's clock. The API server lets only one of two writers through, since
//! each write carries the version it was decided on.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    record::{Record, micros},
    settings::Settings,
};

/// A moment by the candidate's own monotonic clock, as the time since an arbitrary start.
pub(super) type Moment = Duration;

/// The duration of a released lease, for candidates that check only the duration.
const RELEASED: Duration = Duration::from_secs(1);

/// What to do about a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It does not exist: create it with this record.
    Create(Record),
    /// It is ours, or free: write this record into it.
    Update(Record),
    /// Somebody else holds it.
    Wait {
        /// Its identity.
        holder: String,
    },
}

/// The view of one candidate.
#[derive(Clone, Debug)]
pub(super) struct Election {
    identity: String,
    settings: Settings,
    /// The record as last seen, and when it was first seen like this.
    observed: Option<(Record, Moment)>,
    /// When the last write that made us the holder was sent; `None` while we do not lead.
    renewed: Option<Moment>,
}

impl Election {
    /// A candidate that has seen nothing yet.
    #[must_use]
    pub(super) fn new(identity: impl Into<String>, settings: Settings) -> Self {
        Self { identity: identity.into(), settings, observed: None, renewed: None }
    }

    /// Decides on what was read `now`; `time` is what the lease will show to people.
    pub(super) fn decide(&mut self, found: Option<Record>, now: Moment, time: Timestamp) -> Decision {
        let Some(found) = found else {
            return Decision::Create(self.record(time));
        };
        if self.observed.as_ref().is_none_or(|(record, _)| *record != found) {
            self.observed = Some((found.clone(), now));
        }
        let since = self.observed.as_ref().map_or(now, |(_, since)| *since);
        if found.holder == self.identity {
            return Decision::Update(self.renewal_of(&found, time));
        }
        if !found.holder.is_empty() && now < since + found.lasts {
            return Decision::Wait { holder: found.holder };
        }
        Decision::Update(Record { transitions: found.transitions.saturating_add(1), ..self.record(time) })
    }

    /// The record with which a leader renews, without reading the lease first.
    #[must_use]
    pub(super) fn renewal(&self, time: Timestamp) -> Option<Record> {
        let (record, _) = self.observed.as_ref().filter(|_| self.renewed.is_some())?;
        Some(self.renewal_of(record, time))
    }

    /// The record with which a leader releases the lease, after it has read this one.
    #[must_use]
    pub(super) fn release(&self, last: &Record, time: Timestamp) -> Option<Record> {
        let time = Some(micros(time));
        let transitions = last.transitions;
        let free = Record { holder: String::new(), lasts: RELEASED, acquired: time, renewed: time, transitions };
        (last.holder == self.identity).then_some(free)
    }

    /// Records that the record was written. What counts is when it was `sent`: nobody has seen it before.
    pub(super) fn written(&mut self, record: Record, sent: Moment) {
        self.renewed = (record.holder == self.identity).then_some(sent);
        self.observed = Some((record, sent));
    }

    /// Records that we do not lead any more.
    pub(super) fn resign(&mut self) {
        self.renewed = None;
    }

    /// Until when a leader leads, unless it renews.
    #[must_use]
    pub(super) fn leads_until(&self) -> Option<Moment> {
        self.renewed.map(|renewed| renewed + self.settings.renew_deadline())
    }

    /// Until when a leader's work must have ended, unless it renews.
    #[must_use]
    pub(super) fn finished_by(&self) -> Option<Moment> {
        self.renewed.map(|renewed| renewed + self.settings.finish_deadline())
    }

    fn record(&self, time: Timestamp) -> Record {
        let time = Some(micros(time));
        let lasts = self.settings.lease_duration();
        Record { holder: self.identity.clone(), lasts, acquired: time, renewed: time, transitions: 0 }
    }

    fn renewal_of(&self, last: &Record, time: Timestamp) -> Record {
        let mut record = self.record(time);
        record.acquired = last.acquired;
        record.transitions = last.transitions;
        // Others notice a renewal by its change, even if the clock does not advance.
        if record.renewed == last.renewed {
            record.renewed = last.renewed.map(|time| time + Duration::from_micros(1));
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn settings() -> Settings {
        Settings::new(15 * SECOND, 10 * SECOND, 2 * SECOND).unwrap()
    }

    fn candidate(identity: &str) -> Election {
        Election::new(identity, settings())
    }

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn held_by(holder: &str, renewed: i64) -> Record {
        let (acquired, renewed) = (Some(time(0)), Some(time(renewed)));
        Record { holder: holder.into(), lasts: 15 * SECOND, acquired, renewed, transitions: 3 }
    }

    #[test]
    fn where_there_is_no_lease_one_is_created() {
        let Decision::Create(record) = candidate("a").decide(None, SECOND, time(7)) else { panic!("it waits") };
        assert_eq!((record.holder.as_str(), record.lasts, record.transitions), ("a", 15 * SECOND, 0));
        assert_eq!((record.acquired, record.renewed), (Some(time(7)), Some(time(7))));
    }

    #[test]
    fn a_lease_is_free_when_it_has_not_changed_for_as_long_as_it_lasts() {
        let mut candidate = candidate("a");
        let waits = Decision::Wait { holder: "b".into() };
        // Its times are long past by our clock, which does not matter.
        assert_eq!(candidate.decide(Some(held_by("b", 1)), 100 * SECOND, time(9999)), waits);
        assert_eq!(candidate.decide(Some(held_by("b", 1)), 114 * SECOND, time(9999)), waits);
        let Decision::Update(record) = candidate.decide(Some(held_by("b", 1)), 115 * SECOND, time(9999)) else {
            panic!("it waits")
        };
        assert_eq!((record.holder.as_str(), record.transitions, record.acquired), ("a", 4, Some(time(9999))));
    }

    #[test]
    fn a_renewal_by_a_clock_that_is_wrong_counts_all_the_same() {
        let mut candidate = candidate("a");
        candidate.decide(Some(held_by("b", 50)), Duration::ZERO, time(1));
        candidate.decide(Some(held_by("b", 20)), 14 * SECOND, time(1));
        assert_eq!(
            candidate.decide(Some(held_by("b", 20)), 28 * SECOND, time(1)),
            Decision::Wait { holder: "b".into() }
        );
    }

    #[test]
    fn a_released_lease_is_free_at_once() {
        let mut leader = candidate("b");
        leader.written(held_by("b", 1), Duration::ZERO);
        let released = leader.release(&held_by("b", 1), time(2)).unwrap();
        assert_eq!((released.holder.as_str(), released.lasts, released.transitions), ("", SECOND, 3));
        let decision = candidate("a").decide(Some(released), Duration::ZERO, time(1));
        assert!(matches!(decision, Decision::Update(record) if record.transitions == 4));
    }

    #[test]
    fn only_the_holder_releases() {
        assert_eq!(candidate("a").release(&held_by("b", 1), time(2)), None);
    }

    #[test]
    fn a_renewal_keeps_since_when_and_always_shows() {
        let mut leader = candidate("a");
        leader.written(held_by("a", 5), 5 * SECOND);
        let renewal = leader.renewal(time(5)).unwrap();
        assert_eq!((renewal.acquired, renewal.transitions), (Some(time(0)), 3));
        assert!(renewal.renewed > Some(time(5)));
    }

    #[test]
    fn a_leader_leads_until_the_deadline_after_its_last_renewal_was_sent() {
        let mut leader = candidate("a");
        assert_eq!((leader.leads_until(), leader.renewal(time(1))), (None, None));
        leader.written(held_by("a", 5), 5 * SECOND);
        assert_eq!(leader.leads_until(), Some(15 * SECOND));
        assert_eq!(leader.finished_by(), Some(Duration::from_millis(17_500)));
        leader.resign();
        assert_eq!((leader.leads_until(), leader.renewal(time(6))), (None, None));
    }
}
