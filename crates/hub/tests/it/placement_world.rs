//! What an admin and the agents of a fleet do, for the tests of placement.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use ocm_api::cluster::{
    v1::ManagedCluster,
    v1beta1::{Placement, PlacementDecision},
    v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
};
use ocm_runtime::conditions;
use ocm_testing::{AuditLog, Seen, eventually, unique};
use serde_json::{Value, json};

use crate::support::{ACCOUNT, NAMESPACE, World, world};

const SET: &str = "cluster.open-cluster-management.io/clusterset";

/// A namespace with a cluster set bound to it.
pub(crate) struct Fleet {
    pub(crate) world: World,
    pub(crate) namespace: String,
    pub(crate) set: String,
}

impl Fleet {
    /// A namespace, and a set without clusters that is bound to it.
    pub(crate) async fn new() -> Result<Self> {
        Self::on(world().await?).await
    }

    /// The same with another hub than that which tests share.
    pub(crate) async fn on(world: World) -> Result<Self> {
        let fleet = Self::unbound_on(world).await?;
        fleet.create_set(json!({})).await?;
        fleet.bind(&fleet.set).await?;
        Ok(fleet)
    }

    /// A namespace, and nothing in it.
    pub(crate) async fn unbound() -> Result<Self> {
        Self::unbound_on(world().await?).await
    }

    async fn unbound_on(world: World) -> Result<Self> {
        let fleet = Self { world, namespace: unique("fleet"), set: unique("set") };
        let metadata = ObjectMeta { name: Some(fleet.namespace.clone()), ..ObjectMeta::default() };
        let namespaces: Api<Namespace> = Api::all(fleet.world.client.clone());
        namespaces.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await?;
        Ok(fleet)
    }

    pub(crate) fn placements(&self) -> Api<Placement> {
        Api::namespaced(self.world.client.clone(), &self.namespace)
    }

    pub(crate) fn decisions(&self) -> Api<PlacementDecision> {
        Api::namespaced(self.world.client.clone(), &self.namespace)
    }

    pub(crate) fn sets(&self) -> Api<ManagedClusterSet> {
        Api::all(self.world.client.clone())
    }

    pub(crate) fn bindings(&self) -> Api<ManagedClusterSetBinding> {
        Api::namespaced(self.world.client.clone(), &self.namespace)
    }

    pub(crate) async fn create_set(&self, spec: Value) -> Result<()> {
        let set = ManagedClusterSet::new(&self.set, serde_json::from_value(spec)?);
        self.sets().create(&PostParams::default(), &set).await?;
        Ok(())
    }

    pub(crate) async fn bind(&self, set: &str) -> Result<()> {
        let spec = serde_json::from_value(json!({"clusterSet": set}))?;
        let binding = ManagedClusterSetBinding::new(&self.namespace, set, spec);
        self.bindings().create(&PostParams::default(), &binding).await?;
        Ok(())
    }

    /// A healthy cluster of the set, with these labels.
    pub(crate) async fn cluster(&self, labels: &[(&str, &str)]) -> Result<String> {
        let name = unique("c");
        let mut cluster = ManagedCluster::new(&name, <_>::default());
        let labels = labels.iter().copied().chain([(SET, self.set.as_str())]);
        cluster.labels_mut().extend(labels.map(|(key, value)| (key.to_owned(), value.to_owned())));
        self.world.clusters().create(&PostParams::default(), &cluster).await?;
        self.world.say_available(&name).await?;
        eventually("the cluster has no taint", || async {
            let cluster = self.world.clusters().get(&name).await?;
            Ok::<_, kube::Error>(cluster.spec.taints.is_empty() && !cluster.finalizers().is_empty())
        })
        .await?;
        Ok(name)
    }

    /// Patches the status of a cluster, as its agent does.
    pub(crate) async fn patch_status(&self, cluster: &str, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({"status": status}));
        self.world.clusters().patch_status(cluster, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    pub(crate) async fn place(&self, name: &str, spec: Value) -> Result<Placement> {
        let placement = Placement::new(&self.namespace, name, serde_json::from_value(spec)?);
        Ok(self.placements().create(&PostParams::default(), &placement).await?)
    }

    pub(crate) async fn edit(&self, name: &str, patch: Value) -> Result<()> {
        self.placements().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Waits until the placement has chosen exactly these clusters, in its decisions and in its status.
    pub(crate) async fn wait_for_clusters(&self, name: &str, clusters: &[&String]) -> Result<()> {
        let mut expected: Vec<String> = clusters.iter().map(|name| (*name).clone()).collect();
        expected.sort_unstable();
        eventually(&format!("placement {name} chooses {expected:?}"), || async {
            let decided = self.decided(name).await?;
            let status = self.placements().get(name).await?.status.unwrap_or_default();
            let is_told = usize::try_from(status.number_of_selected_clusters) == Ok(expected.len());
            anyhow::Ok(if decided == expected && is_told && !status.conditions.is_empty() {
                Seen::Settled(())
            } else {
                Seen::NotYet(format!("{decided:?} with status {status:?}"))
            })
        })
        .await
    }

    /// Waits until a condition of the placement is `status reason`; its message.
    pub(crate) async fn wait_for_condition(&self, name: &str, type_: &str, expected: &str) -> Result<String> {
        eventually(&format!("{type_} of placement {name} is {expected}"), || async {
            let status = self.placements().get(name).await?.status.unwrap_or_default();
            Ok::<_, kube::Error>(match conditions::find(&status.conditions, type_) {
                Some(found) if format!("{} {}", found.status, found.reason) == expected => {
                    Seen::Settled(found.message.clone())
                }
                other => Seen::NotYet(format!("{other:?}")),
            })
        })
        .await
    }

    pub(crate) async fn wait_for_reason(&self, name: &str, expected: &str) -> Result<String> {
        self.wait_for_condition(name, "PlacementSatisfied", expected).await
    }

    /// The clusters in the decisions of a placement, by name.
    pub(crate) async fn decided(&self, name: &str) -> Result<Vec<String>> {
        let all = self.decisions().list(&ListParams::default().labels(&of(name))).await?.items;
        let listed = all.into_iter().filter_map(|decision| decision.status).flat_map(|status| status.decisions);
        let mut names: Vec<_> = listed.map(|decision| decision.cluster_name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Events on a placement, as `action reason related`.
    pub(crate) async fn events(&self, name: &str) -> Result<Vec<Event>> {
        let all: Api<Event> = Api::namespaced(self.world.client.clone(), &self.namespace);
        let mut all = all.list(&ListParams::default()).await?.items;
        all.retain(|event| event.regarding.as_ref().and_then(|object| object.name.as_deref()) == Some(name));
        all.sort_by_key(|event| event.event_time.clone());
        Ok(all)
    }

    /// Waits until the hub has looked at everything that happened before: a cluster and a placement elsewhere, which come
    /// last by the same watches.
    pub(crate) async fn settle(&self) -> Result<()> {
        let World { plane, client } = &self.world;
        let last = Self::on(World { plane, client: client.clone() }).await?;
        let cluster = last.cluster(&[]).await?;
        last.place("last", json!({})).await?;
        last.wait_for_clusters("last", &[&cluster]).await?;
        eventually("its events are there", || async { anyhow::Ok(last.events("last").await?.len() == 3) }).await
    }

    /// The hub's writes to the namespace, each with its number.
    pub(crate) fn writes(&self, since: u64) -> Result<BTreeMap<String, usize>> {
        let hub = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
        let mut writes = BTreeMap::new();
        for write in AuditLog::of(self.world.plane)?.since(since)? {
            // A new event has no name in the log.
            if write.user == hub && write.namespace == self.namespace && write.resource != "events" {
                *writes.entry(format!("{write} {}", write.code)).or_default() += 1;
            }
        }
        Ok(writes)
    }

    pub(crate) fn now(&self) -> Result<u64> {
        AuditLog::of(self.world.plane)?.position()
    }
}

/// Waits until an object is gone.
pub(crate) async fn gone<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: Clone + std::fmt::Debug + k8s_openapi::serde::de::DeserializeOwned,
{
    eventually(&format!("{name} is gone"), || async { Ok::<_, kube::Error>(api.get_opt(name).await?.is_none()) }).await
}

fn of(placement: &str) -> String {
    format!("cluster.open-cluster-management.io/placement={placement}")
}
