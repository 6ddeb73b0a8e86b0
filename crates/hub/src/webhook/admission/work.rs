//! ManifestWorks and ManifestWorkReplicaSets: where their manifests are, and who may use which executor.

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::core::DynamicObject;
use ocm_api::{
    authorization::EXECUTE_AS,
    components::DEFAULT_EXECUTOR_NAME,
    work::{
        GROUP,
        v1::{ManifestWorkExecutor, ManifestWorkExecutorSubjectType, ManifestWorkSubjectServiceAccount},
    },
};
use serde::Deserialize as _;
use serde_json::Value;

use super::{Change, access::Right, refusal::Refusal};

/// Where the manifests of a ManifestWork are.
pub(super) const MANIFESTS: &str = "spec.workload.manifests";
/// Where those of a ManifestWorkReplicaSet are.
pub(super) const MANIFESTS_OF_TEMPLATE: &str = "spec.manifestWorkTemplate.workload.manifests";

/// Whether the object is being deleted and this change leaves its spec as it is, as the removal of a finalizer does. Whatever
/// is in it, its deletion must not be held up.
pub(super) fn only_ends(change: &Change<&DynamicObject>) -> bool {
    let is_same = |old: &&DynamicObject| {
        old.metadata.deletion_timestamp.is_some() && old.data.get("spec") == change.new.data.get("spec")
    };
    change.old.as_ref().is_some_and(is_same)
}

/// What the requester must be allowed to do: to use the executor, if the change sets one. With `validates_nil` a new work
/// without an executor counts as one with the default executor.
pub(super) fn right(change: &Change<&DynamicObject>, validates_nil: bool) -> Result<Option<Right>, Refusal> {
    let (old, new) = (change.old.map(executor), executor(change.new));
    if old == Some(new) {
        return Ok(None);
    }
    let namespace = change.new.metadata.namespace.clone().unwrap_or_default();
    match new {
        Some(executor) => {
            let account = account(executor)?;
            let explanation = format!(
                "apply a work in namespace {namespace} as executor {}/{} (spec.executor)",
                account.namespace, account.name
            );
            Ok(Some(may_execute_as(&account, namespace, &explanation)))
        }
        None if validates_nil => {
            let account =
                ManifestWorkSubjectServiceAccount { namespace: String::new(), name: DEFAULT_EXECUTOR_NAME.into() };
            let explanation = format!(
                "apply a work in namespace {namespace} without spec.executor, with the rights of the agent: set spec.executor \
                 to a service account of the managed cluster that may do what the work does"
            );
            Ok(Some(may_execute_as(&account, namespace, &explanation)))
        }
        None => Ok(None),
    }
}

fn executor(work: &DynamicObject) -> Option<&Value> {
    work.data.pointer("/spec/executor").filter(|executor| !executor.is_null())
}

fn account(executor: &Value) -> Result<ManifestWorkSubjectServiceAccount, Refusal> {
    let executor = ManifestWorkExecutor::deserialize(executor)
        .map_err(|error| Refusal::invalid(format!("spec.executor cannot be read: {error}")))?;
    let subject = executor.subject.unwrap_or_default();
    if subject.type_ != ManifestWorkExecutorSubjectType::ServiceAccount {
        let message = format!("spec.executor.subject.type is {}: set it to ServiceAccount", subject.type_);
        return Err(Refusal::invalid(message));
    }
    let missing = || {
        Refusal::invalid(
            "spec.executor.subject.serviceAccount is missing: set its namespace and name, or remove spec.executor",
        )
    };
    subject.service_account.ok_or_else(missing)
}

fn may_execute_as(account: &ManifestWorkSubjectServiceAccount, namespace: String, what: &str) -> Right {
    let user = format!("system:serviceaccount:{}:{}", account.namespace, account.name);
    Right {
        refusal: format!(
            "{what}: have an administrator of the hub grant the verb {EXECUTE_AS} on manifestworks in the API group {GROUP} for \
             the name {user} in that namespace"
        ),
        attributes: ResourceAttributes {
            group: Some(GROUP.into()),
            resource: Some("manifestworks".into()),
            verb: Some(EXECUTE_AS.into()),
            namespace: Some(namespace),
            name: Some(user),
            ..ResourceAttributes::default()
        },
    }
}

#[cfg(test)]
mod tests;
