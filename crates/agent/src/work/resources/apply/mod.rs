//! Creating and updating an object, as the strategy of its work asks for.

mod create_only;
mod owners;
mod read_only;
mod server_side;
#[cfg(test)]
mod testing;
mod update;

use std::time::Duration;

use kube::{
    Api,
    api::PostParams,
    core::{DynamicObject, ObjectMeta},
};
use ocm_api::work::v1::ResourceIdentifier;
use ocm_runtime::{Class, Classified as _, Error, ResultExt as _};
use serde_json::Value;

pub(super) use self::server_side::AppliedFields;
pub(in crate::work) use self::server_side::{FieldConflict, apply_configuration, apply_params};
use super::{ApplyError, Resources, api_of};
use crate::work::{
    manifest::DesiredObject, mapper::RestMapping, options::ManifestOptions, ownership::Ownership, strategy::Strategy,
};

/// How often an object is read again and written when others keep writing it.
const CONFLICT_TRIES: u32 = 4;
const CONFLICT_WAIT: Duration = Duration::from_millis(10);
/// The groups of CustomResourceDefinitions and APIServices.
const SERVES_KINDS: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// An object to apply, and how.
#[derive(Clone, Copy, Debug)]
pub(in crate::work) struct Application<'a> {
    pub object: &'a DesiredObject,
    pub mapping: &'a RestMapping,
    pub options: &'a ManifestOptions,
    pub ownership: &'a Ownership,
    /// Saves reading the object: it is not expected to exist.
    pub is_new: bool,
}

impl Resources {
    /// Applies an object and returns it as it is then; its data is null if its strategy needs only the metadata. `None` if
    /// it does not exist and is not to be created.
    pub(in crate::work) async fn apply(
        &self,
        application: Application<'_>,
    ) -> Result<Option<DynamicObject>, ApplyError> {
        let strategy = Strategy::of(application.options)?;
        if application.mapping.namespaced && application.object.namespace.is_empty() {
            return Err(ApplyError::NoNamespace(application.object.to_string()));
        }
        let (task, mut is_new) = (Task::new(self, application), application.is_new);
        task.forget_other_strategies(&strategy);
        let mut wait = CONFLICT_WAIT;
        for _ in 1..CONFLICT_TRIES {
            match task.apply(&strategy, is_new).await {
                Err(error) if error.class() == Class::Conflict => tokio::time::sleep(wait).await,
                outcome => return outcome,
            }
            is_new = false;
            wait *= 5;
        }
        task.apply(&strategy, false).await
    }
}

/// One object being applied. Each strategy is a module with one method more.
struct Task<'a> {
    resources: &'a Resources,
    object: &'a DesiredObject,
    ownership: &'a Ownership,
    api: Api<DynamicObject>,
    id: ResourceIdentifier,
}

impl<'a> Task<'a> {
    fn new(resources: &'a Resources, application: Application<'a>) -> Self {
        let Application { object, mapping, ownership, .. } = application;
        let id = object.identifier(mapping);
        let api = api_of(&resources.client, &mapping.resource, &id.namespace);
        Self { resources, object, ownership, api, id }
    }

    async fn apply(&self, strategy: &Strategy, is_new: bool) -> Result<Option<DynamicObject>, ApplyError> {
        match strategy {
            Strategy::Update => self.update(is_new).await.map(Some),
            Strategy::CreateOnly => self.create_only(is_new).await.map(Some),
            Strategy::ServerSideApply(settings) => self.server_side_apply(settings).await.map(Some),
            Strategy::ReadOnly => self.read_only().await,
        }
    }

    /// How the object was left by another strategy does not matter any more.
    fn forget_other_strategies(&self, strategy: &Strategy) {
        if !matches!(strategy, Strategy::Update) {
            self.resources.objects.remove(&self.id);
        }
        if !matches!(strategy, Strategy::ServerSideApply(_)) {
            self.resources.applied_fields.remove(&self.id);
        }
    }

    /// Reads the metadata of the object; `None` if it does not exist.
    async fn metadata(&self) -> Result<Option<ObjectMeta>, ApplyError> {
        let found = self.api.get_metadata_opt(&self.object.name).await;
        let found = found.while_trying_to("get", || self.object.to_string())?;
        Ok(found.map(|object| object.metadata))
    }

    async fn create(&self, object: &DynamicObject) -> Result<DynamicObject, ApplyError> {
        let created = self.api.create(&PostParams::default(), object).await;
        let created = created.while_trying_to("create", || self.object.to_string())?;
        self.expect_new_kinds();
        Ok(created)
    }

    /// Creates the object; `None` if it exists already. Where it does, its creation may also be refused: by validation (the
    /// port or address of a Service is taken), by a quota or by a webhook.
    async fn create_new(&self, object: &DynamicObject) -> Result<Option<DynamicObject>, ApplyError> {
        match self.create(object).await {
            Err(ApplyError::Request(error)) if error.is_conflict() => Ok(None),
            Err(ApplyError::Request(error)) if may_hide_a_conflict(&error) && self.exists().await => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// Whether the object is known to exist.
    async fn exists(&self) -> bool {
        matches!(self.metadata().await, Ok(Some(_)))
    }

    /// Has new kinds looked up soon, if the object is one that was written and brings some.
    fn expect_new_kinds(&self) {
        if SERVES_KINDS.contains(&self.id.group.as_str()) {
            self.resources.mapper.expect_new_kinds();
        }
    }
}

fn may_hide_a_conflict(error: &Error) -> bool {
    matches!(error.code(), Some(400 | 403 | 422))
}

/// The part of an object that was read or written.
fn only_metadata(metadata: ObjectMeta) -> DynamicObject {
    DynamicObject { types: None, metadata, data: Value::Null }
}
