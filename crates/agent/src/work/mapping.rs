//! From kinds to resources: which path of the managed cluster's API serves a kind.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::{
    Client,
    core::{ApiResource, GroupVersionKind},
};
use ocm_runtime::error::{Result, ResultExt as _, found};

/// Where a kind is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Its path in the API.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// What the managed cluster serves, asked for once and again when a kind is missing. Cheap to clone.
#[derive(Clone)]
pub(super) struct Mapping {
    client: Client,
    known: Arc<Mutex<HashMap<GroupVersionKind, Target>>>,
}

impl std::fmt::Debug for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapping").finish_non_exhaustive()
    }
}

impl Mapping {
    pub(super) fn new(client: Client) -> Self {
        Self { client, known: Arc::default() }
    }

    /// Where the kind is served; `None` when the cluster does not know it.
    pub(super) async fn find(&self, gvk: &GroupVersionKind) -> Result<Option<Target>> {
        if let Some(target) = self.lookup(gvk) {
            return Ok(Some(target));
        }
        let api_version = gvk.api_version();
        let listed = match gvk.group.as_str() {
            "" => self.client.list_core_api_resources(&gvk.version).await,
            _ => self.client.list_api_group_resources(&api_version).await,
        };
        if let Some(list) = found(listed.while_trying_to("list the kinds of", || api_version))? {
            self.learn(gvk, &list);
        }
        Ok(self.lookup(gvk))
    }

    fn lookup(&self, gvk: &GroupVersionKind) -> Option<Target> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(gvk).cloned()
    }

    /// Forgets where a kind is served: its CRD may have been replaced.
    pub(super) fn forget(&self, gvk: &GroupVersionKind) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(gvk);
    }

    fn learn(&self, gvk: &GroupVersionKind, list: &APIResourceList) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for resource in list.resources.iter().filter(|resource| !resource.name.contains('/')) {
            let (kind, target) = target_of(gvk, resource);
            known.insert(kind, target);
        }
    }
}

fn target_of(asked: &GroupVersionKind, resource: &APIResource) -> (GroupVersionKind, Target) {
    let gvk = GroupVersionKind::gvk(&asked.group, &asked.version, &resource.kind);
    let target =
        Target { resource: ApiResource::from_gvk_with_plural(&gvk, &resource.name), namespaced: resource.namespaced };
    (gvk, target)
}
