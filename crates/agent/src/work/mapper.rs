//! From kinds to resources, by the discovery API of the managed cluster.

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

/// The resource of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RestMapping {
    /// Its path in the API.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// Maps kinds to resources. Results are cached, and discovery is asked again when a kind is missing. Cheap to clone.
#[derive(Clone)]
pub(super) struct RestMapper {
    client: Client,
    known: Arc<Mutex<HashMap<GroupVersionKind, RestMapping>>>,
}

impl std::fmt::Debug for RestMapper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RestMapper").finish_non_exhaustive()
    }
}

impl RestMapper {
    pub(super) fn new(client: Client) -> Self {
        Self { client, known: Arc::default() }
    }

    /// The resource of a kind; `None` when the cluster does not serve it.
    pub(super) async fn mapping(&self, gvk: &GroupVersionKind) -> Result<Option<RestMapping>> {
        if let Some(mapping) = self.cached(gvk) {
            return Ok(Some(mapping));
        }
        let api_version = gvk.api_version();
        let listed = match gvk.group.as_str() {
            "" => self.client.list_core_api_resources(&gvk.version).await,
            _ => self.client.list_api_group_resources(&api_version).await,
        };
        if let Some(list) = found(listed.while_trying_to("list the kinds of", || api_version))? {
            self.insert(gvk, &list);
        }
        Ok(self.cached(gvk))
    }

    fn cached(&self, gvk: &GroupVersionKind) -> Option<RestMapping> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(gvk).cloned()
    }

    /// Removes a kind from the cache: its CRD may have been replaced.
    pub(super) fn invalidate(&self, gvk: &GroupVersionKind) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(gvk);
    }

    fn insert(&self, gvk: &GroupVersionKind, list: &APIResourceList) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Names with a slash are subresources.
        for resource in list.resources.iter().filter(|resource| !resource.name.contains('/')) {
            let (kind, mapping) = mapping_of(gvk, resource);
            known.insert(kind, mapping);
        }
    }
}

fn mapping_of(asked: &GroupVersionKind, resource: &APIResource) -> (GroupVersionKind, RestMapping) {
    let gvk = GroupVersionKind::gvk(&asked.group, &asked.version, &resource.kind);
    let resource_of_kind = ApiResource::from_gvk_with_plural(&gvk, &resource.name);
    (gvk, RestMapping { resource: resource_of_kind, namespaced: resource.namespaced })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Mock, not_found};

    fn kinds(resources: &Value) -> (u16, Value) {
        (200, json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": resources}))
    }

    fn kind(name: &str, kind: &str, namespaced: bool) -> Value {
        json!({"name": name, "kind": kind, "namespaced": namespaced, "singularName": "", "verbs": ["get"]})
    }

    #[tokio::test]
    async fn discovery_is_asked_once_for_all_kinds_of_a_version() {
        let list = json!([
            kind("pods", "Pod", true),
            kind("pods/status", "Pod", true),
            kind("namespaces", "Namespace", false)
        ]);
        let server = Mock::answering(vec![kinds(&list)]);
        let mapper = RestMapper::new(server.client());
        let of = async |name: &str| mapper.mapping(&GroupVersionKind::gvk("", "v1", name)).await.unwrap().unwrap();
        let (pod, namespace) = (of("Pod").await, of("Namespace").await);
        assert_eq!((pod.resource.plural.as_str(), pod.namespaced), ("pods", true));
        assert_eq!((namespace.resource.plural.as_str(), namespace.namespaced), ("namespaces", false));
        assert_eq!(server.asked(), ["GET /api/v1"]);
    }

    #[tokio::test]
    async fn discovery_is_asked_again_for_a_kind_that_was_missing_or_was_invalidated() {
        let list = || kinds(&json!([kind("things", "Thing", true)]));
        let server = Mock::answering(vec![not_found(), list(), list()]);
        let (mapper, thing) = (RestMapper::new(server.client()), GroupVersionKind::gvk("example.com", "v1", "Thing"));
        assert_eq!(mapper.mapping(&thing).await.unwrap(), None);
        assert!(mapper.mapping(&thing).await.unwrap().is_some());
        mapper.invalidate(&thing);
        assert!(mapper.mapping(&thing).await.unwrap().is_some());
        assert_eq!(server.asked(), vec!["GET /apis/example.com/v1"; 3]);
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_not_a_kind_that_does_not_exist() {
        let server = Mock::answering(vec![(503, json!({"kind": "Status", "code": 503, "status": "Failure"}))]);
        let mapper = RestMapper::new(server.client());
        assert!(mapper.mapping(&GroupVersionKind::gvk("", "v1", "Pod")).await.is_err());
    }
}
