//! The content of a lease, as client-go writes it.

use std::time::Duration;

use jiff::{Timestamp, Unit};
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};

/// The holder of a lease, and its times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// The holder's identity; empty if nobody holds it.
    pub(super) holder: String,
    /// How long it holds after it was renewed.
    pub(super) lasts: Duration,
    /// When the holder acquired it. Only for people.
    pub(super) acquired: Option<Timestamp>,
    /// When it was renewed, by the holder's clock. Only a change of it counts.
    pub(super) renewed: Option<Timestamp>,
    /// How often it went from one holder to another.
    pub(super) transitions: i32,
}

impl Record {
    /// Reads it from a lease.
    #[must_use]
    pub(super) fn of(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let seconds = spec.lease_duration_seconds.unwrap_or_default();
        Self {
            holder: spec.holder_identity.unwrap_or_default(),
            lasts: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
            acquired: spec.acquire_time.map(|time| time.0),
            renewed: spec.renew_time.map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }

    /// Writes it into a lease, of which everything else stays as it is.
    pub(super) fn write_to(&self, lease: &mut Lease) {
        let spec = lease.spec.get_or_insert_default();
        *spec = LeaseSpec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: Some(i32::try_from(self.lasts.as_secs()).unwrap_or(i32::MAX)),
            acquire_time: self.acquired.map(MicroTime),
            renew_time: self.renewed.map(MicroTime),
            lease_transitions: Some(self.transitions),
            ..std::mem::take(spec)
        };
    }
}

/// Leases count in microseconds.
pub(super) fn micros(time: Timestamp) -> Timestamp {
    time.round(Unit::Microsecond).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_written_into_a_lease_as_by_client_go() {
        let time: Timestamp = "2026-11-21T18:00:00.123456Z".parse().unwrap();
        let record = Record {
            holder: "host_1".into(),
            lasts: Duration::from_secs(137),
            acquired: Some(time),
            renewed: Some(time),
            transitions: 2,
        };
        let mut lease = Lease::default();
        record.write_to(&mut lease);
        let expected = json!({
            "holderIdentity": "host_1", "leaseDurationSeconds": 137, "leaseTransitions": 2,
            "acquireTime": "2026-11-21T18:00:00.123456Z", "renewTime": "2026-11-21T18:00:00.123456Z",
        });
        assert_eq!(serde_json::to_value(&lease.spec).unwrap(), expected);
        assert_eq!(Record::of(&lease), record);
    }

    #[test]
    fn other_fields_of_a_lease_stay() {
        let mut lease = Lease::default();
        lease.spec.get_or_insert_default().strategy = Some("OldestEmulationVersion".into());
        Record::default().write_to(&mut lease);
        assert_eq!(lease.spec.unwrap().strategy.as_deref(), Some("OldestEmulationVersion"));
    }

    #[test]
    fn an_empty_lease_is_held_by_nobody_and_does_not_last() {
        assert_eq!(Record::of(&Lease::default()), Record::default());
    }
}
