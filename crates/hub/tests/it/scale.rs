//! Many clusters at once: what the hub writes is bounded by their number, whatever happens to all of them.
//!
//! The clusters are objects without agents, on a control plane of their own. `make bench ARGS='--only storm'` does the same
//! with a thousand of them.

use std::{collections::BTreeMap, time::Instant};

use anyhow::Result;
use jiff::Timestamp;
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, PostParams},
};
use ocm_api::{
    cluster::{
        v1::ManagedCluster,
        v1beta1::Placement,
        v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
    },
    conditions::set::EMPTY,
    rbac::{REGISTRATION_CLUSTER_ROLE, WORK_CLUSTER_ROLE},
};
use ocm_hub::HubConfig;
use ocm_runtime::{Context, conditions};
use ocm_testing::{AuditLog, ControlPlane, JoinedClusters, Seen, Write, eventually_within};
use serde_json::json;

use crate::support::{ACCOUNT, NAMESPACE, context, install, now, start_hub};

/// As many as fit into a test run on two cores.
const CLUSTERS: usize = 200;
/// How long anything may take, also on a machine that does much else.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(300);

/// A hub with clusters that have joined, in a set that is bound to a namespace whose placement selects all of them.
struct Fleet {
    clusters: JoinedClusters,
    api: Api<ManagedCluster>,
    placements: Api<Placement>,
    sets: Api<ManagedClusterSet>,
    audit: AuditLog,
    context: Context,
    // Dropped last.
    _plane: ControlPlane,
}

/// The hub's writes, `verb resource code`, with their number.
#[derive(Debug, Default)]
struct Writes {
    of_clusters: BTreeMap<String, usize>,
    /// Of what belongs to all clusters together.
    shared: BTreeMap<String, usize>,
}

impl Fleet {
    async fn start() -> Result<Self> {
        let plane = ControlPlane::builder().name("scale").audit(true).start().await?;
        let context = context();
        install(&plane, &context).await?;
        let client = plane.client().await?;
        let fleet = Self {
            clusters: JoinedClusters::create(&client, CLUSTERS, now()).await?,
            api: Api::all(client.clone()),
            placements: Api::namespaced(client.clone(), "default"),
            sets: Api::all(client.clone()),
            audit: AuditLog::of(&plane)?,
            context,
            _plane: plane,
        };
        start_hub(&fleet._plane, &fleet.context, HubConfig::default()).await?;
        let binding = json!({"metadata": {"name": "global"}, "spec": {"clusterSet": "global"}});
        let bindings: Api<ManagedClusterSetBinding> = Api::namespaced(client, "default");
        bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;
        let placement = json!({"metadata": {"name": "all"}, "spec": {}});
        fleet.placements.create(&PostParams::default(), &serde_json::from_value(placement)?).await?;
        fleet.settled(CLUSTERS, CLUSTERS).await?;
        Ok(fleet)
    }

    /// Waits until placement and set report so many clusters.
    async fn settled(&self, selected: usize, members: usize) -> Result<()> {
        eventually_within(LIMIT, &format!("{selected} clusters are selected, {members} in the set"), || async {
            let status = self.placements.get("all").await?.status.unwrap_or_default();
            let set = self.sets.get("global").await?.status.unwrap_or_default();
            let said = conditions::find(&set.conditions, EMPTY).map(|condition| condition.message.clone());
            let said = said.unwrap_or_default();
            let counts = if members == 0 { "No ManagedCluster".into() } else { format!("{members} ManagedClusters") };
            let is_settled =
                usize::try_from(status.number_of_selected_clusters) == Ok(selected) && said.starts_with(&counts);
            let seen = format!("{} selected, {said}", status.number_of_selected_clusters);
            anyhow::Ok(if is_settled { Seen::Settled(()) } else { Seen::NotYet(seen) })
        })
        .await
    }

    /// Waits until so many clusters have that many taints.
    async fn tainted(&self, taints: usize) -> Result<()> {
        eventually_within(LIMIT, &format!("every cluster has {taints} taints"), || async {
            let clusters = self.api.list(&ListParams::default()).await?.items;
            let done = clusters.iter().filter(|cluster| cluster.spec.taints.len() == taints).count();
            let seen = Seen::NotYet(format!("{done} of {CLUSTERS} have"));
            anyhow::Ok(if done == CLUSTERS { Seen::Settled(()) } else { seen })
        })
        .await
    }

    /// What the hub has written since then.
    fn writes_since(&self, position: u64) -> Result<Writes> {
        let hub = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
        let mut writes = Writes::default();
        for write in self.audit.since(position)?.iter().filter(|write| write.user == hub) {
            let kinds = if is_of_one_cluster(write) { &mut writes.of_clusters } else { &mut writes.shared };
            *kinds.entry(format!("{write} {}", write.code)).or_default() += 1;
        }
        Ok(writes)
    }

    /// No agent renews its lease in time.
    async fn lose(&self) -> Result<()> {
        self.clusters.set_lease_duration(1).await?;
        self.tainted(1).await?;
        self.settled(0, CLUSTERS).await
    }

    /// Every agent is back.
    async fn regain(&self, at: Timestamp) -> Result<()> {
        self.clusters.set_lease_duration(60).await?;
        self.clusters.renew(at).await?;
        self.clusters.report_available(at).await?;
        self.tainted(0).await?;
        self.settled(CLUSTERS, CLUSTERS).await
    }

    async fn delete(&self) -> Result<()> {
        self.clusters.delete().await?;
        eventually_within(LIMIT, "every cluster is gone", || async {
            let left = self.api.list_metadata(&ListParams::default().limit(1)).await?.items;
            let seen = |cluster: &str| Seen::NotYet(format!("{cluster} is not"));
            anyhow::Ok(left.first().map_or(Seen::Settled(()), |cluster| seen(&cluster.name_any())))
        })
        .await?;
        self.settled(0, 0).await
    }
}

/// Whether a write is about one cluster, and not about a set, a placement or a role of all clusters.
fn is_of_one_cluster(write: &Write) -> bool {
    let is_common_role = [REGISTRATION_CLUSTER_ROLE, WORK_CLUSTER_ROLE].contains(&write.name.as_str());
    write.namespace != "default" && !write.resource.starts_with("managedclustersets") && !is_common_role
}

impl Writes {
    /// Fails unless each cluster has cost this, and what all clusters share was written at most once a second since then.
    #[track_caller]
    fn are(&self, of_each: &[(&str, usize)], since: Instant) {
        let expected = of_each.iter().map(|(kind, count)| ((*kind).to_owned(), count * CLUSTERS)).collect();
        assert_eq!(self.of_clusters, expected);
        // The round at the beginning, and one that is not over yet.
        let rounds = usize::try_from(since.elapsed().as_secs()).unwrap_or(usize::MAX).saturating_add(2);
        for kind in ["patch managedclustersets/status 200", "patch placements/status 200"] {
            let written = self.shared.get(kind).copied().unwrap_or_default();
            assert!(written <= rounds, "{kind}: {written} times in {rounds} rounds");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_all_clusters_at_once_costs_a_few_writes_for_each_and_none_is_repeated() -> Result<()> {
    let fleet = Fleet::start().await?;
    assert_eq!(fleet.writes_since(0)?.of_clusters, BTreeMap::new());

    let (position, since) = (fleet.audit.position()?, Instant::now());
    fleet.lose().await?;
    let lost = [("create events 201", 1), ("patch managedclusters 200", 1), ("patch managedclusters/status 200", 1)];
    fleet.writes_since(position)?.are(&lost, since);

    let (position, since) = (fleet.audit.position()?, Instant::now());
    fleet.regain(now()).await?;
    fleet.writes_since(position)?.are(&[("patch managedclusters 200", 1)], since);

    let (position, since) = (fleet.audit.position()?, Instant::now());
    fleet.delete().await?;
    let mut writes = fleet.writes_since(position)?;
    // A cluster that its rights have held no longer than the clean-up is gone before anything is reported.
    let reports = writes.of_clusters.remove("patch managedclusters/status 200").unwrap_or_default();
    assert!(reports <= CLUSTERS, "{reports}");
    let deleted = [
        ("delete clusterrolebindings 200", 1),
        ("delete clusterroles 200", 1),
        ("delete rolebindings 200", 2),
        ("patch managedclusters 200", 2),
        ("patch rolebindings 200", 1),
    ];
    writes.are(&deleted, since);
    fleet.context.stop().await;
    Ok(())
}
