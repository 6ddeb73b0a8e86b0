//! What a user, a placement and the agents of a fleet do, for the tests of replica sets.

use anyhow::{Context as _, Result};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use ocm_api::work::{
    v1::{Manifest, ManifestWork},
    v1alpha1::ManifestWorkReplicaSet,
};
use ocm_runtime::conditions;
use ocm_testing::{Seen, eventually};
use serde_json::{Value, json};

use crate::{addon_world::AddonWorld, gated::gated_world, support::now};

pub(crate) const SET: &str = "work.open-cluster-management.io/manifestworkreplicaset";
pub(crate) const PLACEMENT: &str = "work.open-cluster-management.io/placementname";
/// The finalizer of an agent.
const AGENT: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

/// A hub with replica sets, and a namespace for them.
pub(crate) struct ReplicaSetWorld {
    pub(crate) fleet: AddonWorld,
}

impl ReplicaSetWorld {
    /// On the hub that tests with feature gates share.
    pub(crate) async fn new() -> Result<Self> {
        Self::on(gated_world().await?.client).await
    }

    pub(crate) async fn on(client: Client) -> Result<Self> {
        Ok(Self { fleet: AddonWorld::on(client).await? })
    }

    pub(crate) fn sets(&self) -> Api<ManifestWorkReplicaSet> {
        Api::namespaced(self.fleet.client.clone(), &self.fleet.namespace)
    }

    pub(crate) fn works_on(&self, cluster: &str) -> Api<ManifestWork> {
        Api::namespaced(self.fleet.client.clone(), cluster)
    }

    /// So many clusters, in the order of their names.
    pub(crate) async fn clusters(&self, count: usize) -> Result<Vec<String>> {
        let mut clusters = Vec::new();
        for _ in 0..count {
            clusters.push(self.fleet.cluster("replica").await?);
        }
        clusters.sort();
        Ok(clusters)
    }

    /// A placement that has chosen these clusters.
    pub(crate) async fn choose(&self, placement: &str, clusters: &[String]) -> Result<()> {
        let placements: Api<ocm_api::cluster::v1beta1::Placement> =
            Api::namespaced(self.fleet.client.clone(), &self.fleet.namespace);
        if placements.get_opt(placement).await?.is_none() {
            self.fleet.create_placement(placement).await?;
        }
        let clusters: Vec<_> = clusters.iter().map(String::as_str).collect();
        self.fleet.decide(placement, 1, &clusters).await?;
        let group =
            json!({"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": [], "clustersCount": clusters.len()});
        let status = json!({"status": {"numberOfSelectedClusters": clusters.len(), "decisionGroups": [group]}});
        placements.patch_status(placement, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }

    /// Creates a set of a ConfigMap with this value that follows placements, each with a strategy.
    pub(crate) async fn create(&self, name: &str, value: &str, placements: &[(&str, Value)]) -> Result<()> {
        self.create_from(name, json!({"labels": {"team": "red"}}), spec(value, placements)).await
    }

    pub(crate) async fn create_from(&self, name: &str, metadata: Value, spec: Value) -> Result<()> {
        let mut object = json!({"metadata": metadata, "spec": spec});
        object["metadata"]["name"] = name.into();
        self.sets().create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    pub(crate) async fn edit(&self, name: &str, patch: Value) -> Result<()> {
        self.sets().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        self.sets().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The works of a set.
    pub(crate) async fn works(&self, set: &str) -> Result<Vec<ManifestWork>> {
        let label = format!("{SET}={}.{set}", self.fleet.namespace);
        let works: Api<ManifestWork> = Api::all(self.fleet.client.clone());
        Ok(works.list(&ListParams::default().labels(&label)).await?.items)
    }

    /// Waits until a set has exactly these works: cluster, placement and value of each, in any order.
    pub(crate) async fn wait_for_works(&self, set: &str, expected: &[(&str, &str, &str)]) -> Result<Vec<ManifestWork>> {
        let mut expected: Vec<_> =
            expected.iter().map(|(one, other, value)| format!("{one} {other} {value}")).collect();
        expected.sort();
        eventually(&format!("the works of {set} are {expected:?}"), || async {
            let works = self.works(set).await?;
            let mut found: Vec<_> = works.iter().map(shown).collect();
            found.sort();
            anyhow::Ok(if found == expected { Seen::Settled(works) } else { Seen::NotYet(format!("{found:?}")) })
        })
        .await
    }

    /// Creates a work as the hub does, for a set of [`Self::create`].
    pub(crate) async fn create_work(&self, cluster: &str, set: &str, placement: &str, value: &str) -> Result<()> {
        let label = format!("{}.{set}", self.fleet.namespace);
        let metadata = json!({"generateName": set, "labels": {"team": "red", SET: label, PLACEMENT: placement}});
        let work = serde_json::from_value(json!({"metadata": metadata, "spec": template(value)}))?;
        self.works_on(cluster).create(&PostParams::default(), &work).await?;
        Ok(())
    }

    /// Reports on a work as its agent does, with these conditions of its current generation.
    pub(crate) async fn report(&self, work: &ManifestWork, told: &[(&'static str, &'static str)]) -> Result<()> {
        let api = self.works_on(&work.namespace().unwrap_or_default());
        let work = api.get(&work.name_any()).await?;
        let mut known = work.status.unwrap_or_default().conditions;
        for (type_, status) in told {
            let condition = conditions::NewCondition { type_, status, reason: "Test", message: String::new() };
            conditions::set(&mut known, condition, work.metadata.generation, now());
        }
        let patch = Patch::Merge(json!({"status": {"conditions": known}}));
        api.patch_status(work.metadata.name.as_deref().unwrap_or_default(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Adds the finalizer of an agent, or removes it.
    pub(crate) async fn hold(&self, work: &ManifestWork, is_held: bool) -> Result<()> {
        let finalizers = if is_held { json!([AGENT]) } else { Value::Null };
        let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        let api = self.works_on(&work.namespace().unwrap_or_default());
        api.patch(&work.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until a condition has that status and reason; returns its message.
    pub(crate) async fn wait_for_condition(&self, set: &str, type_: &str, expected: &str) -> Result<String> {
        eventually(&format!("{type_} of {set} is {expected}"), || async {
            let found = self.sets().get(set).await?.status.unwrap_or_default().conditions;
            let found = conditions::find(&found, type_).cloned();
            Ok::<_, kube::Error>(match found {
                Some(found) if format!("{} {}", found.status, found.reason) == expected => Seen::Settled(found.message),
                other => Seen::NotYet(format!("{other:?}")),
            })
        })
        .await
    }

    pub(crate) async fn wait_until_gone(&self, set: &str) -> Result<()> {
        let what = format!("{set} is gone");
        eventually(&what, || async { Ok::<_, kube::Error>(self.sets().get_opt(set).await?.is_none()) }).await
    }

    /// Waits until the hub has done what was to be done before now: it has done the same for a set that came later.
    pub(crate) async fn settle(&self) -> Result<()> {
        let (name, placement) = (ocm_testing::unique("later"), ocm_testing::unique("later"));
        let clusters = self.clusters(1).await?;
        self.choose(&placement, &clusters).await?;
        self.create(&name, "later", &[(&placement, all())]).await?;
        let works = self.wait_for_works(&name, &[(&clusters[0], &placement, "later")]).await?;
        self.report(works.first().context("there is a work")?, DONE).await?;
        self.wait_for_condition(&name, "ManifestworkApplied", "True AsExpected").await.map(|_| ())
    }
}

/// What an agent reports on a work that is done, if a condition rule sets Progressing.
pub(crate) const DONE: &[(&str, &str)] = &[("Applied", "True"), ("Available", "True"), ("Progressing", "False")];

pub(crate) fn all() -> Value {
    json!({"type": "All"})
}

/// A ConfigMap with this value.
pub(crate) fn template(value: &str) -> Value {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value},
        "metadata": {"name": "settings", "namespace": "default"}});
    json!({"workload": {"manifests": [manifest]}})
}

pub(crate) fn spec(value: &str, placements: &[(&str, Value)]) -> Value {
    let refs: Vec<_> =
        placements.iter().map(|(name, strategy)| json!({"name": name, "rolloutStrategy": strategy})).collect();
    json!({"manifestWorkTemplate": template(value), "placementRefs": refs})
}

/// Cluster, placement and value of a work.
fn shown(work: &ManifestWork) -> String {
    let manifests = work.spec.workload.manifests.iter().map(Manifest::value);
    let values: Vec<_> = manifests.map(|it| it["data"]["value"].as_str().unwrap_or_default().to_owned()).collect();
    let placement = work.labels().get(PLACEMENT).cloned().unwrap_or_default();
    format!("{} {placement} {}", work.namespace().unwrap_or_default(), values.concat())
}
