//! Creating and updating an object.

use std::time::Duration;

use kube::{
    Api,
    api::{DeleteParams, PostParams, Preconditions},
    core::DynamicObject,
};
use ocm_api::work::v1::ResourceIdentifier;
use ocm_runtime::{Class, Classified as _, Error, ResultExt as _, error::found};

use super::{ApplyError, Resources, written::hash_of};
use crate::work::{
    manifest::DesiredObject,
    mapper::RestMapping,
    ownership::Ownership,
    update::{self, Change},
};

/// How often an object is read again and written when others keep writing it.
const CONFLICT_TRIES: u32 = 4;
const CONFLICT_WAIT: Duration = Duration::from_millis(10);
/// The groups of CustomResourceDefinitions and APIServices.
const SERVES_KINDS: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

impl Resources {
    /// Creates or updates the object as in its manifest, and returns it. `is_new` saves reading it where it is not
    /// expected to exist.
    pub(in crate::work) async fn apply(
        &self,
        object: &DesiredObject,
        mapping: &RestMapping,
        ownership: &Ownership,
        is_new: bool,
    ) -> Result<DynamicObject, ApplyError> {
        if mapping.namespaced && object.namespace.is_empty() {
            return Err(ApplyError::NoNamespace(object.to_string()));
        }
        let task = Task::new(self, object, mapping, ownership);
        if is_new
            && !self.written.contains(&task.id)
            && let Some(created) = task.create_new().await?
        {
            return Ok(created);
        }
        let mut wait = CONFLICT_WAIT;
        for _ in 1..CONFLICT_TRIES {
            match task.read_and_write().await {
                Err(error) if error.class() == Class::Conflict => tokio::time::sleep(wait).await,
                outcome => return outcome,
            }
            wait *= 5;
        }
        task.read_and_write().await
    }
}

/// One object being applied.
struct Task<'a> {
    resources: &'a Resources,
    object: &'a DesiredObject,
    ownership: &'a Ownership,
    api: Api<DynamicObject>,
    id: ResourceIdentifier,
    hash: [u8; 32],
}

impl<'a> Task<'a> {
    fn new(
        resources: &'a Resources,
        object: &'a DesiredObject,
        mapping: &RestMapping,
        ownership: &'a Ownership,
    ) -> Self {
        let id = object.identifier(mapping);
        let api = resources.api(&mapping.resource, &id.namespace);
        Self { resources, object, ownership, api, id, hash: hash_of(object, ownership) }
    }

    /// Creates the object; `None` if it exists already. Where it does, its creation may also be refused: by validation (the
    /// port or address of a Service is taken), by a quota or by a webhook.
    async fn create_new(&self) -> Result<Option<DynamicObject>, ApplyError> {
        match self.create(&update::to_create(self.object, self.ownership)?).await {
            Err(ApplyError::Request(error)) if error.is_conflict() => Ok(None),
            Err(ApplyError::Request(error)) if may_hide_a_conflict(&error) && self.exists().await => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// Whether the object is known to exist.
    async fn exists(&self) -> bool {
        matches!(self.api.get_metadata_opt(&self.object.name).await, Ok(Some(_)))
    }

    async fn read_and_write(&self) -> Result<DynamicObject, ApplyError> {
        let existing = self.api.get_opt(&self.object.name).await;
        let Some(existing) = existing.while_trying_to("get", || self.object.to_string())? else {
            return self.create(&update::to_create(self.object, self.ownership)?).await;
        };
        if self.resources.written.is_current(&self.id, self.hash, &existing) {
            return Ok(existing);
        }
        match update::to_update(&existing, self.object, self.ownership)? {
            Change::Nothing => Ok(self.written(existing)),
            Change::Update(object) => self.replace(&existing, &object).await,
            Change::Recreate(object) => self.recreate(&existing, &object).await,
        }
    }

    async fn create(&self, object: &DynamicObject) -> Result<DynamicObject, ApplyError> {
        let created = self.api.create(&PostParams::default(), object).await;
        Ok(self.written(created.while_trying_to("create", || self.object.to_string())?))
    }

    async fn replace(&self, existing: &DynamicObject, object: &DynamicObject) -> Result<DynamicObject, ApplyError> {
        let replaced = self.api.replace(&self.object.name, &PostParams::default(), object).await;
        match replaced.while_trying_to("update", || self.object.to_string()) {
            Ok(replaced) => Ok(self.written(replaced)),
            Err(error) if is_immutable_secret(self.object, &error) => {
                self.recreate(existing, &update::to_recreate(existing, self.object, self.ownership)?).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the object and creates it again, unless somebody has changed it since it was read: its owners are taken
    /// over from there.
    async fn recreate(&self, existing: &DynamicObject, object: &DynamicObject) -> Result<DynamicObject, ApplyError> {
        let metadata = existing.metadata.clone();
        let preconditions = Preconditions { uid: metadata.uid, resource_version: metadata.resource_version };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let deleted = self.api.delete(&self.object.name, &params).await;
        found(deleted.while_trying_to("replace", || self.object.to_string()))?;
        self.create(object).await
    }

    fn written(&self, object: DynamicObject) -> DynamicObject {
        if SERVES_KINDS.contains(&self.id.group.as_str()) {
            self.resources.mapper.expect_new_kinds();
        }
        self.resources.written.insert(self.id.clone(), self.hash, &object);
        object
    }
}

fn may_hide_a_conflict(error: &Error) -> bool {
    matches!(error.code(), Some(400 | 403 | 422))
}

fn is_immutable_secret(object: &DesiredObject, error: &Error) -> bool {
    let immutable = error.status().is_some_and(|status| status.message.contains("field is immutable"));
    object.gvk.group.is_empty() && object.gvk.kind == "Secret" && error.code() == Some(422) && immutable
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        testing::{Mock, conflict, not_found},
        work::{manifest, ownership::tests::owner},
    };

    fn config_map(data: &str) -> DesiredObject {
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"},
            "data": {"a": data}});
        manifest::parse(&[manifest.into()]).remove(0).desired.unwrap()
    }

    fn mapping() -> RestMapping {
        let gvk = GroupVersionKind::gvk("", "v1", "ConfigMap");
        RestMapping { resource: kube::core::ApiResource::from_gvk_with_plural(&gvk, "configmaps"), namespaced: true }
    }

    fn stored(version: &str, data: &str) -> (u16, Value) {
        (
            200,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": data}, "metadata": {
            "name": "a", "namespace": "ns", "uid": "1", "resourceVersion": version,
            "ownerReferences": [owner("hub-w", "1")]}}),
        )
    }

    async fn applied(answers: Vec<(u16, Value)>, is_new: bool) -> (Result<Option<String>, String>, Vec<String>) {
        let server = Mock::answering(answers);
        let resources = Resources::new(server.client());
        let ownership = Ownership::Owned(owner("hub-w", "1"));
        let applied = resources.apply(&config_map("new"), &mapping(), &ownership, is_new).await;
        let version = applied.map(|object| object.metadata.resource_version).map_err(|error| error.to_string());
        (version, server.asked().iter().map(|asked| asked.split(' ').next().unwrap().to_owned()).collect())
    }

    #[tokio::test]
    async fn a_new_object_is_created_without_reading_it_and_one_that_exists_is_read_and_updated() {
        let (version, asked) = applied(vec![stored("1", "new")], true).await;
        assert_eq!((version, asked), (Ok(Some("1".into())), vec!["POST".to_owned()]));
        let (version, asked) = applied(vec![conflict(), stored("1", "old"), stored("2", "new")], true).await;
        assert_eq!((version, asked.join(" ")), (Ok(Some("2".into())), "POST GET PUT".into()));
    }

    fn refused(code: u16) -> (u16, Value) {
        (code, json!({"kind": "Status", "status": "Failure", "code": code, "message": "no"}))
    }

    #[tokio::test]
    async fn an_object_that_exists_is_updated_also_where_its_creation_is_refused() {
        for code in [400, 403, 422] {
            let answers = vec![refused(code), stored("1", "old"), stored("1", "old"), stored("2", "new")];
            let (version, asked) = applied(answers, true).await;
            assert_eq!((version, asked.join(" ")), (Ok(Some("2".into())), "POST GET GET PUT".into()));
            for unknown in [not_found(), refused(403)] {
                let (failed, asked) = applied(vec![refused(code), unknown], true).await;
                assert!(failed.unwrap_err().contains("failed to create"));
                assert_eq!(asked.join(" "), "POST GET");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_others_write_is_read_again_until_it_can_be_written() {
        let answers =
            vec![stored("1", "old"), conflict(), stored("2", "old"), conflict(), not_found(), stored("4", "new")];
        let (version, asked) = applied(answers, false).await;
        assert_eq!((version, asked.join(" ")), (Ok(Some("4".into())), "GET PUT GET PUT GET POST".into()));
    }

    #[tokio::test]
    async fn an_object_is_not_written_again_while_it_is_as_it_was_left() {
        let server = Mock::answering(vec![
            stored("1", "old"),
            stored("2", "defaulted"),
            stored("2", "defaulted"),
            stored("3", "drifted"),
            stored("4", "new"),
        ]);
        let resources = Resources::new(server.client());
        let ownership = Ownership::Owned(owner("hub-w", "1"));
        for _ in 0..3 {
            resources.apply(&config_map("new"), &mapping(), &ownership, false).await.unwrap();
        }
        let verbs: Vec<_> = server.asked().iter().map(|asked| asked.split(' ').next().unwrap().to_owned()).collect();
        assert_eq!(verbs.join(" "), "GET PUT GET GET PUT", "the server's defaults are no drift");
    }

    #[tokio::test]
    async fn an_object_without_the_namespace_that_it_needs_is_not_sent() {
        let server = Mock::default();
        let mut object = config_map("a");
        object.namespace.clear();
        let ownership = Ownership::Owned(owner("hub-w", "1"));
        let applied = Resources::new(server.client()).apply(&object, &mapping(), &ownership, true).await;
        assert!(matches!(applied, Err(ApplyError::NoNamespace(_))));
    }

    #[tokio::test]
    async fn an_immutable_secret_that_is_created_again_keeps_its_other_owners() {
        let manifest = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "ns"},
            "data": {"a": "bmV3"}});
        let desired = manifest::parse(&[manifest.into()]).remove(0).desired.unwrap();
        let existing = json!({"apiVersion": "v1", "kind": "Secret", "immutable": true, "type": "Opaque",
            "data": {"a": "b2xk"}, "metadata": {"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": "1",
            "labels": {"theirs": "1"}, "ownerReferences": [owner("other", "9")]}});
        let immutable = json!({"kind": "Status", "status": "Failure", "code": 422,
            "message": "Secret \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set"});
        let done = json!({"kind": "Status", "status": "Success"});
        let server = Mock::answering(vec![(200, existing), (422, immutable), (200, done), stored("2", "")]);
        let gvk = GroupVersionKind::gvk("", "v1", "Secret");
        let resource = kube::core::ApiResource::from_gvk_with_plural(&gvk, "secrets");
        let ownership = Ownership::Owned(owner("hub-w", "1"));
        let mapping = RestMapping { resource, namespaced: true };
        Resources::new(server.client()).apply(&desired, &mapping, &ownership, false).await.unwrap();
        let created = server.bodies().pop().unwrap();
        assert_eq!(created["metadata"]["ownerReferences"], json!([owner("other", "9"), owner("hub-w", "1")]));
        assert_eq!(created["metadata"]["labels"], json!({"theirs": "1"}));
        assert_eq!((&created["data"], created["metadata"].get("uid")), (&json!({"a": "bmV3"}), None));
    }
}
