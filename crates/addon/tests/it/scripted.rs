//! Add-ons that deploy what a test demands.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use futures::future::{BoxFuture, pending};
use kube::ResourceExt as _;
use ocm_addon::{
    AddonError, AgentAddon, AgentAddonOptions, Installation, Manifest, PermissionBuilder, PermissionConfig,
    PermissionContext, PermissionError, Registration,
};
use ocm_api::{
    cluster::v1::ManagedCluster,
    work::v1::{ManifestConfigOption, ResourceIdentifier, ServerSideApplyConfig, UpdateStrategy, UpdateStrategyType},
};
use serde_json::{Value, json};

/// An add-on whose agents may read ConfigMaps.
pub(crate) const READER: &str = "reader";
/// An add-on whose agents are to get what its manager does not have.
pub(crate) const GREEDY: &str = "greedy";
/// An add-on whose agents have no identity.
pub(crate) const PLAIN: &str = "plain";

/// An add-on with settings for single objects.
pub(crate) const TUNED: &str = "tuned";
/// An add-on that panics in each of its functions where a test demands it.
pub(crate) const FRAGILE: &str = "fragile";

/// Annotation of a cluster: the manifests of add-ons there, a JSON list, or an error.
pub(crate) const SCRIPT: &str = "test/manifests";

/// A script at which an add-on panics.
pub(crate) const PANIC: &str = "panic";

/// An add-on whose manifests are in an annotation of each cluster.
pub(crate) struct Scripted {
    options: AgentAddonOptions,
    registrations: Vec<Registration>,
}

impl Scripted {
    pub(crate) fn new(name: &str) -> Self {
        let options =
            AgentAddonOptions::new(name).deploy_trigger_cluster_filter(move |old, new| script(old) != script(new));
        Self { options, registrations: Vec::new() }
    }

    pub(crate) fn granting(name: &str, resource: &str) -> Self {
        let rules = vec![PermissionBuilder::rule("", &[resource], &["get", "list", "watch"])];
        let permissions = PermissionBuilder::new().bind_role(role(name), rules);
        Self::registered(name, permissions)
    }

    fn registered(name: &str, permissions: impl PermissionConfig) -> Self {
        let options = Self::new(name).options.permissions(permissions);
        Self { options, registrations: vec![Registration::kube_client("agent")] }
    }

    pub(crate) fn stuck(name: &str) -> Self {
        Self::registered(name, Stuck)
    }

    pub(crate) fn tuned(name: &str) -> Self {
        let all = |name: &str| ResourceIdentifier { resource: "configmaps".into(), name: name.into(), ..any() };
        let strategy = UpdateStrategy {
            type_: UpdateStrategyType::ServerSideApply,
            server_side_apply: Some(ServerSideApplyConfig { force: true, ..ServerSideApplyConfig::default() }),
        };
        let config = ManifestConfigOption {
            resource_identifier: all("*"),
            update_strategy: Some(strategy),
            ..ManifestConfigOption::default()
        };
        Self { options: Self::new(name).options.manifest_configs(vec![config]), registrations: Vec::new() }
    }

    pub(crate) fn fragile(name: &str) -> Self {
        let mut fragile = Self::granting(name, "configmaps");
        fragile.options = fragile.options.deploy_trigger_cluster_filter(|_, new| {
            assert_ne!(script(new).as_deref(), Some(PANIC), "as the test demands");
            true
        });
        fragile
    }
}

/// Rights that are never set up: on clusters named `panic...` this panics, on others it hangs.
struct Stuck;

impl PermissionConfig for Stuck {
    fn apply<'a>(&'a self, grant: &'a PermissionContext<'a>) -> BoxFuture<'a, Result<(), PermissionError>> {
        Box::pin(async {
            assert!(!grant.on.cluster_name().starts_with("panic"), "as the test demands");
            pending().await
        })
    }
}

fn any() -> ResourceIdentifier {
    ResourceIdentifier { namespace: "*".into(), ..ResourceIdentifier::default() }
}

fn script(cluster: &ManagedCluster) -> Option<String> {
    cluster.annotations().get(SCRIPT).cloned()
}

/// How often each cluster's objects were asked for, of any add-on.
static ASKED: Mutex<Option<HashMap<String, usize>>> = Mutex::new(None);

fn count(cluster: &str) -> usize {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let times = asked.get_or_insert_default().entry(cluster.to_owned()).or_default();
    *times += 1;
    *times
}

/// Manifests for clusters whose changes cause no event.
static WITHOUT_EVENT: Mutex<Option<HashMap<String, Value>>> = Mutex::new(None);

pub(crate) fn script_without_event(cluster: &str, objects: Value) {
    let mut scripts = WITHOUT_EVENT.lock().unwrap_or_else(PoisonError::into_inner);
    scripts.get_or_insert_default().insert(cluster.to_owned(), objects);
}

fn without_event(cluster: &str) -> Option<String> {
    let scripts = WITHOUT_EVENT.lock().unwrap_or_else(PoisonError::into_inner);
    Some(scripts.as_ref()?.get(cluster)?.to_string())
}

impl AgentAddon for Scripted {
    fn options(&self) -> AgentAddonOptions {
        self.options.clone()
    }

    async fn registrations(&self, _: &Installation<'_>) -> Result<Vec<Registration>, AddonError> {
        Ok(self.registrations.clone())
    }

    async fn manifests(&self, on: &Installation<'_>) -> Result<Vec<Manifest>, AddonError> {
        let times = count(&on.cluster_name());
        let Some(script) = without_event(&on.cluster_name()).or_else(|| script(on.cluster)) else {
            return Ok(vec![config_map("plain", 0).into()]);
        };
        assert_ne!(script, PANIC, "as the test demands");
        let objects: Vec<Value> = serde_json::from_str(&script).map_err(|_| format!("{script}, request {times}"))?;
        Ok(objects.into_iter().map(|object| filled(object).into()).collect())
    }
}

/// An annotation cannot hold big objects, only their sizes.
pub(crate) const FILL: &str = "fill";

fn filled(mut object: Value) -> Value {
    let size = object.as_object_mut().and_then(|object| object.remove(FILL)).and_then(|size| size.as_u64());
    if let Some(size) = size.and_then(|size| usize::try_from(size).ok()) {
        object["data"] = json!({"x": "x".repeat(size)});
    }
    object
}

/// The Role and RoleBinding of an add-on.
pub(crate) fn role(addon: &str) -> String {
    format!("open-cluster-management:{addon}:agent")
}

/// A ConfigMap with so many bytes in it.
pub(crate) fn config_map(name: &str, size: usize) -> Value {
    let metadata = json!({"name": name, "namespace": "default"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "x".repeat(size)}})
}
