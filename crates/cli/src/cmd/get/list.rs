//! Objects as they stand on the hub, with fields this version does not know.

use kube::api::{Api, ApiResource, DynamicObject, ListParams, TypeMeta};
use serde::de::DeserializeOwned;

use crate::{client::Connection, failure::Failure};

/// Lists a kind in all namespaces; `what` is its plural for people.
pub(super) async fn all<K>(hub: &Connection, params: &ListParams, what: &str) -> Result<Vec<DynamicObject>, Failure>
where
    K: kube::Resource<DynamicType = ()>,
{
    of(hub, Api::all_with(hub.client.clone(), &kind::<K>()), kind::<K>(), params, what).await
}

/// Lists a kind in one namespace, or in all when none is given.
pub(super) async fn within<K>(
    hub: &Connection,
    namespace: Option<&str>,
    params: &ListParams,
    what: &str,
) -> Result<Vec<DynamicObject>, Failure>
where
    K: kube::Resource<DynamicType = ()>,
{
    match namespace {
        None => all::<K>(hub, params, what).await,
        Some(name) => {
            let api = Api::namespaced_with(hub.client.clone(), name, &kind::<K>());
            of(hub, api, kind::<K>(), params, what).await
        }
    }
}

fn kind<K: kube::Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

async fn of(
    hub: &Connection,
    api: Api<DynamicObject>,
    kind: ApiResource,
    params: &ListParams,
    what: &str,
) -> Result<Vec<DynamicObject>, Failure> {
    let list = api.list(params).await.map_err(|error| hub.explain(&format!("list {what}"), &error))?;
    // The items of a list come without their own type.
    let types = TypeMeta { api_version: kind.api_version, kind: kind.kind };
    Ok(list.items.into_iter().map(|object| DynamicObject { types: Some(types.clone()), ..object }).collect())
}

/// One malformed object does not hide the others.
pub(super) fn readable<K>(object: DynamicObject) -> Option<K>
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned,
{
    let name = full_name(&object);
    object
        .try_parse()
        .inspect_err(|error| {
            eprintln!("warning: {} {name} is left out: it cannot be read: {error}", K::kind(&()));
        })
        .ok()
}

fn full_name(object: &DynamicObject) -> String {
    let name = object.metadata.name.clone().unwrap_or_default();
    object.metadata.namespace.as_ref().map_or(name.clone(), |namespace| format!("{namespace}/{name}"))
}
