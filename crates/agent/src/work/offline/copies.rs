//! Writing and deleting copies.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    core::PartialObjectMeta,
};
use ocm_api::{
    annotations::OFFLINE_COPY_DIGEST,
    labels::OFFLINE_COPY,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_runtime::{
    Cache, Class, Classified, Error, Informers, ObjectKey, Result, ResultExt as _,
    error::{chain, found},
    informer::WatchFilter,
    write,
};
use serde_json::json;
use tracing::warn;

use super::{
    OfflineSettings,
    copy::{self, CopyError},
};

/// How often a copy is read again and written when others write it at the same time.
const CONFLICT_TRIES: u32 = 4;

/// What is known of a copy without reading it.
pub(super) type CopyMeta = PartialObjectMeta<Secret>;

/// The copies on the managed cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::work) struct Copies {
    pub(super) secrets: Api<Secret>,
    pub(super) namespace: String,
    /// Their metadata: the works themselves are read when they are needed.
    pub(super) known: Cache<CopyMeta>,
}

/// What to write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plan {
    Nothing,
    Create(Box<Secret>),
    Replace(Box<Secret>),
    /// There can be no copy: delete the one of an older version.
    Impossible(CopyError),
}

/// Why a copy was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeepError {
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error("Secret {0} has the name of a copy of a work but is not one: delete it, or create it under another name")]
    Foreign(ObjectKey),
    #[error(transparent)]
    Request(#[from] Error),
}

impl Classified for KeepError {
    fn class(&self) -> Class {
        match self {
            Self::Copy(_) => Class::Invalid,
            Self::Foreign(_) => Class::Refused,
            Self::Request(error) => error.class(),
        }
    }
}

impl Copies {
    /// `None` if none are kept.
    pub(in crate::work) fn new(managed: &Informers, settings: &OfflineSettings) -> Option<Self> {
        settings.keeps_copies.then(|| {
            let known = managed.metadata(WatchFilter::labelled(OFFLINE_COPY));
            let secrets = Api::namespaced(managed.client().clone(), &settings.namespace);
            Self { secrets, namespace: settings.namespace.clone(), known }
        })
    }

    #[cfg(test)]
    pub(in crate::work) fn over(client: kube::Client, namespace: &str) -> Self {
        let secrets = Api::namespaced(client, namespace);
        Self { secrets, namespace: namespace.into(), known: Cache::default() }
    }

    /// Brings the copy of a work up to date that is applied next. A work is applied whether or not there can be a copy.
    pub(in crate::work) async fn keep(&self, work: &ManifestWork, record: &AppliedManifestWork) {
        if let Err(error) = self.try_keep(work, record).await {
            let work = work.name_any();
            warn!(work, error = %chain(&error), "this work has no copy now, retrying with the next pass over it");
        }
    }

    async fn try_keep(&self, work: &ManifestWork, record: &AppliedManifestWork) -> Result<(), KeepError> {
        let name = copy::name(&record.name_any());
        let mut existing = self.existing(&name).await?;
        for _ in 1..CONFLICT_TRIES {
            let plan = plan(existing.as_deref(), work, record, &self.namespace);
            match self.write(existing.as_deref(), plan).await {
                Err(error) if error.class() == Class::Conflict => existing = self.read(&name).await?,
                outcome => return outcome,
            }
        }
        self.write(existing.as_deref(), plan(existing.as_deref(), work, record, &self.namespace)).await
    }

    /// The copy of that name, if there is one.
    pub(super) async fn existing(&self, name: &str) -> Result<Option<Arc<CopyMeta>>, KeepError> {
        match self.known.get(&ObjectKey::new(&self.namespace, name)) {
            None if !self.known.is_synced() => self.read(name).await,
            known => Ok(known),
        }
    }

    async fn read(&self, name: &str) -> Result<Option<Arc<CopyMeta>>, KeepError> {
        let found = self.secrets.get_metadata_opt(name).await.while_trying_to("get", || format!("Secret {name}"))?;
        match found {
            Some(foreign) if !foreign.labels().contains_key(OFFLINE_COPY) => {
                Err(KeepError::Foreign(ObjectKey::new(&self.namespace, name)))
            }
            found => Ok(found.map(Arc::new)),
        }
    }

    /// Writes what was planned. A copy that cannot be replaced is deleted, since it is out of date.
    pub(super) async fn write(&self, existing: Option<&CopyMeta>, plan: Plan) -> Result<(), KeepError> {
        let written = match (plan, existing) {
            (Plan::Create(copy), _) => self.create(&copy).await,
            (Plan::Replace(copy), Some(existing)) => self.replace(existing, *copy).await,
            (Plan::Impossible(error), _) => Err(error.into()),
            (Plan::Nothing | Plan::Replace(_), _) => Ok(()),
        };
        match (written, existing) {
            (Err(error), Some(existing)) if error.class() != Class::Conflict => {
                Err(self.withdraw(existing, error).await)
            }
            (written, _) => written,
        }
    }

    async fn create(&self, copy: &Secret) -> Result<(), KeepError> {
        let created = write::create(&self.secrets, copy).await?;
        self.known.record_write(CopyMeta { types: None, metadata: created.metadata, ..CopyMeta::default() });
        Ok(())
    }

    /// Replaces exactly the copy that was observed.
    async fn replace(&self, existing: &CopyMeta, new: Secret) -> Result<(), KeepError> {
        let meta = json!({"uid": existing.metadata.uid, "resourceVersion": existing.metadata.resource_version,
            "labels": new.metadata.labels, "annotations": new.metadata.annotations,
            "ownerReferences": new.metadata.owner_references});
        let name = new.name_any();
        let patch = Patch::Merge(json!({"metadata": meta, "data": new.data}));
        let patched = self.secrets.patch_metadata(&name, &PatchParams::default(), &patch).await;
        self.known.record_write(patched.while_trying_to("patch", || format!("Secret {name}"))?);
        Ok(())
    }

    /// Deletes a copy that could not be replaced, and returns what is to be retried.
    async fn withdraw(&self, existing: &CopyMeta, error: KeepError) -> KeepError {
        let Err(undeleted) = self.delete(existing).await else { return error };
        let copy = existing.name_any();
        warn!(copy, error = %chain(&error), "the copy of an older version of a work can be neither replaced nor deleted");
        undeleted.into()
    }

    async fn delete(&self, copy: &CopyMeta) -> Result<()> {
        delete(&self.secrets, copy).await?;
        self.known.record_delete(copy);
        Ok(())
    }
}

/// Deletes exactly this copy.
pub(super) async fn delete(secrets: &Api<Secret>, copy: &CopyMeta) -> Result<()> {
    let only_this = Preconditions { uid: copy.uid(), ..Preconditions::default() };
    let params = DeleteParams { preconditions: Some(only_this), ..DeleteParams::default() };
    let name = copy.name_any();
    let deleted = secrets.delete(&name, &params).await;
    found(deleted.while_trying_to("delete", || format!("Secret {name}"))).map(|_| ())
}

/// How the copy becomes that of this version of the work. Pure.
pub(super) fn plan(
    existing: Option<&CopyMeta>,
    work: &ManifestWork,
    record: &AppliedManifestWork,
    namespace: &str,
) -> Plan {
    let desired = match copy::desired(work, record, namespace) {
        Ok(desired) => Box::new(desired),
        Err(error) => return Plan::Impossible(error),
    };
    let digest = |copy: &kube::core::ObjectMeta| copy.annotations.as_ref()?.get(OFFLINE_COPY_DIGEST).cloned();
    match existing {
        None => Plan::Create(desired),
        Some(existing) if digest(&existing.metadata) == digest(&desired.metadata) => Plan::Nothing,
        Some(_) => Plan::Replace(desired),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::testing::{Mock, conflict, not_found};

    fn work(data: &str) -> ManifestWork {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": data}});
        let meta = json!({"name": "w", "namespace": "c1", "generation": 3});
        serde_json::from_value(json!({"metadata": meta, "spec": {"workload": {"manifests": [map]}}})).unwrap()
    }

    /// A copy as the server has it.
    fn stored(digest: &str) -> (u16, Value) {
        let labels = json!({OFFLINE_COPY: "true"});
        (
            200,
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy", "uid": "1", "resourceVersion": "7",
            "labels": labels, "annotations": {OFFLINE_COPY_DIGEST: digest}}}),
        )
    }

    fn refused(code: u16) -> (u16, Value) {
        (code, json!({"kind": "Status", "status": "Failure", "code": code, "message": "no"}))
    }

    fn deleted() -> (u16, Value) {
        (200, json!({"kind": "Status", "status": "Success"}))
    }

    /// Keeps the copy of a work on a server that answers like that; returns the verbs that it was asked with.
    async fn keep(data: &str, answers: Vec<(u16, Value)>) -> (Result<(), KeepError>, String, Mock) {
        let server = Mock::answering(answers);
        let copies = Copies::over(server.client(), "agents");
        let kept = copies.try_keep(&work(data), &AppliedManifestWork::default()).await;
        let asked = server.asked();
        let verbs: Vec<_> = asked.iter().filter_map(|asked| asked.split(' ').next()).collect();
        (kept, verbs.join(" "), server)
    }

    #[test]
    fn a_copy_is_written_when_it_is_missing_or_out_of_date_and_not_again() {
        let plan = |existing: Option<&CopyMeta>| plan(existing, &work("1"), &AppliedManifestWork::default(), "agents");
        let Plan::Create(copy) = plan(None) else { panic!() };
        let mut existing = CopyMeta { metadata: copy.metadata.clone(), ..CopyMeta::default() };
        assert_eq!(plan(Some(&existing)), Plan::Nothing);
        existing.annotations_mut().insert(OFFLINE_COPY_DIGEST.into(), "another".into());
        assert_eq!(plan(Some(&existing)), Plan::Replace(copy));
    }

    #[tokio::test]
    async fn a_copy_that_cannot_be_replaced_is_deleted_since_it_is_older_than_what_is_applied() {
        for code in [403, 413, 422, 500] {
            let (kept, verbs, server) = keep("1", vec![stored("older"), refused(code), deleted()]).await;
            assert_eq!((kept.is_err(), verbs.as_str()), (true, "GET PATCH DELETE"), "{code}");
            assert_eq!(server.bodies()[2]["preconditions"], json!({"uid": "1"}), "{code}");
        }
        let (kept, verbs, _) = keep(&"x".repeat(1024 * 1024), vec![stored("older"), deleted()]).await;
        assert!(matches!(kept, Err(KeepError::Copy(CopyError::TooLarge(_)))), "{kept:?}");
        assert_eq!(verbs, "GET DELETE");
    }

    #[tokio::test]
    async fn a_copy_that_can_be_neither_replaced_nor_deleted_is_an_error_that_is_retried() {
        let (kept, ..) = keep(&"x".repeat(1024 * 1024), vec![stored("older"), refused(422)]).await;
        assert_eq!(kept.unwrap_err().class(), Class::Refused, "not only when somebody edits the work");
    }

    #[tokio::test]
    async fn a_copy_that_somebody_wrote_meanwhile_is_read_again_and_replaced() {
        let answers = vec![not_found(), conflict(), stored("older"), conflict(), stored("another"), stored("new")];
        let (kept, verbs, _) = keep("1", answers).await;
        assert_eq!((kept.is_ok(), verbs.as_str()), (true, "GET POST GET PATCH GET PATCH"));
    }

    #[tokio::test]
    async fn a_secret_that_has_the_name_of_a_copy_and_is_none_is_left_alone() {
        let (_, mut foreign) = stored("x");
        foreign["metadata"]["labels"] = json!({});
        let (kept, verbs, _) = keep("1", vec![(200, foreign)]).await;
        assert_eq!((kept.unwrap_err().class(), verbs.as_str()), (Class::Refused, "GET"));
    }
}
