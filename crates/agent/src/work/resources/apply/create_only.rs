//! Strategy CreateOnly: what exists is left alone, but for its owner references.

use kube::core::{DynamicObject, ObjectMeta};

use super::{Task, only_metadata};
use crate::work::{
    drift::{Baseline, Compared, Demands},
    resources::{ApplyError, written::hash_of},
    update,
};

impl Task<'_> {
    pub(super) async fn create_only(&self, is_new: bool) -> Result<DynamicObject, ApplyError> {
        let hash = hash_of("CreateOnly", self.object, self.ownership);
        if let Some(metadata) = self.resources.objects.covered(&self.id, hash) {
            return Ok(only_metadata(metadata));
        }
        let object = self.create_or_own(is_new).await?;
        let compared = Compared { demands: Demands::of(&ObjectMeta::default(), self.ownership), body: false };
        self.resources.objects.insert(&self.id, Baseline::new(hash, compared, &object));
        Ok(object)
    }

    async fn create_or_own(&self, is_new: bool) -> Result<DynamicObject, ApplyError> {
        let new = update::as_in_manifest(self.object, self.ownership);
        if is_new && let Some(created) = self.create_new(&new).await? {
            return Ok(created);
        }
        match self.metadata().await? {
            Some(existing) => self.own(existing).await.map(only_metadata),
            None => self.create(&new).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{applied, map, metadata, owned};
    use crate::{
        testing::{conflict, not_found},
        work::ownership::tests::owner,
    };

    const STRATEGY: &str = "CreateOnly";

    #[tokio::test]
    async fn an_object_is_created_with_its_owner_once_and_then_left_alone() {
        let created = applied(STRATEGY, true, owned(), vec![map("1", "new", &[])]).await;
        assert_eq!((created.version(), created.verbs()), ("1", "POST"));
        let body = &created.bodies()[0];
        assert_eq!(body["metadata"]["ownerReferences"], json!([owner("hub-w", "1")]));
        let again = applied(STRATEGY, false, owned(), vec![metadata("7", &[owner("hub-w", "1")])]).await;
        assert_eq!((again.version(), again.verbs()), ("7", "GET"), "whatever its data is now");
        let missing = applied(STRATEGY, false, owned(), vec![not_found(), map("1", "new", &[])]).await;
        assert_eq!((missing.version(), missing.verbs()), ("1", "GET POST"));
    }

    #[tokio::test]
    async fn of_an_object_that_exists_already_only_the_owner_references_are_patched() {
        let theirs = owner("hub-x", "9");
        let existing = metadata("7", std::slice::from_ref(&theirs));
        let answers = vec![conflict(), existing, metadata("8", &[theirs.clone(), owner("hub-w", "1")])];
        let adopted = applied(STRATEGY, true, owned(), answers).await;
        assert_eq!((adopted.version(), adopted.verbs()), ("8", "POST GET PATCH"));
        let owners = json!([theirs, owner("hub-w", "1")]);
        assert_eq!(
            adopted.bodies()[2],
            json!({"metadata": {"uid": "1", "resourceVersion": "7", "ownerReferences": owners}})
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_others_write_or_delete_meanwhile_is_read_again() {
        let answers = vec![
            metadata("7", &[]),
            conflict(),
            metadata("8", &[]),
            not_found(),
            not_found(),
            conflict(),
            metadata("9", &[owner("hub-w", "1")]),
        ];
        let adopted = applied(STRATEGY, false, owned(), answers).await;
        assert_eq!((adopted.version(), adopted.verbs()), ("9", "GET PATCH GET PATCH GET POST GET"));
    }
}
