//! Objects as the hub returns them, with fields this version does not know.

use kube::api::{Api, ApiResource, DynamicObject, ListParams, TypeMeta};
use serde::de::DeserializeOwned;

use crate::{client::Connection, console::Console, failure::Failure};

/// Lists a kind in all namespaces; `what` is its plural for people.
pub(in crate::cmd) async fn all<K>(
    hub: &Connection,
    params: &ListParams,
    what: &str,
) -> Result<Vec<DynamicObject>, Failure>
where
    K: kube::Resource<DynamicType = ()>,
{
    of(hub, Api::all_with(hub.client.clone(), &kind::<K>()), kind::<K>(), params, what).await
}

/// Lists a kind in one namespace, or in all when none is given.
pub(in crate::cmd) async fn of_namespace<K>(
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
    let list = fetch(api, kind, params).await;
    list.map_err(|error| hub.explain(&format!("list {what}"), &error))
}

/// Lists a kind in one namespace, or in all when none is given, for callers that explain errors themselves.
pub(in crate::cmd) async fn try_of_namespace<K>(
    hub: &Connection,
    namespace: Option<&str>,
    params: &ListParams,
) -> kube::Result<Vec<DynamicObject>>
where
    K: kube::Resource<DynamicType = ()>,
{
    let (client, kind) = (hub.client.clone(), kind::<K>());
    let api = match namespace {
        Some(name) => Api::namespaced_with(client, name, &kind),
        None => Api::all_with(client, &kind),
    };
    fetch(api, kind, params).await
}

async fn fetch(api: Api<DynamicObject>, kind: ApiResource, params: &ListParams) -> kube::Result<Vec<DynamicObject>> {
    let list = api.list(params).await?;
    // The items of a list come without their own type.
    let types = TypeMeta { api_version: kind.api_version, kind: kind.kind };
    Ok(list.items.into_iter().map(|object| DynamicObject { types: Some(types.clone()), ..object }).collect())
}

/// The objects as values of their type. A malformed one is left out, with a warning.
pub(in crate::cmd) fn parse<K>(objects: Vec<DynamicObject>, console: &Console) -> Vec<K>
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned,
{
    let parse = |object: DynamicObject| {
        let name = full_name(&object);
        let malformed =
            |error: &_| console.warn(&format!("{} {name} is left out: it is malformed: {error}", K::kind(&())));
        object.try_parse().inspect_err(malformed).ok()
    };
    objects.into_iter().filter_map(parse).collect()
}

fn full_name(object: &DynamicObject) -> String {
    let name = object.metadata.name.clone().unwrap_or_default();
    object.metadata.namespace.as_ref().map_or(name.clone(), |namespace| format!("{namespace}/{name}"))
}

#[cfg(test)]
mod tests {
    use ocm_api::cluster::v1::ManagedCluster;
    use serde_json::{Value, json};

    use super::*;

    fn cluster(name: &str, accepts: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": { "name": name }, "spec": { "hubAcceptsClient": accepts },
        }))
        .unwrap()
    }

    #[test]
    fn a_malformed_object_is_left_out_with_a_warning_and_the_others_are_shown() {
        let (console, captured) = Console::captured();
        let objects = vec![cluster("broken", &json!("perhaps")), cluster("whole", &json!(true))];
        let names: Vec<_> =
            parse::<ManagedCluster>(objects, &console).iter().map(|it| it.metadata.name.clone()).collect();
        assert_eq!(names, [Some("whole".to_owned())]);
        let text = captured.stderr();
        assert!(text.starts_with("warning: ManagedCluster broken is left out: it is malformed: "), "{text}");
    }
}
