//! The executor of a work: a service account of the managed cluster whose rights limit what the work may do.
//!
//! The agent writes with its own identity whether or not a work has an executor. Before it applies an object, it asks the
//! managed cluster whether the executor might do the same: one SubjectAccessReview for each verb, and for objects of RBAC,
//! which can grant more than their author has, a dry run in the executor's name. Deletions are not checked: what an executor
//! was once allowed to apply can be removed after it has lost its rights.
//!
//! With the feature gate ExecutorValidatingCaches, answers are kept until RBAC objects change (`cached`). Dry runs are not.

mod answers;
mod cached;
mod denied;
mod error;
mod escalation;
mod rbac;
mod review;
mod subject;

use std::sync::Arc;

use kube::{Client, ResourceExt as _};
use ocm_api::work::v1::{ManifestResourceMeta, ManifestWork};
use ocm_runtime::{Context, Informers, Queue, Result};

pub(super) use self::error::ExecutorError;
use self::{cached::CachedAnswers, denied::Denied, escalation::Grant, review::Access, subject::ServiceAccount};
use super::{resources::ApplyError, strategy::Strategy, works::Target};

/// The executors of works. Cheap to clone.
#[derive(Clone)]
pub(super) struct Executors {
    client: Client,
    /// With the feature gate.
    cached: Option<Arc<CachedAnswers>>,
}

impl std::fmt::Debug for Executors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executors").finish_non_exhaustive()
    }
}

impl Executors {
    pub(super) fn new(client: Client) -> Self {
        Self { client, cached: None }
    }

    /// The same with answers that are kept until RBAC objects change, which `informers` watch.
    pub(super) fn cached(client: Client, informers: &Informers, context: &Context) -> Self {
        Self { client, cached: Some(CachedAnswers::new(informers, context)) }
    }

    /// Has the works added to this queue for whose executors rights have changed.
    pub(super) fn notify(&self, works: Queue<String>) {
        if let Some(cached) = &self.cached {
            cached.notify(works);
        }
    }

    /// The executor of a work; `None` if it has none, and everything that the agent may do is allowed.
    pub(super) fn of(&self, work: &ManifestWork) -> Option<Executor<'_>> {
        let account = work.spec.executor.as_ref().map(ServiceAccount::of)?;
        Some(Executor { executors: self, account, work: work.name_any() })
    }

    /// The first verb that an executor may not use for an object of a work.
    async fn first_denied(
        &self,
        account: &ServiceAccount,
        access: &Access,
        work: &str,
    ) -> Result<Option<&'static str>> {
        let asked = review::first_denied(&self.client, account, access);
        match &self.cached {
            Some(cached) => cached.first_denied(account, access, work, asked).await,
            None => asked.await,
        }
    }
}

/// The executor of one work.
#[derive(Debug)]
pub(super) struct Executor<'a> {
    executors: &'a Executors,
    /// The error is that of the spec.
    account: Result<ServiceAccount, ExecutorError>,
    work: String,
}

impl Executor<'_> {
    /// Fails unless the executor may write this object, and delete it if it is deleted with the work.
    pub(super) async fn authorize(&self, meta: &ManifestResourceMeta, target: &Target) -> Result<(), ApplyError> {
        let account = self.account.as_ref().map_err(Clone::clone)?;
        let Target { object, mapping, is_owned, options } = target;
        if mapping.namespaced && object.namespace.is_empty() {
            return Err(ApplyError::NoNamespace(object.to_string()));
        }
        let access = Access::new(meta, *is_owned);
        let denied = |cause| ApplyError::from(ExecutorError::from(Box::new(Denied::new(account, &access, cause))));
        if let Some(verb) = self.executors.first_denied(account, &access, &self.work).await? {
            return Err(denied(denied::Cause::Verb(verb)));
        }
        let strategy = Strategy::of(options).ok();
        let grant = Grant { object, mapping, strategy: strategy.as_ref() };
        match escalation::check(&self.executors.client, account, grant).await? {
            Some(message) => Err(denied(denied::Cause::Escalation(message))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
