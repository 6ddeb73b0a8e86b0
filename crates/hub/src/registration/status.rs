//! Reading and setting conditions of clusters, and what follows from their lease duration.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use ocm_api::{
    cluster::v1::ManagedCluster,
    limits::{LEASE_DURATION_SECONDS, LEASE_GRACE_FACTOR},
};
use ocm_runtime::conditions::{self, NewCondition};

/// The condition of that type, if the cluster has it.
pub(crate) fn condition<'a>(cluster: &'a ManagedCluster, type_: &str) -> Option<&'a Condition> {
    cluster.status.as_ref().and_then(|status| conditions::find(&status.conditions, type_))
}

/// The status of the condition of that type: `True`, `False`, `Unknown`.
pub(crate) fn condition_status<'a>(cluster: &'a ManagedCluster, type_: &str) -> Option<&'a str> {
    condition(cluster, type_).map(|condition| condition.status.as_str())
}

/// The cluster with a new condition.
pub(crate) fn set_condition(cluster: &ManagedCluster, new: NewCondition, now: Timestamp) -> ManagedCluster {
    let mut changed = cluster.clone();
    conditions::set(&mut changed.status.get_or_insert_default().conditions, new, None, now);
    changed
}

/// Whether the cluster has a condition with this status and reason. A different message alone is not written: a hub that
/// replaces OCM's would write every cluster.
pub(crate) fn is_reported(cluster: &ManagedCluster, new: &NewCondition) -> bool {
    condition(cluster, new.type_)
        .is_some_and(|condition| condition.status == new.status && condition.reason == new.reason)
}

/// How long after its renewal a lease expires, and how much the agent's clock may differ from the hub's.
pub(crate) fn lease_grace(cluster: &ManagedCluster) -> SignedDuration {
    let seconds = cluster.spec.lease_duration_seconds.filter(|seconds| *seconds > 0).unwrap_or(LEASE_DURATION_SECONDS);
    SignedDuration::from_secs(i64::from(seconds) * i64::from(LEASE_GRACE_FACTOR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cluster;

    #[test]
    fn a_lease_counts_five_durations_and_a_duration_of_zero_is_a_minute() {
        let mut cluster = cluster("c1");
        for (given, seconds) in
            [(None, 300), (Some(0), 300), (Some(-1), 300), (Some(1), 5), (Some(i32::MAX), 10_737_418_235)]
        {
            cluster.spec.lease_duration_seconds = given;
            assert_eq!(lease_grace(&cluster).as_secs(), seconds, "{given:?}");
        }
    }

    #[test]
    fn another_wording_alone_is_no_change() {
        let old = set_condition(&cluster("c1"), NewCondition::is_true("T", "R", "their words"), Timestamp::UNIX_EPOCH);
        assert!(is_reported(&old, &NewCondition::is_true("T", "R", "our words")));
        assert!(!is_reported(&old, &NewCondition::is_true("T", "Q", "their words")));
        assert!(!is_reported(&old, &NewCondition::is_false("T", "R", "their words")));
    }
}
