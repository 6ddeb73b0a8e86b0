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

/// Where an executor is used.
struct Use<'a> {
    /// `None` without one.
    executor: Option<&'a Value>,
    /// The field that it is in.
    path: &'static str,
    /// The namespace of the works; `None` for all.
    namespace: Option<&'a str>,
}

/// What the requester of a work must be allowed to do: to use the executor, if the change sets one. With `validates_nil` a new
/// work without an executor counts as one with the default executor.
pub(super) fn right(change: &Change<&DynamicObject>, validates_nil: bool) -> Result<Option<Right>, Refusal> {
    let executor = |work| executor(work, "/spec/executor");
    let (old, new) = (change.old.map(executor), executor(change.new));
    if old == Some(new) {
        return Ok(None);
    }
    let namespace = Some(change.new.metadata.namespace.as_deref().unwrap_or_default());
    Use { executor: new, path: "spec.executor", namespace }.right(validates_nil)
}

/// The same for a ManifestWorkReplicaSet. The hub creates its works, with a right to all executors, wherever its placements choose
/// clusters: so the author needs the right in all namespaces, and also to change what the executor applies, or where.
pub(super) fn right_of_set(change: &Change<&DynamicObject>, validates_nil: bool) -> Result<Option<Right>, Refusal> {
    if change.old.is_some_and(|old| old.data.get("spec") == change.new.data.get("spec")) {
        return Ok(None);
    }
    let executor = executor(change.new, "/spec/manifestWorkTemplate/executor");
    Use { executor, path: "spec.manifestWorkTemplate.executor", namespace: None }.right(validates_nil)
}

fn executor<'a>(object: &'a DynamicObject, pointer: &str) -> Option<&'a Value> {
    object.data.pointer(pointer).filter(|executor| !executor.is_null())
}

impl Use<'_> {
    fn right(&self, validates_nil: bool) -> Result<Option<Right>, Refusal> {
        let (place, path) = (self.place(), self.path);
        match self.executor {
            Some(executor) => {
                let account = account(executor, path)?;
                let (namespace, name) = (&account.namespace, &account.name);
                let what = format!("apply a work in {place} as executor {namespace}/{name} ({path})");
                Ok(Some(self.may_execute_as(&account, &what)))
            }
            None if validates_nil => {
                let account =
                    ManifestWorkSubjectServiceAccount { namespace: String::new(), name: DEFAULT_EXECUTOR_NAME.into() };
                let what = format!(
                    "apply a work in {place} without {path}, with the rights of the agent: set {path} to a service account of \
                     the managed cluster that may do what the work does"
                );
                Ok(Some(self.may_execute_as(&account, &what)))
            }
            None => Ok(None),
        }
    }

    fn place(&self) -> String {
        self.namespace.map_or_else(|| "all namespaces".to_owned(), |namespace| format!("namespace {namespace}"))
    }

    fn may_execute_as(&self, account: &ManifestWorkSubjectServiceAccount, what: &str) -> Right {
        let user = format!("system:serviceaccount:{}:{}", account.namespace, account.name);
        let place = self.namespace.map_or("all namespaces (by a ClusterRoleBinding)", |_| "that namespace");
        Right {
            refusal: format!(
                "{what}: have an administrator of the hub grant the verb {EXECUTE_AS} on manifestworks in the API group {GROUP} \
                 for the name {user} in {place}"
            ),
            attributes: ResourceAttributes {
                group: Some(GROUP.into()),
                resource: Some("manifestworks".into()),
                verb: Some(EXECUTE_AS.into()),
                namespace: self.namespace.map(str::to_owned),
                name: Some(user),
                ..ResourceAttributes::default()
            },
        }
    }
}

fn account(executor: &Value, path: &str) -> Result<ManifestWorkSubjectServiceAccount, Refusal> {
    let executor = ManifestWorkExecutor::deserialize(executor)
        .map_err(|error| Refusal::invalid(format!("{path} cannot be read: {error}")))?;
    let subject = executor.subject.unwrap_or_default();
    if subject.type_ != ManifestWorkExecutorSubjectType::ServiceAccount {
        let message = format!("{path}.subject.type is {}: set it to ServiceAccount", subject.type_);
        return Err(Refusal::invalid(message));
    }
    let missing = || {
        Refusal::invalid(format!(
            "{path}.subject.serviceAccount is missing: set its namespace and name, or remove {path}"
        ))
    };
    subject.service_account.ok_or_else(missing)
}

#[cfg(test)]
mod tests;
