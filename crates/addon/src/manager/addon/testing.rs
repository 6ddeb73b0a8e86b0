//! Add-ons on clusters for tests.

use std::sync::Arc;

use k8s_openapi::{
    api::rbac::v1::PolicyRule,
    apimachinery::pkg::apis::meta::v1::{OwnerReference, Time},
};
use kube::ResourceExt as _;
use ocm_api::{
    addon::v1alpha1::{ManagedClusterAddOn, ManagedClusterAddOnStatus},
    cluster::v1::ManagedCluster,
    labels,
    work::v1::{Manifest, ManifestWork},
};
use ocm_runtime::{Cache, ObjectKey, conditions::NewCondition};
use serde_json::{Value, json};

use super::observe::Observed;
use crate::{
    AddonError, AgentAddon, AgentAddonOptions, Identity, Installation, PermissionBuilder, agent::view_of,
    manager::served_addon::ServedAddon,
};

pub(super) fn now() -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_700_000_000).unwrap()
}

pub(super) fn options() -> AgentAddonOptions {
    let permissions = PermissionBuilder::new().bind_role("r", vec![PolicyRule::default()]);
    AgentAddonOptions::new("hello").permissions(permissions)
}

struct WithOptions(AgentAddonOptions);

impl AgentAddon for WithOptions {
    fn options(&self) -> AgentAddonOptions {
        self.0.clone()
    }

    async fn manifests(&self, _: &Installation<'_>) -> Result<Vec<Manifest>, AddonError> {
        Ok(Vec::new())
    }
}

/// An add-on that the hub owns, with one ConfigMap to deploy.
pub(super) fn observed() -> Observed {
    let mut addon = ManagedClusterAddOn::new("c1", "hello", Default::default());
    addon.metadata.uid = Some("u".into());
    let owner = OwnerReference { kind: "ClusterManagementAddOn".into(), name: "hello".into(), ..Default::default() };
    addon.metadata.owner_references = Some(vec![owner]);
    let own = Identity::of_agent("c1", "hello", "agent");
    Observed {
        key: ObjectKey::new("c1", "hello"),
        served: served(options()),
        view: view_of(&addon).unwrap(),
        addon: Arc::new(addon),
        cluster: Arc::new(accepted_cluster()),
        namespace: "default".into(),
        works: Vec::new(),
        registrations: Some(Ok(vec![("kubernetes.io/kube-apiserver-client".into(), own)])),
        manifests: Some(Ok(vec![config_map("a").into()])),
    }
}

fn accepted_cluster() -> ManagedCluster {
    let mut cluster = ManagedCluster::new("c1", Default::default());
    cluster.spec.hub_accepts_client = true;
    cluster
}

pub(super) fn served(options: AgentAddonOptions) -> Arc<ServedAddon> {
    served_by(WithOptions(options))
}

pub(super) fn served_by(agent: impl AgentAddon) -> Arc<ServedAddon> {
    Arc::new(ServedAddon {
        options: agent.options(),
        agent: Arc::new(agent),
        addons: Cache::default(),
        works: Cache::default(),
        requests: Cache::default(),
    })
}

impl Observed {
    pub(super) fn with_addon(mut self, change: impl FnOnce(&mut ManagedClusterAddOn)) -> Self {
        change(Arc::make_mut(&mut self.addon));
        self
    }

    pub(super) fn with_status(self, change: impl FnOnce(&mut ManagedClusterAddOnStatus)) -> Self {
        self.with_addon(|addon| change(addon.status.get_or_insert_default()))
    }

    pub(super) fn deleting(self) -> Self {
        self.with_addon(|addon| addon.metadata.deletion_timestamp = Some(Time(now())))
    }

    pub(super) fn rendering(mut self, manifests: Vec<Value>) -> Self {
        self.manifests = Some(Ok(manifests.into_iter().map(Manifest::from).collect()));
        self
    }
}

pub(super) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

/// A work with this status of condition `Applied`.
pub(super) fn work(applied: Option<&'static str>) -> ManifestWork {
    let mut work = ManifestWork::new("c1", "addon-hello-deploy-0", Default::default());
    work.labels_mut().insert(labels::ADDON_NAME.into(), "hello".into());
    work.metadata.generation = Some(2);
    if let Some(status) = applied {
        let condition = NewCondition { type_: "Applied", status, reason: "R", message: "reported by its agent".into() };
        work.status.get_or_insert_default().conditions = vec![condition.at(now(), Some(2))];
    }
    work
}
