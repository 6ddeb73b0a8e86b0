//! Strategy ReadOnly: the object is read, so that it can be listed and reported, and nothing is written.
//!
//! With one exception, for an object that had another strategy before: the owner reference that it got then is removed.
//! Otherwise the object would be deleted with its work, by the agent or by the garbage collector of the cluster.

use kube::core::DynamicObject;

use super::{Task, only_metadata};
use crate::work::resources::ApplyError;

impl Task<'_> {
    pub(super) async fn read_only(&self) -> Result<Option<DynamicObject>, ApplyError> {
        self.resources.objects.remove(&self.id);
        match self.metadata().await? {
            Some(existing) => self.own(existing).await.map(only_metadata).map(Some),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{applied, metadata};
    use crate::{
        testing::not_found,
        work::ownership::{Ownership, tests::owner},
    };

    const STRATEGY: &str = "ReadOnly";

    fn not_owned() -> Ownership {
        Ownership::Orphaned(vec![owner("hub-w", "1")])
    }

    #[tokio::test]
    async fn an_object_is_only_read_whether_it_exists_or_not() {
        for owners in [vec![], vec![owner("hub-x", "9")]] {
            let read = applied(STRATEGY, true, not_owned(), vec![metadata("7", &owners)]).await;
            assert_eq!((read.version(), read.verbs()), ("7", "GET"));
        }
        let missing = applied(STRATEGY, true, not_owned(), vec![not_found()]).await;
        assert_eq!((missing.version(), missing.verbs()), ("", "GET"));
        assert!(missing.result.as_ref().unwrap().is_none());
    }

    #[tokio::test]
    async fn an_object_that_was_owned_before_loses_its_owner_reference() {
        let both = [owner("hub-x", "9"), owner("hub-w", "1")];
        let answers = vec![metadata("7", &both), metadata("8", &both[..1])];
        let released = applied(STRATEGY, false, not_owned(), answers).await;
        assert_eq!((released.version(), released.verbs()), ("8", "GET PATCH"));
        assert_eq!(released.bodies()[1]["metadata"]["ownerReferences"], json!([owner("hub-x", "9")]));
    }
}
