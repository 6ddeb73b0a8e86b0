//! What an admin, a placement and an add-on's manager do, for the tests of add-ons.

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use ocm_api::{
    addon::v1alpha1::{ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::{
        v1::{ManagedCluster, ManagedClusterSpec},
        v1beta1::{Placement, PlacementDecision},
    },
};
use ocm_runtime::conditions;
use ocm_testing::{Seen, eventually, unique};
use serde_json::{Value, json};

use crate::support::{now, world};

/// The hub of [`world`] as those see it who have to do with add-ons, and a namespace for placements.
pub(crate) struct AddonWorld {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

/// The hub that all tests share.
pub(crate) async fn addon_world() -> Result<AddonWorld> {
    AddonWorld::on(world().await?.client).await
}

impl AddonWorld {
    pub(crate) async fn on(client: Client) -> Result<Self> {
        let this = Self { client, namespace: unique("fleet") };
        this.create_namespace(&this.namespace).await?;
        Ok(this)
    }

    pub(crate) fn managements(&self) -> Api<ClusterManagementAddOn> {
        Api::all(self.client.clone())
    }

    pub(crate) fn addons(&self, cluster: &str) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.client.clone(), cluster)
    }

    pub(crate) fn clusters(&self) -> Api<ManagedCluster> {
        Api::all(self.client.clone())
    }

    pub(crate) async fn create_namespace(&self, name: &str) -> Result<()> {
        let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        Api::<Namespace>::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(())
    }

    /// An accepted cluster whose namespace is there.
    pub(crate) async fn cluster(&self, prefix: &str) -> Result<String> {
        let name = unique(prefix);
        let spec = ManagedClusterSpec { hub_accepts_client: true, ..ManagedClusterSpec::default() };
        self.clusters().create(&PostParams::default(), &ManagedCluster::new(&name, spec)).await?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        eventually("the cluster has its namespace", || async { namespaces.get_opt(&name).await }).await?;
        Ok(name)
    }

    pub(crate) async fn edit_cluster(&self, name: &str, patch: Value) -> Result<()> {
        self.clusters().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    pub(crate) async fn annotate(&self, cluster: &str, annotations: Value) -> Result<()> {
        self.edit_cluster(cluster, json!({"metadata": {"annotations": annotations}})).await
    }

    pub(crate) async fn create_management(&self, name: &str, spec: Value) -> Result<()> {
        self.create_annotated(name, json!({}), spec).await
    }

    pub(crate) async fn create_annotated(&self, name: &str, annotations: Value, spec: Value) -> Result<()> {
        let object = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
        self.managements().create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    pub(crate) async fn edit_management(&self, name: &str, patch: Value) -> Result<()> {
        self.managements().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// The spec of an add-on that follows placements of this world.
    pub(crate) fn following(&self, placements: &[&str]) -> Value {
        let placements: Vec<_> =
            placements.iter().map(|name| json!({"namespace": self.namespace, "name": name})).collect();
        json!({"installStrategy": {"type": "Placements", "placements": placements}})
    }

    /// A placement that the hub leaves to the test.
    pub(crate) async fn create_placement(&self, name: &str) -> Result<()> {
        let annotations = json!({"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"});
        let object = json!({"metadata": {"name": name, "annotations": annotations}, "spec": {}});
        let api: Api<Placement> = Api::namespaced(self.client.clone(), &self.namespace);
        api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    /// Sets a condition of a placement.
    pub(crate) async fn complain(&self, placement: &str, reason: &str, message: &str) -> Result<()> {
        let condition = json!({"type": "PlacementSatisfied", "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let api: Api<Placement> = Api::namespaced(self.client.clone(), &self.namespace);
        let status =
            json!({"status": {"numberOfSelectedClusters": 0, "decisionGroups": [], "conditions": [condition]}});
        api.patch_status(placement, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }

    /// Makes a placement select these clusters, in its decision of that number.
    pub(crate) async fn decide(&self, placement: &str, number: usize, clusters: &[&str]) -> Result<()> {
        let api: Api<PlacementDecision> = Api::namespaced(self.client.clone(), &self.namespace);
        let name = format!("{placement}-decision-{number}");
        let labels = json!({"cluster.open-cluster-management.io/placement": placement,
            "cluster.open-cluster-management.io/decision-group-name": "",
            "cluster.open-cluster-management.io/decision-group-index": "0"});
        if api.get_opt(&name).await?.is_none() {
            let object = json!({"metadata": {"name": name, "labels": labels}});
            api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        }
        let decisions: Vec<_> = clusters.iter().map(|cluster| json!({"clusterName": cluster, "reason": ""})).collect();
        let status = Patch::Merge(json!({"status": {"decisions": decisions}}));
        api.patch_status(&name, &PatchParams::default(), &status).await?;
        Ok(())
    }

    /// Creates an add-on by hand.
    pub(crate) async fn install(&self, cluster: &str, name: &str, spec: Value) -> Result<()> {
        let object = json!({"metadata": {"name": name, "namespace": cluster}, "spec": spec});
        self.addons(cluster).create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    pub(crate) async fn uninstall(&self, cluster: &str, name: &str) -> Result<()> {
        self.addons(cluster).delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Sets a condition of an add-on, as its manager or an agent does.
    pub(crate) async fn set_condition(
        &self,
        cluster: &str,
        name: &str,
        type_: &'static str,
        status: &'static str,
    ) -> Result<()> {
        let mut known = self.addons(cluster).get(name).await?.status.unwrap_or_default().conditions;
        let condition = conditions::NewCondition { type_, status, reason: "Test", message: String::new() };
        conditions::set(&mut known, condition, None, now());
        let patch = Patch::Merge(json!({"status": {"conditions": known}}));
        self.addons(cluster).patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Sets the condition Available of a cluster.
    pub(crate) async fn set_available(&self, name: &str, status: &'static str, reason: &'static str) -> Result<()> {
        let mut known = self.clusters().get(name).await?.status.unwrap_or_default().conditions;
        let type_ = "ManagedClusterConditionAvailable";
        conditions::set(
            &mut known,
            conditions::NewCondition { type_, status, reason, message: "m".into() },
            None,
            now(),
        );
        let patch = Patch::Merge(json!({"status": {"conditions": known}}));
        self.clusters().patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until an add-on is there and both conditions of the hub are.
    pub(crate) async fn wait_for_addon(&self, cluster: &str, name: &str) -> Result<ManagedClusterAddOn> {
        self.wait_for_condition(cluster, name, "Configured", "True", "ConfigurationsConfigured").await?;
        Ok(self.addons(cluster).get(name).await?)
    }

    pub(crate) async fn wait_until_gone(&self, cluster: &str, name: &str) -> Result<()> {
        let what = format!("add-on {name} is gone from {cluster}");
        eventually(&what, || async { Ok::<_, kube::Error>(self.addons(cluster).get_opt(name).await?.is_none()) }).await
    }

    /// Waits until a condition of an add-on has that status and reason; returns its message.
    pub(crate) async fn wait_for_condition(
        &self,
        cluster: &str,
        name: &str,
        type_: &str,
        status: &str,
        reason: &str,
    ) -> Result<String> {
        eventually(&format!("{type_} of {name} on {cluster} is {status} {reason}"), || async {
            let addon = self.addons(cluster).get_opt(name).await?;
            let found = addon.and_then(|addon| addon.status).unwrap_or_default().conditions;
            Ok::<_, kube::Error>(match conditions::find(&found, type_) {
                Some(found) if found.status == status && found.reason == reason => Seen::Settled(found.message.clone()),
                other => Seen::NotYet(format!("{other:?}")),
            })
        })
        .await
    }

    /// Waits until the progress of an add-on on a placement's clusters has that status and reason and a message with
    /// these words.
    pub(crate) async fn wait_for_progress(
        &self,
        name: &str,
        placement: &str,
        status: &str,
        reason: &str,
        words: &str,
    ) -> Result<()> {
        eventually(&format!("the progress of {name} is {status} {reason}: {words}"), || async {
            let found = self.managements().get(name).await?.status.unwrap_or_default().install_progressions;
            let entry = found.iter().find(|entry| entry.namespace == self.namespace && entry.name == placement);
            let condition = entry.and_then(|entry| conditions::find(&entry.conditions, "Progressing"));
            Ok::<_, kube::Error>(match condition {
                Some(found) if found.status == status && found.reason == reason && found.message.contains(words) => {
                    Seen::Settled(())
                }
                _ => Seen::NotYet(format!("{found:?}")),
            })
        })
        .await
    }

    /// Waits until a cluster's label of an add-on is this.
    pub(crate) async fn wait_for_label(&self, cluster: &str, addon: &str, expected: Option<&str>) -> Result<()> {
        let key = format!("feature.open-cluster-management.io/addon-{addon}");
        eventually(&format!("label {key} is {expected:?}"), || async {
            let cluster = self.clusters().get(cluster).await?;
            Ok::<_, kube::Error>(cluster.labels().get(&key).map(String::as_str) == expected)
        })
        .await
    }

    /// Waits until an add-on has an annotation.
    pub(crate) async fn wait_for_annotation(&self, cluster: &str, name: &str, key: &str, value: &str) -> Result<()> {
        eventually(&format!("{name} on {cluster} has annotation {key}: {value}"), || async {
            let addon = self.addons(cluster).get(name).await?;
            Ok::<_, kube::Error>(addon.annotations().get(key).is_some_and(|found| found == value))
        })
        .await
    }

    /// Waits until the hub has done what was to be done before now: each of its controllers of add-ons has something to do
    /// for an add-on that comes later, and has done it. What it leaves some time is another matter: [`outlast`].
    ///
    /// [`outlast`]: Self::outlast
    pub(crate) async fn settle(&self) -> Result<()> {
        const NOTE: &str = "addon.open-cluster-management.io/note";
        let (cluster, name, placement) = (self.cluster("settle").await?, unique("later"), unique("later"));
        self.create_placement(&placement).await?;
        // As one of the clusters never comes, the progress is not written at once but after the pause.
        self.decide(&placement, 1, &[&cluster, "ghost"]).await?;
        self.create_management(&name, self.following(&[&placement])).await?;
        self.wait_for_addon(&cluster, &name).await?;
        self.wait_for_progress(&name, &placement, "True", "Progressing", "1 of 2").await?;
        self.annotate(&cluster, json!({ NOTE: "x" })).await?;
        self.wait_for_annotation(&cluster, &name, NOTE, "x").await?;
        self.set_available(&cluster, "Unknown", "Settled").await?;
        self.wait_for_condition(&cluster, &name, "Available", "Unknown", "Settled").await?;
        self.wait_for_label(&cluster, &name, Some("unreachable")).await
    }

    /// Waits until the hub has deleted what no placement wanted before now: an add-on that is unwanted later is gone.
    pub(crate) async fn outlast(&self) -> Result<()> {
        let (cluster, name, placement) = (self.cluster("outlast").await?, unique("unwanted"), unique("unwanted"));
        self.create_placement(&placement).await?;
        self.create_management(&name, self.following(&[&placement])).await?;
        self.install(&cluster, &name, json!({})).await?;
        self.wait_until_gone(&cluster, &name).await
    }
}

/// The owners of an add-on as `kind/name controller`.
pub(crate) fn owners(addon: &ManagedClusterAddOn) -> Vec<String> {
    let owners = addon.metadata.owner_references.iter().flatten();
    owners.map(|owner| format!("{} {}/{} {:?}", owner.api_version, owner.kind, owner.name, owner.controller)).collect()
}
