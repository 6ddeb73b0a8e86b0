//! Strategy Update: the object becomes what its manifest says; see [`crate::work::update`].

use kube::{
    api::{DeleteParams, PostParams, Preconditions},
    core::DynamicObject,
};
use ocm_runtime::{Error, ResultExt as _, error::found};

use super::{Task, only_metadata};
use crate::work::{
    drift::{Assessment, Baseline},
    manifest::DesiredObject,
    resources::{ApplyError, written::hash_of},
    update::{self, Change},
};

impl Task<'_> {
    /// Returns its metadata alone where a watch says that the object is as it was left.
    pub(super) async fn update(&self, is_new: bool) -> Result<DynamicObject, ApplyError> {
        if let Some(metadata) = self.resources.objects.covered(&self.id, self.hash()) {
            return Ok(only_metadata(metadata));
        }
        if is_new
            && !self.resources.objects.contains(&self.id)
            && let Some(created) = self.create_new(&update::to_create(self.object, self.ownership)?).await?
        {
            return Ok(self.written(created));
        }
        let existing = self.api.get_opt(&self.object.name).await;
        let Some(existing) = existing.while_trying_to("get", || self.object.to_string())? else {
            return self.create_again(&update::to_create(self.object, self.ownership)?).await;
        };
        if self.resources.objects.assess(&self.id, (&self.object.object, self.hash()), &existing) != Assessment::Write {
            return Ok(existing);
        }
        match update::to_update(&existing, self.object, self.ownership)? {
            Change::Nothing => Ok(self.written(existing)),
            Change::Update(object) => self.replace(&existing, &object).await,
            Change::Recreate(object) => self.recreate(&existing, &object).await,
        }
    }

    async fn create_again(&self, object: &DynamicObject) -> Result<DynamicObject, ApplyError> {
        Ok(self.written(self.create(object).await?))
    }

    async fn replace(&self, existing: &DynamicObject, object: &DynamicObject) -> Result<DynamicObject, ApplyError> {
        let replaced = self.api.replace(&self.object.name, &PostParams::default(), object).await;
        match replaced.while_trying_to("update", || self.object.to_string()) {
            Ok(replaced) => {
                self.expect_new_kinds();
                Ok(self.written(replaced))
            }
            Err(error) if is_immutable_secret(self.object, &error) => {
                self.recreate(existing, &update::to_recreate(existing, self.object, self.ownership)?).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the object and creates it again, unless somebody has changed it since it was read: its owners are taken
    /// over from there. An agent that is stopped between the two requests loses what others have added to the object, since
    /// no API request does both.
    async fn recreate(&self, existing: &DynamicObject, object: &DynamicObject) -> Result<DynamicObject, ApplyError> {
        let metadata = existing.metadata.clone();
        let preconditions = Preconditions { uid: metadata.uid, resource_version: metadata.resource_version };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let deleted = self.api.delete(&self.object.name, &params).await;
        found(deleted.while_trying_to("replace", || self.object.to_string()))?;
        self.create_again(object).await
    }

    fn hash(&self) -> [u8; 32] {
        hash_of("Update", self.object, self.ownership)
    }

    fn written(&self, object: DynamicObject) -> DynamicObject {
        let compared = update::compared(self.object, self.ownership);
        self.resources.objects.insert(&self.id, Baseline::new(self.hash(), compared, &object));
        object
    }
}

fn is_immutable_secret(object: &DesiredObject, error: &Error) -> bool {
    let immutable = error.status().is_some_and(|status| status.message.contains("field is immutable"));
    object.gvk.group.is_empty() && object.gvk.kind == "Secret" && error.code() == Some(422) && immutable
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::{
            Application,
            testing::{config_map, desired, map, mapping, options, owned, verbs},
        },
        *,
    };
    use crate::{
        testing::{Mock, conflict, not_found},
        work::{options::ManifestOptions, ownership::tests::owner, resources::Resources},
    };

    fn stored(version: &str, data: &str) -> (u16, Value) {
        map(version, data, &[owner("hub-w", "1")])
    }

    async fn apply(server: &Mock, object: &DesiredObject, is_new: bool) -> Result<Option<DynamicObject>, ApplyError> {
        apply_with(&Resources::new(server.client()), object, is_new).await
    }

    async fn apply_with(
        resources: &Resources,
        object: &DesiredObject,
        is_new: bool,
    ) -> Result<Option<DynamicObject>, ApplyError> {
        let (kind, plural) = (&object.gvk.kind, format!("{}s", object.gvk.kind.to_lowercase()));
        let (mapping, options, ownership) = (mapping(kind, &plural), ManifestOptions::default(), owned());
        let application = Application { object, mapping: &mapping, options: &options, ownership: &ownership, is_new };
        resources.apply(application).await
    }

    async fn applied(answers: Vec<(u16, Value)>, is_new: bool) -> (Result<Option<String>, String>, String) {
        let server = Mock::answering(answers);
        let applied = apply(&server, &config_map("new"), is_new).await;
        let version = applied.map(|object| object.unwrap().metadata.resource_version);
        (version.map_err(|error| error.to_string()), verbs(&server))
    }

    #[tokio::test]
    async fn a_new_object_is_created_without_reading_it_and_one_that_exists_is_read_and_updated() {
        let (version, asked) = applied(vec![stored("1", "new")], true).await;
        assert_eq!((version, asked), (Ok(Some("1".into())), "POST".to_owned()));
        let (version, asked) = applied(vec![conflict(), stored("1", "old"), stored("2", "new")], true).await;
        assert_eq!((version, asked), (Ok(Some("2".into())), "POST GET PUT".into()));
    }

    fn refused(code: u16) -> (u16, Value) {
        (code, json!({"kind": "Status", "status": "Failure", "code": code, "message": "no"}))
    }

    #[tokio::test]
    async fn an_object_that_exists_is_updated_also_where_its_creation_is_refused() {
        for code in [400, 403, 422] {
            let answers = vec![refused(code), stored("1", "old"), stored("1", "old"), stored("2", "new")];
            let (version, asked) = applied(answers, true).await;
            assert_eq!((version, asked), (Ok(Some("2".into())), "POST GET GET PUT".into()));
            for unknown in [not_found(), refused(403)] {
                let (failed, asked) = applied(vec![refused(code), unknown], true).await;
                assert!(failed.unwrap_err().contains("failed to create"));
                assert_eq!(asked, "POST GET");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_others_write_is_read_again_until_it_can_be_written() {
        let answers =
            vec![stored("1", "old"), conflict(), stored("2", "old"), conflict(), not_found(), stored("4", "new")];
        let (version, asked) = applied(answers, false).await;
        assert_eq!((version, asked), (Ok(Some("4".into())), "GET PUT GET PUT GET POST".into()));
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
        for _ in 0..3 {
            apply_with(&resources, &config_map("new"), false).await.unwrap();
        }
        assert_eq!(verbs(&server), "GET PUT GET GET PUT", "the server's defaults are no drift");
    }

    #[tokio::test]
    async fn an_object_whose_status_changes_is_not_written_again_although_the_server_has_added_defaults() {
        let with_status = |version: &str| {
            let (code, mut object) = stored(version, "defaulted");
            object["status"] = json!({"version": version});
            (code, object)
        };
        let server = Mock::answering(vec![stored("1", "old"), with_status("2"), with_status("3"), with_status("4")]);
        let resources = Resources::new(server.client());
        for _ in 0..3 {
            apply_with(&resources, &config_map("new"), false).await.unwrap();
        }
        assert_eq!(verbs(&server), "GET PUT GET GET");
    }

    #[tokio::test]
    async fn a_strategy_that_is_not_known_is_an_error_that_names_the_field_and_sends_nothing() {
        let (server, object) = (Mock::default(), config_map("a"));
        let options = ManifestOptions { strategy_at: Some(2), ..options(&json!({"type": "FromTheFuture"})) };
        let (mapping, ownership) = (mapping("ConfigMap", "configmaps"), owned());
        let application =
            Application { object: &object, mapping: &mapping, options: &options, ownership: &ownership, is_new: true };
        let error = Resources::new(server.client()).apply(application).await.unwrap_err().explain();
        assert!(
            error.contains("spec.manifestConfigs[2].updateStrategy.type") && error.contains("FromTheFuture"),
            "{error}"
        );
        assert!(error.contains("ReadOnly"), "what to use instead: {error}");
    }

    #[tokio::test]
    async fn an_object_without_the_namespace_that_it_needs_is_not_sent() {
        let server = Mock::default();
        let mut object = config_map("a");
        object.namespace.clear();
        let applied = apply(&server, &object, true).await;
        assert!(matches!(applied, Err(ApplyError::NoNamespace(_))));
    }

    #[tokio::test]
    async fn an_immutable_secret_that_is_created_again_keeps_its_other_owners() {
        let manifest = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "ns"},
            "data": {"a": "bmV3"}});
        let desired = desired(manifest);
        let existing = json!({"apiVersion": "v1", "kind": "Secret", "immutable": true, "type": "Opaque",
            "data": {"a": "b2xk"}, "metadata": {"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": "1",
            "labels": {"theirs": "1"}, "ownerReferences": [owner("other", "9")]}});
        let immutable = json!({"kind": "Status", "status": "Failure", "code": 422,
            "message": "Secret \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set"});
        let done = json!({"kind": "Status", "status": "Success"});
        let server = Mock::answering(vec![(200, existing), (422, immutable), (200, done), stored("2", "")]);
        apply(&server, &desired, false).await.unwrap();
        let created = server.bodies().pop().unwrap();
        assert_eq!(created["metadata"]["ownerReferences"], json!([owner("other", "9"), owner("hub-w", "1")]));
        assert_eq!(created["metadata"]["labels"], json!({"theirs": "1"}));
        assert_eq!((&created["data"], created["metadata"].get("uid")), (&json!({"a": "bmV3"}), None));
    }
}
