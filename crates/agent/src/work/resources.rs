//! Reading, writing and deleting the objects of works on the managed cluster.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use either::Either;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use ocm_api::work::v1::AppliedManifestResourceMeta;
use ocm_runtime::{
    Class, Classified, Error, ResultExt as _,
    error::{chain, found},
};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{
    manifest::{ManifestError, Object},
    mapping::{Mapping, Target},
    ownership::{self, Ownership},
    update::{self, Change, UpdateError},
};

/// How often an object is read again and written when others keep writing it.
const CONFLICT_TRIES: u32 = 4;
const CONFLICT_WAIT: Duration = Duration::from_millis(10);

/// Why an object could not be applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Update(#[from] UpdateError),
    #[error("the managed cluster does not know {kind} of {api_version}: install its CRD, then this is tried again")]
    UnknownKind { kind: String, api_version: String },
    #[error("{0} lives in a namespace: set metadata.namespace in the manifest")]
    NoNamespace(String),
    #[error(transparent)]
    Request(#[from] Error),
}

impl Classified for ApplyError {
    fn class(&self) -> Class {
        match self {
            // Only an edit of the work helps.
            Self::Manifest(_) | Self::Update(_) | Self::NoNamespace(_) => Class::Invalid,
            Self::UnknownKind { .. } => Class::Transient,
            Self::Request(error) => error.class(),
        }
    }
}

impl ApplyError {
    /// The error for the owner of the work: what is wrong and what to do.
    pub(super) fn explain(&self) -> String {
        let text = chain(self);
        match self {
            Self::Request(error) if error.code() == Some(403) => format!(
                "{text}. Grant the agent's service account this right, for example by a ClusterRole with the label \
                 open-cluster-management.io/aggregate-to-work=true"
            ),
            Self::Request(error) if error.code() == Some(422) => {
                format!("{text}. Correct the manifest, or what refuses it; it is applied again every few minutes")
            }
            Self::Request(error) if error.is_not_found() && text.contains("namespaces ") => {
                format!("{text}. Create the namespace, or add it to this work")
            }
            _ => text,
        }
    }
}

/// An object that was applied or looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its uid.
    pub uid: Option<String>,
}

impl From<&DynamicObject> for Seen {
    fn from(object: &DynamicObject) -> Self {
        Self { uid: object.metadata.uid.clone() }
    }
}

/// What became of a recorded object that should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// It is gone, or not ours to delete.
    Done,
    /// It is being deleted and still there.
    Pending,
}

/// Group, resource, namespace and name.
type Key = (String, String, String, String);

/// The objects of the managed cluster. Cheap to clone.
#[derive(Clone)]
pub(super) struct Resources {
    client: Client,
    mapping: Mapping,
    /// What was last written: a hash of the manifest and the resource version that came of it. While
    /// both are the same there is nothing to do, whatever defaults the server has added.
    written: Arc<Mutex<HashMap<Key, Written>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    hash: [u8; 32],
    resource_version: String,
}

impl std::fmt::Debug for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resources").finish_non_exhaustive()
    }
}

impl Resources {
    pub(super) fn new(client: Client, mapping: Mapping) -> Self {
        Self { client, mapping, written: Arc::default() }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Where an object of that kind lives; an error that says so when it lives nowhere.
    pub(super) async fn target(&self, object: &Object) -> Result<Target, ApplyError> {
        let target = self.mapping.find(&object.gvk).await?;
        let unknown =
            || ApplyError::UnknownKind { kind: object.gvk.kind.clone(), api_version: object.gvk.api_version() };
        target.ok_or_else(unknown)
    }

    /// Makes the object what its manifest says. `is_new` spares a look where nothing is expected.
    pub(super) async fn apply(
        &self,
        object: &Object,
        target: &Target,
        ownership: &Ownership,
        is_new: bool,
    ) -> Result<Seen, ApplyError> {
        if target.namespaced && object.namespace.is_empty() {
            return Err(ApplyError::NoNamespace(object.to_string()));
        }
        let task = Task::new(self, object, target, ownership);
        if is_new
            && self.last_written(&task.key).is_none()
            && let Some(seen) = task.create_new().await?
        {
            return Ok(seen);
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

    /// Looks whether an object is there.
    pub(super) async fn look(&self, target: &Target, namespace: &str, name: &str) -> Result<Option<Seen>, Error> {
        let api = self.api(&target.resource, if target.namespaced { namespace } else { "" });
        let found = api.get_metadata_opt(name).await;
        let found = found.while_trying_to("get", || format!("{} {name}", target.resource.kind))?;
        if found.is_none() {
            // The path itself may be gone, with the CRD behind it.
            let resource = &target.resource;
            self.mapping.forget(&GroupVersionKind::gvk(&resource.group, &resource.version, &resource.kind));
        }
        Ok(found.map(|object| Seen { uid: object.metadata.uid }))
    }

    /// Deletes what an AppliedManifestWork recorded, if it is still ours: not an orphan, not shared
    /// with another work, and not another object under the old name.
    pub(super) async fn remove(
        &self,
        recorded: &AppliedManifestResourceMeta,
        owner_uid: &str,
    ) -> Result<Removal, Error> {
        self.forget(recorded);
        let api = self.recorded_api(recorded);
        let noun = || describe(recorded);
        let Some(present) = api.get_metadata_opt(&recorded.name).await.while_trying_to("get", noun)? else {
            return Ok(Removal::Done);
        };
        let owners = present.metadata.owner_references.clone().unwrap_or_default();
        if !owners.iter().any(|owner| owner.uid == owner_uid) {
            return Ok(Removal::Done);
        }
        if owners.iter().any(|owner| owner.uid != owner_uid && ownership::is_applied_work(owner)) {
            self.release(recorded, owner_uid).await?;
            return Ok(Removal::Done);
        }
        if recorded.uid.is_some() && recorded.uid != present.metadata.uid {
            return Ok(Removal::Done);
        }
        if present.metadata.deletion_timestamp.is_some() {
            return Ok(Removal::Pending);
        }
        self.delete(&api, recorded, present.metadata.uid).await
    }

    async fn delete(
        &self,
        api: &Api<DynamicObject>,
        recorded: &AppliedManifestResourceMeta,
        uid: Option<String>,
    ) -> Result<Removal, Error> {
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(Preconditions { uid, ..Preconditions::default() }),
            ..DeleteParams::default()
        };
        match api.delete(&recorded.name, &params).await.while_trying_to("delete", || describe(recorded)) {
            Ok(Either::Left(_)) => Ok(Removal::Pending),
            Ok(Either::Right(_)) => Ok(Removal::Done),
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(Removal::Done),
            Err(error) => Err(error),
        }
    }

    /// Takes an owner reference off an object, so that it stays when its owner goes.
    pub(super) async fn release(&self, recorded: &AppliedManifestResourceMeta, owner_uid: &str) -> Result<(), Error> {
        let api = self.recorded_api(recorded);
        let noun = || describe(recorded);
        let Some(present) = api.get_metadata_opt(&recorded.name).await.while_trying_to("get", noun)? else {
            return Ok(());
        };
        let mut owners = present.metadata.owner_references.unwrap_or_default();
        let before = owners.len();
        owners.retain(|owner| owner.uid != owner_uid);
        if owners.len() == before {
            return Ok(());
        }
        let patch = json!({"metadata": {
            "uid": present.metadata.uid,
            "resourceVersion": present.metadata.resource_version,
            "ownerReferences": owners,
        }});
        let patched = api.patch_metadata(&recorded.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        found(patched.while_trying_to("take the owner off", noun)).map(|_| ())
    }

    fn recorded_api(&self, recorded: &AppliedManifestResourceMeta) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(&recorded.group, &recorded.version, "");
        self.api(&ApiResource::from_gvk_with_plural(&gvk, &recorded.resource), &recorded.namespace)
    }

    fn api(&self, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        match namespace {
            "" => Api::all_with(self.client.clone(), resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, resource),
        }
    }

    fn last_written(&self, key: &Key) -> Option<Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn remember(&self, key: Key, written: Written) {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(key, written);
    }

    fn forget(&self, recorded: &AppliedManifestResourceMeta) {
        let AppliedManifestResourceMeta { group, resource, namespace, name, .. } = recorded.clone();
        self.written.lock().unwrap_or_else(PoisonError::into_inner).remove(&(group, resource, namespace, name));
    }
}

fn describe(recorded: &AppliedManifestResourceMeta) -> String {
    match recorded.namespace.as_str() {
        "" => format!("{} {}", recorded.resource, recorded.name),
        namespace => format!("{} {namespace}/{}", recorded.resource, recorded.name),
    }
}

/// One object being applied.
struct Task<'a> {
    resources: &'a Resources,
    object: &'a Object,
    ownership: &'a Ownership,
    api: Api<DynamicObject>,
    key: Key,
    hash: [u8; 32],
}

impl<'a> Task<'a> {
    fn new(resources: &'a Resources, object: &'a Object, target: &Target, ownership: &'a Ownership) -> Self {
        let namespace = if target.namespaced { object.namespace.as_str() } else { "" };
        let resource = &target.resource;
        Self {
            resources,
            object,
            ownership,
            api: resources.api(resource, namespace),
            key: (resource.group.clone(), resource.plural.clone(), namespace.to_owned(), object.name.clone()),
            hash: hash_of(object, ownership),
        }
    }

    /// Creates the object; `None` when it is there already.
    async fn create_new(&self) -> Result<Option<Seen>, ApplyError> {
        match self.create(&update::to_create(self.object, self.ownership)?).await {
            Err(ApplyError::Request(error)) if error.is_conflict() => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    async fn read_and_write(&self) -> Result<Seen, ApplyError> {
        let present = self.api.get_opt(&self.object.name).await;
        let Some(present) = present.while_trying_to("get", || self.object.to_string())? else {
            return self.create(&update::to_create(self.object, self.ownership)?).await;
        };
        if self.resources.last_written(&self.key).as_ref() == Some(&self.written(&present)) {
            return Ok(Seen::from(&present));
        }
        match update::to_update(&present, self.object, self.ownership)? {
            Change::Nothing => Ok(self.done(&present)),
            Change::Update(object) => self.replace(&object).await,
            Change::Recreate(object) => self.recreate(&present, &object).await,
        }
    }

    async fn create(&self, object: &DynamicObject) -> Result<Seen, ApplyError> {
        let created = self.api.create(&PostParams::default(), object).await;
        let created = created.while_trying_to("create", || self.object.to_string())?;
        Ok(self.done(&created))
    }

    async fn replace(&self, object: &DynamicObject) -> Result<Seen, ApplyError> {
        let replaced = self.api.replace(&self.object.name, &PostParams::default(), object).await;
        match replaced.while_trying_to("update", || self.object.to_string()) {
            Ok(replaced) => Ok(self.done(&replaced)),
            Err(error) if is_immutable_secret(self.object, &error) => {
                self.recreate(object, &update::to_create(self.object, self.ownership)?).await
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn recreate(&self, present: &DynamicObject, object: &DynamicObject) -> Result<Seen, ApplyError> {
        let only_this = Preconditions { uid: present.metadata.uid.clone(), ..Preconditions::default() };
        let params = DeleteParams { preconditions: Some(only_this), ..DeleteParams::default() };
        let deleted = self.api.delete(&self.object.name, &params).await;
        found(deleted.while_trying_to("replace", || self.object.to_string()))?;
        self.create(object).await
    }

    fn written(&self, object: &DynamicObject) -> Written {
        Written { hash: self.hash, resource_version: object.metadata.resource_version.clone().unwrap_or_default() }
    }

    fn done(&self, object: &DynamicObject) -> Seen {
        self.resources.remember(self.key.clone(), self.written(object));
        Seen::from(object)
    }
}

fn is_immutable_secret(object: &Object, error: &Error) -> bool {
    let immutable = error.status().is_some_and(|status| status.message.contains("field is immutable"));
    object.gvk.group.is_empty() && object.gvk.kind == "Secret" && error.code() == Some(422) && immutable
}

/// Changes when the manifest or its ownership does.
fn hash_of(object: &Object, ownership: &Ownership) -> [u8; 32] {
    let mut hasher = Sha256::new();
    // Serializing a JSON value does not fail.
    hasher.update(serde_json::to_vec(&object.object).unwrap_or_default());
    hasher.update(format!("{ownership:?}"));
    hasher.finalize().into()
}
