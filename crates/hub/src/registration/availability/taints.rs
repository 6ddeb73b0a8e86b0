//! Keeps placements away from clusters that are not available.
//!
//! Condition `ManagedClusterConditionAvailable` → taint `unreachable` (status Unknown or missing), `unavailable` (False) or
//! neither, in `spec.taints`. Taints of others stay as they are, but get `timeAdded` if they lack it: without it,
//! nobody knows when a toleration with `tolerationSeconds` ends.

use std::sync::Arc;

use jiff::Timestamp;
use ocm_api::{
    cluster::v1::{ManagedCluster, Taint, TaintEffect},
    conditions::{cluster::AVAILABLE, status},
    taints::{UNAVAILABLE, UNREACHABLE},
};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, write};

use super::time_added;
use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
    registration::status::condition_status,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct TaintController {
    hub: HubContext,
    clusters: Cache<ManagedCluster>,
}

impl TaintController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        Self { clusters: caches::clusters(&hub.informers), hub: hub.clone() }
    }
}

impl Controller for TaintController {
    const NAME: &'static str = "cluster-taints";
    type Key = String;
    type Observed = Arc<ManagedCluster>;
    type Plan = Option<Box<ManagedCluster>>;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.watches(&self.clusters, |change| {
            concerns(change).then(|| change.object().metadata.name.clone()).flatten()
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Arc<ManagedCluster>>> {
        Ok(self.clusters.named(key).filter(|cluster| !write::is_deleting(cluster.as_ref())))
    }

    fn plan(cluster: &Arc<ManagedCluster>, now: Timestamp) -> Option<Box<ManagedCluster>> {
        let taints = desired(cluster, now);
        (taints != cluster.spec.taints).then(|| {
            let mut new = ManagedCluster::clone(cluster);
            new.spec.taints = taints;
            Box::new(new)
        })
    }

    async fn apply(&self, cluster: &Arc<ManagedCluster>, plan: Option<Box<ManagedCluster>>) -> Result<()> {
        if let Some(new) = plan {
            self.hub.writer().patch(cluster, &new).await?;
        }
        Ok(())
    }
}

fn concerns(change: Change<'_, ManagedCluster>) -> bool {
    match change {
        Change::Added(_) => true,
        Change::Updated { old, new } => {
            let health = |cluster| condition_status(cluster, AVAILABLE).map(str::to_owned);
            health(old) != health(new) || old.spec.taints != new.spec.taints
        }
        Change::Deleted(_) => false,
    }
}

/// The taints that the cluster should have, with their times.
pub(crate) fn desired(cluster: &ManagedCluster, now: Timestamp) -> Vec<Taint> {
    time_added::set(taints_of(cluster), now)
}

fn taints_of(cluster: &ManagedCluster) -> Vec<Taint> {
    let wanted = match condition_status(cluster, AVAILABLE) {
        Some(status::TRUE) => None,
        Some(status::FALSE) => Some(UNAVAILABLE),
        _ => Some(UNREACHABLE),
    };
    let mut taints = cluster.spec.taints.clone();
    taints.retain(|taint| !is_ours(taint, UNAVAILABLE) && !is_ours(taint, UNREACHABLE) || wanted == Some(&taint.key));
    if let Some(key) = wanted
        && !taints.iter().any(|taint| is_ours(taint, key))
    {
        taints.push(Taint { key: key.into(), effect: TaintEffect::NoSelect, ..Taint::default() });
    }
    taints
}

/// Whether the taint is the one of this key that the hub sets: no value, effect `NoSelect`.
fn is_ours(taint: &Taint, key: &str) -> bool {
    taint.key == key && taint.value.as_deref().unwrap_or_default().is_empty() && taint.effect == TaintEffect::NoSelect
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::testing::{cluster, now, with_condition};

    fn taint(key: &str) -> Taint {
        Taint { key: key.into(), time_added: Some(Time(now())), ..Taint::default() }
    }

    fn after(available: Option<&'static str>, taints: Vec<Taint>) -> Option<Vec<Taint>> {
        let mut cluster = cluster("c1");
        cluster.spec.taints = taints;
        if let Some(status) = available {
            cluster = with_condition(&cluster, AVAILABLE, status, "R");
        }
        TaintController::plan(&Arc::new(cluster), now()).map(|new| new.spec.taints)
    }

    #[test]
    fn a_cluster_of_unknown_health_is_unreachable() {
        assert_eq!(after(None, vec![]), Some(vec![taint(UNREACHABLE)]));
        assert_eq!(after(Some("Unknown"), vec![taint(UNAVAILABLE)]), Some(vec![taint(UNREACHABLE)]));
    }

    #[test]
    fn an_unhealthy_cluster_is_unavailable_and_a_healthy_one_has_neither_taint() {
        assert_eq!(after(Some("False"), vec![taint(UNREACHABLE)]), Some(vec![taint(UNAVAILABLE)]));
        assert_eq!(after(Some("True"), vec![taint(UNREACHABLE), taint(UNAVAILABLE)]), Some(vec![]));
    }

    #[test]
    fn taints_that_are_right_are_not_written_again() {
        assert_eq!(after(None, vec![taint(UNREACHABLE)]), None);
        assert_eq!(after(Some("True"), vec![]), None);
    }

    #[test]
    fn taints_of_others_stay_even_under_our_keys() {
        let theirs = Taint { value: Some("x".into()), ..taint(UNREACHABLE) };
        let softer = Taint { effect: TaintEffect::PreferNoSelect, ..taint(UNAVAILABLE) };
        let all = vec![taint("gpu"), theirs, softer];
        assert_eq!(after(Some("True"), all.clone()), None);
        assert_eq!(after(None, all).unwrap().len(), 4);
    }

    #[test]
    fn every_taint_gets_the_whole_second_it_was_added_in_and_keeps_it() {
        let before = Some(Time(Timestamp::UNIX_EPOCH));
        let theirs = Taint { time_added: None, ..taint("gpu") };
        let timed = Taint { time_added: before.clone(), ..taint("disk") };
        let mut cluster = cluster("c1");
        cluster.spec.taints = vec![theirs, timed];
        let late = now() + jiff::SignedDuration::from_millis(999);
        let planned = TaintController::plan(&Arc::new(cluster), late).unwrap().spec.taints;
        let times: Vec<_> = planned.iter().map(|taint| taint.time_added.clone()).collect();
        assert_eq!(times, [Some(Time(now())), before, Some(Time(now()))]);
        assert_eq!(serde_json::to_value(&planned[0]).unwrap()["timeAdded"], "2027-01-15T08:00:00Z");
    }
}
