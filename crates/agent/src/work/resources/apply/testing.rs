//! What the tests of all strategies need.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use super::Application;
use crate::{
    testing::Mock,
    work::{
        manifest::{self, DesiredObject},
        mapper::RestMapping,
        options::ManifestOptions,
        ownership::{Ownership, tests::owner},
        resources::{ApplyError, Resources},
    },
};

pub(super) fn desired(manifest: Value) -> DesiredObject {
    manifest::parse(&[manifest.into()]).remove(0).desired.unwrap()
}

pub(super) fn config_map(data: &str) -> DesiredObject {
    let metadata = json!({"name": "a", "namespace": "ns"});
    desired(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": data}}))
}

pub(super) fn mapping(kind: &str, plural: &str) -> RestMapping {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", kind), plural);
    RestMapping { resource, namespaced: true }
}

pub(super) fn options(strategy: &Value) -> ManifestOptions {
    let strategy = std::sync::Arc::new(serde_json::from_value(strategy.clone()).unwrap());
    ManifestOptions { strategy, ..ManifestOptions::default() }
}

pub(super) fn owned() -> Ownership {
    Ownership::Owned(owner("hub-w", "1"))
}

/// The ConfigMap as the server has it.
pub(super) fn map(version: &str, data: &str, owners: &[OwnerReference]) -> (u16, Value) {
    let metadata = json!({"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": version,
        "ownerReferences": owners});
    (200, json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": data}, "metadata": metadata}))
}

/// Its metadata alone.
pub(super) fn metadata(version: &str, owners: &[OwnerReference]) -> (u16, Value) {
    let (code, mut object) = map(version, "", owners);
    object["apiVersion"] = json!("meta.k8s.io/v1");
    object["kind"] = json!("PartialObjectMetadata");
    object.as_object_mut().unwrap().remove("data");
    (code, object)
}

/// What came of applying the ConfigMap.
pub(super) struct Applied {
    pub(super) result: Result<Option<DynamicObject>, ApplyError>,
    verbs: String,
    server: Mock,
}

impl Applied {
    /// Its resource version; empty if there is none.
    pub(super) fn version(&self) -> &str {
        let object = self.result.as_ref().unwrap().as_ref();
        object.and_then(|object| object.metadata.resource_version.as_deref()).unwrap_or_default()
    }

    pub(super) fn verbs(&self) -> &str {
        &self.verbs
    }

    pub(super) fn bodies(&self) -> Vec<Value> {
        self.server.bodies()
    }
}

pub(super) fn verbs(server: &Mock) -> String {
    let verbs: Vec<_> = server.asked().iter().map(|asked| asked.split(' ').next().unwrap().to_owned()).collect();
    verbs.join(" ")
}

/// Applies the ConfigMap with data `new` once.
pub(super) async fn applied(strategy: &str, is_new: bool, ownership: Ownership, answers: Vec<(u16, Value)>) -> Applied {
    let server = Mock::answering(answers);
    let (object, mapping) = (config_map("new"), mapping("ConfigMap", "configmaps"));
    let options = options(&json!({"type": strategy}));
    let application =
        Application { object: &object, mapping: &mapping, options: &options, ownership: &ownership, is_new };
    let result = Resources::new(server.client()).apply(application).await;
    Applied { result, verbs: verbs(&server), server }
}
