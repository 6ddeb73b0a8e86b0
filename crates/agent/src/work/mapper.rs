//! From kinds to resources, by the discovery API of the managed cluster.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::{
    Client,
    core::{ApiResource, GroupVersionKind},
};
use ocm_runtime::error::{Result, ResultExt as _, found};
use tokio::time::Instant;

/// How long discovery is not asked again for a kind that it did not list.
const MISSING_FOR: Duration = Duration::from_secs(10);
/// How long after a CRD was applied its kinds may appear, and discovery is asked each time.
const NEW_KINDS_APPEAR_IN: Duration = Duration::from_secs(60);

/// The resource of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RestMapping {
    /// Its path in the API.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// Maps kinds to resources. Results are cached; for a kind that is missing discovery is asked again after a while, by one
/// request at a time for each group and version. Cheap to clone.
#[derive(Clone)]
pub(super) struct RestMapper {
    client: Client,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    mappings: HashMap<GroupVersionKind, RestMapping>,
    /// By API version.
    discoveries: HashMap<String, Discovery>,
    /// Until when kinds may appear at any moment.
    changing_until: Option<Instant>,
}

/// What is known of asking for the kinds of a group and version.
#[derive(Clone, Default)]
struct Discovery {
    /// Held while it is asked.
    in_flight: Arc<tokio::sync::Mutex<()>>,
    answered: Option<Instant>,
    failed: Option<Instant>,
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
        let (api_version, asked) = (gvk.api_version(), Instant::now());
        let in_flight = self.known().discovery(&api_version).in_flight.clone();
        let turn = in_flight.lock().await;
        if self.known().is_answered(&api_version, asked) {
            return Ok(self.cached(gvk));
        }
        // Those who waited for a request that failed do not wait for each other's as well.
        let _turn = (!self.known().has_failed_since(&api_version, asked)).then_some(turn);
        self.discover(gvk, &api_version).await?;
        Ok(self.cached(gvk))
    }

    async fn discover(&self, gvk: &GroupVersionKind, api_version: &str) -> Result<()> {
        let listed = match gvk.group.as_str() {
            "" => self.client.list_core_api_resources(&gvk.version).await,
            _ => self.client.list_api_group_resources(api_version).await,
        };
        let listed = found(listed.while_trying_to("list the kinds of", || api_version.to_owned()));
        let mut known = self.known();
        let discovery = known.discovery(api_version);
        match &listed {
            Ok(_) => discovery.answered = Some(Instant::now()),
            Err(_) => discovery.failed = Some(Instant::now()),
        }
        if let Some(list) = listed? {
            known.insert(gvk, &list);
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cached(&self, gvk: &GroupVersionKind) -> Option<RestMapping> {
        self.known().mappings.get(gvk).cloned()
    }

    /// Removes a kind from the cache: its CRD may have been replaced.
    pub(super) fn invalidate(&self, gvk: &GroupVersionKind) {
        let mut known = self.known();
        known.mappings.remove(gvk);
        known.discovery(&gvk.api_version()).answered = None;
    }

    /// Has discovery asked for each missing kind for a while: a CRD was applied.
    pub(super) fn expect_new_kinds(&self) {
        self.known().changing_until = Some(Instant::now() + NEW_KINDS_APPEAR_IN);
    }
}

impl Known {
    fn discovery(&mut self, api_version: &str) -> &mut Discovery {
        self.discoveries.entry(api_version.to_owned()).or_default()
    }

    /// Whether the known kinds are recent enough for a lookup that began then.
    fn is_answered(&mut self, api_version: &str, since: Instant) -> bool {
        let is_changing = self.changing_until.is_some_and(|until| since < until);
        let validity = if is_changing { Duration::ZERO } else { MISSING_FOR };
        self.discovery(api_version).answered.is_some_and(|answered| answered + validity > since)
    }

    fn has_failed_since(&mut self, api_version: &str, since: Instant) -> bool {
        self.discovery(api_version).failed.is_some_and(|failed| failed > since)
    }

    fn insert(&mut self, gvk: &GroupVersionKind, list: &APIResourceList) {
        // Names with a slash are subresources.
        let resources = list.resources.iter().filter(|resource| !resource.name.contains('/'));
        self.mappings.extend(resources.map(|resource| mapping_of(gvk, resource)));
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

    #[tokio::test(start_paused = true)]
    async fn discovery_is_asked_again_for_a_kind_that_was_invalidated_and_after_a_while_for_one_that_is_missing() {
        let list = || kinds(&json!([kind("things", "Thing", true)]));
        let server = Mock::answering(vec![not_found(), list(), list()]);
        let (mapper, thing) = (RestMapper::new(server.client()), GroupVersionKind::gvk("example.com", "v1", "Thing"));
        for _ in 0..3 {
            assert_eq!(mapper.mapping(&thing).await.unwrap(), None);
        }
        tokio::time::advance(MISSING_FOR).await;
        assert!(mapper.mapping(&thing).await.unwrap().is_some());
        mapper.invalidate(&thing);
        assert!(mapper.mapping(&thing).await.unwrap().is_some());
        assert_eq!(server.asked(), vec!["GET /apis/example.com/v1"; 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn discovery_is_asked_for_each_missing_kind_after_a_crd_was_applied() {
        let list = kinds(&json!([kind("things", "Thing", true)]));
        let server = Mock::answering(vec![not_found(), not_found(), list]);
        let (mapper, thing) = (RestMapper::new(server.client()), GroupVersionKind::gvk("example.com", "v1", "Thing"));
        assert_eq!(mapper.mapping(&thing).await.unwrap(), None);
        mapper.expect_new_kinds();
        tokio::time::advance(Duration::from_millis(5)).await;
        assert_eq!(mapper.mapping(&thing).await.unwrap(), None, "it is not served yet");
        tokio::time::advance(Duration::from_millis(10)).await;
        assert!(mapper.mapping(&thing).await.unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn works_that_need_the_kinds_of_one_version_at_the_same_time_share_a_request_unless_it_fails() {
        let thing = GroupVersionKind::gvk("example.com", "v1", "Thing");
        let list = kinds(&json!([kind("things", "Thing", true)]));
        let failure = (503, json!({"kind": "Status", "code": 503, "status": "Failure"}));
        for (answers, requests) in [(vec![list], 1), (vec![not_found()], 1), (vec![failure; 8], 8)] {
            let server = Mock::answering(answers);
            let mapper = RestMapper::new(server.client());
            futures::future::join_all((0..8).map(|_| mapper.mapping(&thing))).await;
            assert_eq!(server.asked().len(), requests);
        }
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_not_a_kind_that_does_not_exist() {
        let server = Mock::answering(vec![(503, json!({"kind": "Status", "code": 503, "status": "Failure"}))]);
        let mapper = RestMapper::new(server.client());
        assert!(mapper.mapping(&GroupVersionKind::gvk("", "v1", "Pod")).await.is_err());
    }
}
