//! Whether an executor could grant what an object of RBAC grants.
//!
//! The agent itself may `escalate` and `bind`, so the API server would let it write any role. It is asked, by a dry run in the
//! executor's name, whether it would let the executor.

use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
    core::Request,
};
use ocm_runtime::{Result, ResultExt as _};

use super::subject::ServiceAccount;
use crate::work::{
    manifest::DesiredObject,
    mapper::RestMapping,
    ownership::Ownership,
    resources::{ApplyError, api_of},
    update,
};

const GROUP: &str = "rbac.authorization.k8s.io";
const RESOURCES: [&str; 4] = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"];
const IMPERSONATE_USER: &str = "impersonate-user";

/// The API server's message if it forbids the account to create the object; `None` if it does not, or if the object is not
/// one of RBAC. An object that exists is no obstacle: the rights are checked first.
pub(super) async fn check(
    client: &Client,
    account: &ServiceAccount,
    object: &DesiredObject,
    mapping: &RestMapping,
) -> Result<Option<String>, ApplyError> {
    if !grants_rights(mapping) {
        return Ok(None);
    }
    // Without an owner, which the executor need not be able to set.
    let desired = update::to_create(object, &Ownership::Orphaned(Vec::new()))?;
    match dry_run(client, account, &desired, mapping).await {
        Ok(_) => Ok(None),
        Err(error) if error.is_conflict() => Ok(None),
        Err(error) => match error.status() {
            Some(status) if status.code == 403 && !status.message.contains(" cannot impersonate ") => {
                Ok(Some(status.message.clone()))
            }
            _ => Err(error.into()),
        },
    }
}

fn grants_rights(mapping: &RestMapping) -> bool {
    mapping.resource.group == GROUP && RESOURCES.contains(&mapping.resource.plural.as_str())
}

/// Kubernetes adds the groups of a service account to its name.
async fn dry_run(
    client: &Client,
    account: &ServiceAccount,
    object: &DynamicObject,
    mapping: &RestMapping,
) -> Result<DynamicObject> {
    let created = async {
        let mut request = Request::new(url(client, object, mapping))
            .create(&PostParams { dry_run: true, ..PostParams::default() }, body(object)?)
            .map_err(kube::Error::BuildRequest)?;
        let user = account
            .user()
            .try_into()
            .map_err(|error: http::header::InvalidHeaderValue| kube::Error::HttpError(error.into()))?;
        request.headers_mut().insert(IMPERSONATE_USER, user);
        client.request(request).await
    };
    created.await.while_trying_to("check, by a dry run as the executor, whether it may create", || {
        object.metadata.name.clone().unwrap_or_default()
    })
}

fn body(object: &DynamicObject) -> Result<Vec<u8>, kube::Error> {
    serde_json::to_vec(object).map_err(kube::Error::SerdeError)
}

fn url(client: &Client, object: &DynamicObject, mapping: &RestMapping) -> String {
    let namespace = object.metadata.namespace.as_deref().filter(|_| mapping.namespaced);
    let api: Api<DynamicObject> = api_of(client, &mapping.resource, namespace.unwrap_or_default());
    api.resource_url().to_owned()
}
