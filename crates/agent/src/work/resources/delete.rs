//! Deleting objects that works do not want any more, and releasing those that are to stay.

use std::{collections::HashSet, time::Duration};

use either::Either;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy},
    core::ObjectMeta,
};
use ocm_api::work::v1::AppliedManifestResourceMeta;
use ocm_runtime::{Class, Classified as _, Error, Result, ResultExt as _, error::found};
use serde_json::json;
use tracing::warn;

use super::{Resources, explain};
use crate::work::{
    identifier::{self, describe},
    ownership,
};

/// How often an object is read again when others write it at the same time.
const CONFLICT_TRIES: u32 = 4;
const CONFLICT_WAIT: Duration = Duration::from_millis(10);
/// How long finalizers usually take at most.
const HELD_FOR_LONG: SignedDuration = SignedDuration::from_secs(60);

/// What became of a recorded object that is to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::work) enum Deletion {
    /// It is gone, or not ours to delete.
    Done,
    /// It is being deleted and still exists; with what it waits for, where that is known.
    Pending(Option<Held>),
    /// It could not be deleted; this is why.
    Failed(String),
}

/// An object that was marked for deletion and waits for its finalizers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::work) struct Held {
    since: Timestamp,
    finalizers: Vec<String>,
}

impl Held {
    fn of(existing: &ObjectMeta) -> Option<Self> {
        let finalizers = existing.finalizers.clone().filter(|finalizers| !finalizers.is_empty())?;
        existing.deletion_timestamp.as_ref().map(|time| Self { since: time.0, finalizers })
    }

    /// For people, once it takes longer than finalizers usually do. The text does not change while nothing else does.
    pub(in crate::work) fn explain(&self, object: &AppliedManifestResourceMeta, now: Timestamp) -> Option<String> {
        let finalizers = self.finalizers.join(", ");
        (now.duration_since(self.since) >= HELD_FOR_LONG).then(|| {
            format!(
                "{}: marked for deletion at {}, and waiting for the controllers that remove its finalizers ({finalizers}). \
                 Check that they run; remove the finalizers by hand only if what they protect is gone",
                describe(object),
                self.since
            )
        })
    }
}

/// What to do about an object that a record wants deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Forget,
    /// Another work owns it too: only our owner reference is removed.
    Release,
    Wait,
    Delete,
}

/// Decides on an object as it is now: one without our owner reference was orphaned or is somebody else's, and one that is
/// applied is still in the work, under another API group. The recorded uid does not count: an object is listed without one, or
/// with that of an object that it replaced, if the agent was stopped between creating and recording it. Garbage collection
/// decides by the owner, too.
fn step(existing: &ObjectMeta, owner_uid: &str, applied: &HashSet<String>) -> Step {
    let owners = existing.owner_references.as_deref().unwrap_or_default();
    let is_applied = existing.uid.as_ref().is_some_and(|uid| applied.contains(uid));
    if is_applied || !owners.iter().any(|owner| owner.uid == owner_uid) {
        Step::Forget
    } else if owners.iter().any(|owner| owner.uid != owner_uid && ownership::is_applied_work(owner)) {
        Step::Release
    } else if existing.deletion_timestamp.is_some() {
        Step::Wait
    } else {
        Step::Delete
    }
}

impl Resources {
    /// Deletes an object that an AppliedManifestWork lists, if it still belongs to it alone. `applied` are the uids of the objects
    /// that its work still applies.
    pub(in crate::work) async fn delete(
        &self,
        recorded: &AppliedManifestResourceMeta,
        owner_uid: &str,
        applied: &HashSet<String>,
    ) -> Deletion {
        self.objects.remove(&identifier::of_recorded(recorded));
        self.applied_fields.remove(&identifier::of_recorded(recorded));
        if !identifier::is_addressable(recorded) {
            return Deletion::Failed(not_addressable(recorded));
        }
        let mut wait = CONFLICT_WAIT;
        for _ in 1..CONFLICT_TRIES {
            match self.delete_once(recorded, owner_uid, applied).await {
                Err(error) if error.is_conflict() => tokio::time::sleep(wait).await,
                outcome => return deletion(recorded, outcome),
            }
            wait *= 5;
        }
        deletion(recorded, self.delete_once(recorded, owner_uid, applied).await)
    }

    async fn delete_once(
        &self,
        recorded: &AppliedManifestResourceMeta,
        owner_uid: &str,
        applied: &HashSet<String>,
    ) -> Result<Deletion> {
        let existing = match self.metadata_of(recorded).await {
            // It was listed before it was to be created, which the agent most likely may not do either. If it exists after all, it
            // is deleted by garbage collection.
            Err(error) if recorded.uid.is_none() && is_denied(&error) => {
                warn!(cause = failure(recorded, &error), "this object is not deleted, since it cannot be read");
                return Ok(Deletion::Done);
            }
            read => read?,
        };
        let Some(existing) = existing else { return Ok(Deletion::Done) };
        match step(&existing, owner_uid, applied) {
            Step::Forget => Ok(Deletion::Done),
            Step::Release => {
                self.patch_owners(recorded, existing, &[owner_uid.to_owned()]).await.map(|()| Deletion::Done)
            }
            Step::Wait => Ok(Deletion::Pending(Held::of(&existing))),
            Step::Delete => self.request_deletion(recorded, existing).await,
        }
    }

    /// A conflict is another object under the old name, or one that got other owners since it was read.
    async fn request_deletion(&self, recorded: &AppliedManifestResourceMeta, existing: ObjectMeta) -> Result<Deletion> {
        let preconditions = Preconditions { uid: existing.uid, resource_version: existing.resource_version };
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let deleted = self.api_of(recorded).delete(&recorded.name, &params).await;
        match found(deleted.while_trying_to("delete", || describe(recorded)))? {
            Some(Either::Left(_)) => Ok(Deletion::Pending(None)),
            Some(Either::Right(_)) | None => Ok(Deletion::Done),
        }
    }

    /// The entry of a record for an object that it does not list; `None` if the object does not belong to it. An object that
    /// cannot be read now is listed, so that its deletion is retried; one that this agent may not read is not, since it
    /// would block the deletion for ever.
    pub(in crate::work) async fn owned(
        &self,
        resource: AppliedManifestResourceMeta,
        owner_uid: &str,
    ) -> Option<AppliedManifestResourceMeta> {
        match self.metadata_of(&resource).await {
            Ok(Some(existing)) if step(&existing, owner_uid, &HashSet::new()) == Step::Forget => None,
            Ok(Some(existing)) => Some(AppliedManifestResourceMeta { uid: existing.uid, ..resource }),
            Ok(None) => None,
            Err(error) if is_denied(&error) => {
                warn!(cause = failure(&resource, &error), "deleting the work although this object cannot be read");
                None
            }
            Err(_) => Some(resource),
        }
    }

    /// Removes owner references from an object, so that it stays when its owners are deleted.
    ///
    /// # Errors
    /// For people, with the object.
    pub(in crate::work) async fn release(
        &self,
        recorded: &AppliedManifestResourceMeta,
        owner_uids: &[String],
    ) -> Result<(), String> {
        if !identifier::is_addressable(recorded) {
            return Err(not_addressable(recorded));
        }
        let mut wait = CONFLICT_WAIT;
        for _ in 1..CONFLICT_TRIES {
            match self.release_once(recorded, owner_uids).await {
                Err(error) if error.is_conflict() => tokio::time::sleep(wait).await,
                outcome => return outcome.map_err(|error| failure(recorded, &error)),
            }
            wait *= 5;
        }
        self.release_once(recorded, owner_uids).await.map_err(|error| failure(recorded, &error))
    }

    async fn release_once(&self, recorded: &AppliedManifestResourceMeta, owner_uids: &[String]) -> Result<()> {
        match self.metadata_of(recorded).await? {
            Some(existing) => self.patch_owners(recorded, existing, owner_uids).await,
            None => Ok(()),
        }
    }

    async fn patch_owners(
        &self,
        recorded: &AppliedManifestResourceMeta,
        existing: ObjectMeta,
        owner_uids: &[String],
    ) -> Result<()> {
        let owners = existing.owner_references.unwrap_or_default();
        let others: Vec<&OwnerReference> = owners.iter().filter(|owner| !owner_uids.contains(&owner.uid)).collect();
        if others.len() == owners.len() {
            return Ok(());
        }
        let patch = json!({"metadata": {
            "uid": existing.uid,
            "resourceVersion": existing.resource_version,
            "ownerReferences": others,
        }});
        let api = self.api_of(recorded);
        let patched = api.patch_metadata(&recorded.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        found(patched.while_trying_to("remove the owner reference from", || describe(recorded))).map(|_| ())
    }
}

/// Whether the agent lacks the right to a request, or will not get an answer to it.
fn is_denied(error: &Error) -> bool {
    error.code() == Some(403) || error.class() == Class::Refused
}

fn deletion(recorded: &AppliedManifestResourceMeta, outcome: Result<Deletion>) -> Deletion {
    outcome.unwrap_or_else(|error| Deletion::Failed(failure(recorded, &error)))
}

fn failure(recorded: &AppliedManifestResourceMeta, error: &Error) -> String {
    format!("{}: {}", describe(recorded), explain(error))
}

fn not_addressable(recorded: &AppliedManifestResourceMeta) -> String {
    format!(
        "{}: this is no valid name of an object. Delete the object by hand, and take the entry out of the status of the \
         AppliedManifestWork",
        describe(recorded)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        testing::{Mock, conflict, not_found},
        work::ownership::tests::owner,
    };

    fn recorded(uid: Option<&str>) -> AppliedManifestResourceMeta {
        AppliedManifestResourceMeta {
            version: "v1".into(),
            resource: "configmaps".into(),
            name: "a".into(),
            namespace: "ns".into(),
            uid: uid.map(str::to_owned),
            ..AppliedManifestResourceMeta::default()
        }
    }

    fn existing(uid: &str, owners: &[OwnerReference]) -> (u16, Value) {
        (
            200,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "a", "namespace": "ns", "uid": uid, "resourceVersion": "7", "ownerReferences": owners}}),
        )
    }

    fn deleting(uid: &str, owners: &[OwnerReference]) -> (u16, Value) {
        let (code, mut object) = existing(uid, owners);
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        (code, object)
    }

    fn failed(code: u16) -> (u16, Value) {
        (code, json!({"kind": "Status", "status": "Failure", "code": code, "message": "no"}))
    }

    async fn delete(recorded: AppliedManifestResourceMeta, answers: Vec<(u16, Value)>) -> (Deletion, String, Mock) {
        let server = Mock::answering(answers);
        let deletion = Resources::new(server.client()).delete(&recorded, "ours", &["applied".to_owned()].into()).await;
        let verbs: Vec<_> = server.asked().iter().map(|asked| asked.split(' ').next().unwrap().to_owned()).collect();
        (deletion, verbs.join(" "), server)
    }

    fn ours() -> OwnerReference {
        owner("hub-w", "ours")
    }

    #[tokio::test]
    async fn an_object_of_ours_is_deleted_as_it_was_read_and_pending_until_it_is_gone() {
        let (deletion, asked, server) =
            delete(recorded(Some("1")), vec![existing("1", &[ours()]), deleting("1", &[ours()])]).await;
        assert_eq!((deletion, asked.as_str()), (Deletion::Pending(None), "GET DELETE"));
        let request = server.bodies().pop().unwrap();
        assert_eq!(request["preconditions"], json!({"uid": "1", "resourceVersion": "7"}));
        assert_eq!(request["propagationPolicy"], "Background");
        let (deletion, asked, _) = delete(recorded(Some("1")), vec![deleting("1", &[ours()])]).await;
        assert_eq!((deletion, asked.as_str()), (Deletion::Pending(None), "GET"));
        let (deletion, ..) = delete(recorded(Some("1")), vec![not_found()]).await;
        assert_eq!(deletion, Deletion::Done);
    }

    #[tokio::test]
    async fn an_object_whose_finalizers_nobody_removes_is_explained_after_a_while() {
        let (code, mut object) = deleting("1", &[ours()]);
        object["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
        let (deletion, ..) = delete(recorded(Some("1")), vec![(code, object)]).await;
        let Deletion::Pending(Some(held)) = deletion else { panic!("{deletion:?}") };
        let at = |time: &str| held.explain(&recorded(None), time.parse().unwrap());
        assert_eq!(at("2026-01-01T00:00:59Z"), None);
        let text = at("2026-01-01T00:01:00Z").unwrap();
        assert!(text.starts_with("configmaps ns/a: ") && text.contains("(example.com/a, example.com/b)"), "{text}");
        assert_eq!(at("2026-01-01T05:00:00Z"), Some(text), "it is not written again and again");
    }

    #[tokio::test]
    async fn what_is_not_ours_is_left_alone() {
        let foreign = owner("hub-w", "somebody-else");
        for present in [existing("1", &[]), existing("1", &[foreign]), existing("applied", &[ours()])] {
            let (deletion, asked, _) = delete(recorded(Some("1")), vec![present]).await;
            assert_eq!((deletion, asked.as_str()), (Deletion::Done, "GET"));
        }
    }

    #[tokio::test]
    async fn an_object_of_ours_that_was_created_again_and_not_recorded_is_deleted() {
        for recorded_uid in [None, Some("1")] {
            let answers = vec![existing("2", &[ours()]), deleting("2", &[ours()])];
            let (deletion, asked, server) = delete(recorded(recorded_uid), answers).await;
            assert_eq!((deletion, asked.as_str()), (Deletion::Pending(None), "GET DELETE"));
            assert_eq!(server.bodies().pop().unwrap()["preconditions"]["uid"], "2");
        }
    }

    #[tokio::test]
    async fn an_object_that_was_listed_and_never_created_and_cannot_be_read_does_not_block_a_deletion() {
        let (deletion, asked, _) = delete(recorded(None), vec![failed(403)]).await;
        assert_eq!((deletion, asked.as_str()), (Deletion::Done, "GET"));
        let (deletion, ..) = delete(recorded(Some("1")), vec![failed(403)]).await;
        assert!(matches!(deletion, Deletion::Failed(_)), "what was created is not forgotten: {deletion:?}");
    }

    #[tokio::test]
    async fn an_object_of_another_work_too_loses_only_our_owner_reference() {
        let other = owner("hub-x", "theirs");
        let answers = vec![existing("1", &[other.clone(), ours()]), existing("1", std::slice::from_ref(&other))];
        let (deletion, asked, server) = delete(recorded(Some("1")), answers).await;
        assert_eq!((deletion, asked.as_str()), (Deletion::Done, "GET PATCH"));
        let patch = server.bodies().pop().unwrap();
        assert_eq!(patch["metadata"], json!({"uid": "1", "resourceVersion": "7", "ownerReferences": [other]}));
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_another_work_takes_over_at_that_moment_is_not_deleted() {
        let other = owner("hub-x", "theirs");
        let answers = vec![
            existing("1", &[ours()]),
            conflict(),
            existing("1", &[other.clone(), ours()]),
            conflict(),
            existing("1", &[other]),
        ];
        let (deletion, asked, _) = delete(recorded(Some("1")), answers).await;
        assert_eq!((deletion, asked.as_str()), (Deletion::Done, "GET DELETE GET PATCH GET"));
    }

    #[tokio::test]
    async fn an_object_that_cannot_be_read_or_deleted_has_failed_with_a_reason() {
        for answers in [vec![failed(500)], vec![existing("1", &[ours()]), failed(500)]] {
            let (deletion, ..) = delete(recorded(Some("1")), answers).await;
            let Deletion::Failed(cause) = deletion else { panic!("{deletion:?}") };
            assert!(cause.starts_with("configmaps ns/a: failed to ") && cause.ends_with(": no"), "{cause}");
        }
        let odd = AppliedManifestResourceMeta { name: "a?x=y".into(), ..recorded(None) };
        let (deletion, asked, _) = delete(odd, vec![]).await;
        assert!(matches!(deletion, Deletion::Failed(_)) && asked.is_empty());
    }

    #[tokio::test]
    async fn an_object_is_released_once() {
        let server =
            Mock::answering(vec![existing("1", &[ours()]), existing("1", &[]), existing("1", &[]), not_found()]);
        let resources = Resources::new(server.client());
        for _ in 0..3 {
            resources.release(&recorded(None), &["ours".to_owned()]).await.unwrap();
        }
        let verbs: Vec<_> = server.asked().iter().map(|asked| asked.split(' ').next().unwrap().to_owned()).collect();
        assert_eq!(verbs.join(" "), "GET PATCH GET GET");
        assert_eq!(server.bodies()[1]["metadata"]["ownerReferences"], json!([]));
    }
}
