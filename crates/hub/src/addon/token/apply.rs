//! Writes what was planned.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::ResourceExt as _;
use ocm_api::conditions::addon::TOKEN_INFRASTRUCTURE_READY;
use ocm_runtime::{ObjectKey, conditions::NewCondition, error::all, write};
use tracing::info;

use super::{
    TokenController,
    objects::TokenObject,
    observe::{Existing, Need, Observed},
    plan::{Plan, Steps},
    report,
};
use crate::error::{Error, Result};

/// What writing led to.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    pub(super) condition: ConditionChange,
    /// What the condition reports, and what is retried.
    pub(super) failure: Option<Error>,
}

/// What becomes of condition `TokenInfrastructureReady`.
#[derive(Debug, Default, PartialEq)]
pub(super) enum ConditionChange {
    #[default]
    None,
    Set(NewCondition),
    Remove(&'static str),
}

impl TokenController {
    pub(super) async fn carry_out(&self, observed: &Observed, plan: Plan) -> Result<Applied> {
        match plan {
            Plan::Nothing => Ok(Applied::default()),
            Plan::SetUp(steps) => self.set_up(observed, *steps).await,
            Plan::Remove(existing) => {
                self.remove(&observed.key, &existing).await?;
                Ok(Applied { condition: after_removal(&observed.need), failure: None })
            }
        }
    }

    async fn set_up(&self, observed: &Observed, steps: Steps) -> Result<Applied> {
        let failure = match self.run(&observed.key, steps).await {
            Ok(account) => return Ok(Applied { condition: ready(&observed.key, &account), failure: None }),
            Err(error) if error.is_conflict() => return Err(error),
            Err(error) => error,
        };
        // A binding must not grant what somebody else keeps under the names of the add-on's account and role.
        if matches!(failure, Error::NotOwned { .. }) {
            self.delete(observed.existing.binding.as_ref()).await?;
        }
        Ok(Applied { condition: ConditionChange::Set(report::failed(&failure)), failure: Some(failure) })
    }

    async fn run(&self, key: &ObjectKey, steps: Steps) -> Result<Arc<ServiceAccount>> {
        let client = &self.hub.client;
        let account = steps.account.run(client, &self.accounts, &key.name).await?;
        steps.role.run(client, &self.roles, &key.name).await?;
        steps.binding.run(client, &self.bindings, &key.name).await?;
        Ok(account)
    }

    /// The right to create tokens first. One that fails does not keep the others from being deleted.
    async fn remove(&self, key: &ObjectKey, existing: &Existing) -> Result<()> {
        let results = [
            self.delete(existing.binding.as_ref()).await,
            self.delete(existing.role.as_ref()).await,
            self.delete(existing.account.as_ref()).await,
        ];
        all(results)?;
        if existing.account.is_some() {
            info!(addon = %key, "deleted the service account of an add-on's agent, and the right to create its tokens");
        }
        Ok(())
    }

    async fn delete<K: TokenObject>(&self, object: Option<&Arc<K>>) -> Result<()> {
        match object.filter(|object| !write::is_deleting(object.as_ref())) {
            Some(object) => Ok(write::delete(&object.api(&self.hub.client), object.as_ref()).await?),
            None => Ok(()),
        }
    }
}

fn ready(key: &ObjectKey, account: &ServiceAccount) -> ConditionChange {
    ConditionChange::Set(report::ready(key, &account.uid().unwrap_or_default()))
}

fn after_removal(need: &Need) -> ConditionChange {
    match need {
        Need::Refused(cause) => ConditionChange::Set(report::refused(cause)),
        Need::Nothing => ConditionChange::Remove(TOKEN_INFRASTRUCTURE_READY),
        Need::Tokens | Need::Unchanged | Need::Gone => ConditionChange::None,
    }
}
