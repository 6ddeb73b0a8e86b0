//! Clusters without agents, and a placement that selects from them, from its creation to its deletion.

use std::collections::BTreeMap;

use anyhow::Result;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use ocm_api::{
    cluster::{
        v1::ManagedCluster,
        v1beta1::{Placement, PlacementDecision, PlacementStatus},
        v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
    },
    components::placement_decision_name,
    conditions::{placement::SATISFIED, set_binding::BOUND},
    labels, taints,
};
use ocm_runtime::conditions::is_true;
use ocm_testing::{Seen, eventually, unique};
use serde_json::json;

use crate::world::World;

/// The clusters of a set that is bound to a namespace.
pub(crate) struct Fleet {
    hub: Client,
    namespace: String,
    set: String,
    /// Those for `prod`, by name.
    prod: Vec<String>,
}

/// The clusters that each PlacementDecision lists.
type Lists = BTreeMap<String, Vec<String>>;

impl Fleet {
    /// Three clusters for `prod`, and one for `dev`.
    pub(crate) async fn new(world: &World) -> Result<Self> {
        let (namespace, set) = (unique("fleet"), unique("set"));
        world.hub_plane.kubectl(&["create", "namespace", &namespace]).await?;
        let mut fleet = Self { hub: world.hub.clone(), namespace, set, prod: Vec::new() };
        fleet.bind().await?;
        for (prefix, env) in [("a", "dev"), ("b", "prod"), ("c", "prod"), ("d", "prod")] {
            let name = unique(prefix);
            fleet.create_cluster(&name, env).await?;
            if env == "prod" {
                fleet.prod.push(name);
            }
        }
        Ok(fleet)
    }

    async fn bind(&self) -> Result<()> {
        let sets = Api::<ManagedClusterSet>::all(self.hub.clone());
        sets.create(&PostParams::default(), &ManagedClusterSet::new(&self.set, <_>::default())).await?;
        let spec = serde_json::from_value(json!({"clusterSet": self.set}))?;
        let binding = ManagedClusterSetBinding::new(&self.namespace, &self.set, spec);
        self.bindings().create(&PostParams::default(), &binding).await?;
        Ok(())
    }

    async fn create_cluster(&self, name: &str, env: &str) -> Result<()> {
        let labels = json!({labels::CLUSTER_SET: self.set, "env": env});
        let cluster = json!({"metadata": {"name": name, "labels": labels}, "spec": {}});
        self.clusters().create(&PostParams::default(), &serde_json::from_value(cluster)?).await?;
        Ok(())
    }

    fn clusters(&self) -> Api<ManagedCluster> {
        Api::all(self.hub.clone())
    }

    fn bindings(&self) -> Api<ManagedClusterSetBinding> {
        Api::namespaced(self.hub.clone(), &self.namespace)
    }

    fn placements(&self) -> Api<Placement> {
        Api::namespaced(self.hub.clone(), &self.namespace)
    }

    /// Waits until the hub has reconciled the clusters and the binding.
    pub(crate) async fn is_known(&self) -> Result<()> {
        let of_set = ListParams::default().labels(&format!("{}={}", labels::CLUSTER_SET, self.set));
        eventually("the clusters have their taints and finalizers, and the set is bound", || async {
            let clusters = self.clusters().list(&of_set).await?.items;
            let binding = self.bindings().get(&self.set).await?.status.unwrap_or_default();
            let is_tainted =
                |cluster: &ManagedCluster| cluster.spec.taints.iter().any(|t| t.key == taints::UNREACHABLE);
            let seen = clusters.iter().all(|cluster| is_tainted(cluster) && !cluster.finalizers().is_empty());
            anyhow::Ok(seen && is_true(&binding.conditions, BOUND))
        })
        .await
    }

    /// A placement is created, reduced to fewer clusters, and deleted.
    pub(crate) async fn life_of_a_placement(&self) -> Result<()> {
        let name = unique("placement");
        let spec = json!({
            "numberOfClusters": 3,
            "predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prod"}}}}],
            "tolerations": [{"key": taints::UNREACHABLE, "operator": "Exists"}],
            "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 2}},
        });
        let placement = Placement::new(&self.namespace, &name, serde_json::from_value(spec)?);
        self.placements().create(&PostParams::default(), &placement).await?;
        let [first, second, third] = &self.prod[..] else { anyhow::bail!("the fleet has three clusters for prod") };
        self.has_chosen(&name, &[&[first, second], &[third]]).await?;
        let fewer = Patch::Merge(json!({"spec": {"numberOfClusters": 1}}));
        self.placements().patch(&name, &PatchParams::default(), &fewer).await?;
        self.has_chosen(&name, &[&[first]]).await?;
        self.placements().delete(&name, &DeleteParams::default()).await?;
        self.is_without_decisions().await
    }

    /// Waits until the decisions of a placement list these clusters, one decision per group, and its status agrees.
    async fn has_chosen(&self, placement: &str, groups: &[&[&String]]) -> Result<()> {
        let list = |(index, clusters): (usize, &&[&String])| {
            let clusters = clusters.iter().map(|&cluster| cluster.clone()).collect();
            (placement_decision_name(placement, index + 1), clusters)
        };
        let expected: Lists = groups.iter().enumerate().map(list).collect();
        let of_placement = ListParams::default().labels(&format!("{}={placement}", labels::PLACEMENT));
        eventually(&format!("the decisions are {expected:?}, and the status agrees"), || async {
            let lists = self.lists(&of_placement).await?;
            let status = self.placements().get(placement).await?.status.unwrap_or_default();
            let settled = lists == expected && agrees(&status, &lists);
            let seen = format!("{lists:?} with {status:?}");
            anyhow::Ok(if settled { Seen::Settled(()) } else { Seen::NotYet(seen) })
        })
        .await
    }

    /// Waits until no placement of the namespace has a decision.
    async fn is_without_decisions(&self) -> Result<()> {
        eventually("no decision is left", || async {
            let left = self.lists(&ListParams::default()).await?;
            anyhow::Ok(if left.is_empty() { Seen::Settled(()) } else { Seen::NotYet(format!("{left:?}")) })
        })
        .await
    }

    async fn lists(&self, which: &ListParams) -> Result<Lists> {
        let decisions = Api::<PlacementDecision>::namespaced(self.hub.clone(), &self.namespace).list(which).await?;
        let list = |decision: PlacementDecision| {
            let decided = decision.status.clone().unwrap_or_default().decisions;
            (decision.name_any(), decided.into_iter().map(|decided| decided.cluster_name).collect())
        };
        Ok(decisions.items.into_iter().map(list).collect())
    }
}

/// Whether the status of a placement agrees with its decisions, of which each is a group.
fn agrees(status: &PlacementStatus, lists: &Lists) -> bool {
    let reported = status.decision_groups.iter().map(|group| (group.decisions.clone(), group.clusters_count));
    let count = |clusters: &Vec<String>| i32::try_from(clusters.len()).unwrap_or(i32::MAX);
    let listed = lists.iter().map(|(decision, clusters)| (vec![decision.clone()], count(clusters)));
    let total: i32 = lists.values().map(count).sum();
    reported.eq(listed) && status.number_of_selected_clusters == total && is_true(&status.conditions, SATISFIED)
}
