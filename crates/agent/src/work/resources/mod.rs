//! Reading, writing and deleting the objects of works on the managed cluster.

mod apply;
mod delete;
mod error;
mod written;

use kube::{
    Api, Client, Resource,
    core::{ApiResource, DynamicObject, DynamicResourceScope, GroupVersionKind, ObjectMeta},
};
use ocm_api::work::v1::{AppliedManifestResourceMeta, ManifestResourceMeta};
use ocm_runtime::{Error, ResultExt as _};

use self::apply::AppliedFields;
pub(super) use self::{
    apply::{Application, apply_configuration, apply_params},
    delete::{Deletion, Held},
    error::{ApplyError, explain},
};
use super::{
    drift::AppliedObjects,
    evaluation::EvaluationPool,
    identifier,
    manifest::DesiredObject,
    mapper::{RestMapper, RestMapping},
    options::ManifestOptions,
    status::ObjectState,
};

/// The objects of the managed cluster. Cheap to clone.
#[derive(Clone)]
pub(super) struct Resources {
    client: Client,
    mapper: RestMapper,
    objects: AppliedObjects,
    applied_fields: AppliedFields,
    pool: EvaluationPool,
}

impl std::fmt::Debug for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resources").finish_non_exhaustive()
    }
}

impl Resources {
    #[cfg(test)]
    pub(super) fn new(client: Client) -> Self {
        Self::remembering(client, AppliedObjects::default())
    }

    /// With what is known of objects that were applied.
    pub(super) fn remembering(client: Client, objects: AppliedObjects) -> Self {
        let applied_fields = AppliedFields::default();
        let pool = EvaluationPool::default();
        Self { mapper: RestMapper::new(client.clone()), client, objects, applied_fields, pool }
    }

    /// What is known of objects that were applied.
    pub(super) fn objects(&self) -> &AppliedObjects {
        &self.objects
    }

    /// Where expressions about objects are evaluated.
    pub(super) fn pool(&self) -> &EvaluationPool {
        &self.pool
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The resource of an object's kind.
    pub(super) async fn mapping(&self, object: &DesiredObject) -> Result<RestMapping, ApplyError> {
        let mapping = self.mapper.mapping(&object.gvk).await?;
        let unknown =
            || ApplyError::UnknownKind { kind: object.gvk.kind.clone(), api_version: object.gvk.api_version() };
        mapping.ok_or_else(unknown)
    }

    /// Reads as much of an object as the work asks for: all of it, or its metadata, unless a watch says that it is as it was
    /// left.
    pub(super) async fn observe(&self, meta: &ManifestResourceMeta, options: &ManifestOptions) -> ObjectState {
        let recorded = identifier::recorded(meta, None);
        let object = match (options.has_rules(), self.objects.known(&identifier::of_manifest(meta))) {
            (true, _) => ObjectState::of_object(self.get(&recorded).await),
            (false, Some(known)) => ObjectState::of(Ok(Some(known))),
            (false, None) => ObjectState::of(self.metadata_of(&recorded).await),
        };
        if object == ObjectState::NotFound {
            // Its resource may be gone as well, with the CRD.
            self.mapper.invalidate(&GroupVersionKind::gvk(&meta.group, &meta.version, &meta.kind));
        }
        object
    }

    async fn get(&self, recorded: &AppliedManifestResourceMeta) -> Result<Option<DynamicObject>, Error> {
        let found = self.api_of(recorded).get_opt(&recorded.name).await;
        found.while_trying_to("get", || identifier::describe(recorded))
    }

    async fn metadata_of(&self, recorded: &AppliedManifestResourceMeta) -> Result<Option<ObjectMeta>, Error> {
        let found = self.api_of(recorded).get_metadata_opt(&recorded.name).await;
        let found = found.while_trying_to("get", || identifier::describe(recorded))?;
        Ok(found.map(|object| object.metadata))
    }

    fn api_of(&self, recorded: &AppliedManifestResourceMeta) -> Api<DynamicObject> {
        let AppliedManifestResourceMeta { group, version, resource, namespace, .. } = recorded;
        api_of(&self.client, &api_resource(group, version, resource), namespace)
    }
}

/// A resource by its place in the API. Its kind need not be known to make requests.
pub(super) fn api_resource(group: &str, version: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, ""), plural)
}

/// The objects of a resource in a namespace; if that is empty, in all, or those without namespaces.
pub(super) fn api_of<K>(client: &Client, resource: &ApiResource, namespace: &str) -> Api<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    match namespace {
        "" => Api::all_with(client.clone(), resource),
        namespace => Api::namespaced_with(client.clone(), namespace, resource),
    }
}
