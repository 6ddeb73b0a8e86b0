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

/// The cluster with a finding among its conditions.
pub(crate) fn with_finding(cluster: &ManagedCluster, finding: NewCondition, now: Timestamp) -> ManagedCluster {
    let mut new = cluster.clone();
    conditions::set(&mut new.status.get_or_insert_default().conditions, finding, None, now);
    new
}

/// Whether the cluster has the same status and reason already. Another wording alone is not worth a write: a hub that
/// takes over from another one would rewrite every cluster.
pub(crate) fn says_already(cluster: &ManagedCluster, finding: &NewCondition) -> bool {
    condition(cluster, finding.type_)
        .is_some_and(|condition| condition.status == finding.status && condition.reason == finding.reason)
}

/// How long after a renewal a lease still counts, and how far the agent's clock may be off.
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
    fn another_wording_alone_is_no_news() {
        let old = with_finding(&cluster("c1"), NewCondition::is_true("T", "R", "their words"), Timestamp::UNIX_EPOCH);
        assert!(says_already(&old, &NewCondition::is_true("T", "R", "our words")));
        assert!(!says_already(&old, &NewCondition::is_true("T", "Q", "their words")));
        assert!(!says_already(&old, &NewCondition::is_false("T", "R", "their words")));
    }
}
