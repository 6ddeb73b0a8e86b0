//! The executor of a work: a service account of the managed cluster whose rights limit what the work may do.
//!
//! The agent writes with its own identity whether or not a work has an executor. Before it applies an object, it asks the
//! managed cluster whether the executor might do the same: one SubjectAccessReview for each verb, and for objects of RBAC,
//! which can grant more than their author has, a dry run in the executor's name. Deletions are not checked: what an executor
//! was once allowed to apply can be removed after it has lost its rights.

mod denied;
mod error;
mod escalation;
mod review;
mod subject;

use kube::Client;
use ocm_api::work::v1::{ManifestResourceMeta, ManifestWork};

pub(super) use self::error::ExecutorError;
use self::{denied::Denied, review::Access, subject::ServiceAccount};
use super::{manifest::DesiredObject, mapper::RestMapping, resources::ApplyError};

/// The executors of works. Cheap to clone.
#[derive(Clone)]
pub(super) struct Executors {
    client: Client,
}

impl std::fmt::Debug for Executors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executors").finish_non_exhaustive()
    }
}

impl Executors {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// The executor of a work; `None` if it has none, and everything that the agent may do is allowed.
    pub(super) fn of(&self, work: &ManifestWork) -> Option<Executor<'_>> {
        let account = work.spec.executor.as_ref().map(ServiceAccount::of)?;
        Some(Executor { executors: self, account })
    }
}

/// The executor of one work.
#[derive(Debug)]
pub(super) struct Executor<'a> {
    executors: &'a Executors,
    /// The error is that of the spec.
    account: Result<ServiceAccount, ExecutorError>,
}

impl Executor<'_> {
    /// Fails unless the executor may write this object, and delete it if it is deleted with the work.
    pub(super) async fn authorize(
        &self,
        meta: &ManifestResourceMeta,
        object: &DesiredObject,
        mapping: &RestMapping,
        is_owned: bool,
    ) -> Result<(), ApplyError> {
        let account = self.account.as_ref().map_err(Clone::clone)?;
        if mapping.namespaced && object.namespace.is_empty() {
            return Err(ApplyError::NoNamespace(object.to_string()));
        }
        let access = Access::new(meta, is_owned);
        let denied = |cause| ApplyError::from(ExecutorError::from(Box::new(Denied::new(account, &access, cause))));
        if let Some(verb) = review::first_denied(&self.executors.client, account, &access).await? {
            return Err(denied(denied::Cause::Verb(verb)));
        }
        match escalation::check(&self.executors.client, account, object, mapping).await? {
            Some(message) => Err(denied(denied::Cause::Escalation(message))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
