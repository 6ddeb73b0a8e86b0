//! What an add-on's agent may do on the hub, and condition `RegistrationApplied`, which reports it.

use kube::ResourceExt as _;
use ocm_api::{
    conditions::{addon::REGISTRATION_APPLIED, status},
    reasons::addon::{NIL_REGISTRATION, PERMISSION_CONFIG_PENDING, SET_PERMISSION_APPLIED, SET_PERMISSION_FAILED},
};
use ocm_runtime::{Class, Classified as _, Error, conditions::NewCondition, error::chain};

use super::{AddonController, grants::Grant, observe::Observed, registrations::Registrations};
use crate::{Identity, PermissionBuilder, PermissionConfig, PermissionContext, PermissionError, author};

impl AddonController {
    /// Sets up what the agent may do on the hub, unless that was done within the last ten minutes.
    pub(super) async fn grant(&self, observed: &Observed, desired: &Registrations) -> Result<NewCondition, Error> {
        let permissions = observed.served.options.permissions.as_deref();
        let outcome = self.apply_permissions(observed, desired.identity.as_ref(), permissions).await;
        condition(outcome, desired)
    }

    /// Deletes what a former version of the add-on granted, where this one has no identity.
    pub(super) async fn revoke(&self, observed: &Observed) -> Result<NewCondition, Error> {
        let outcome = self.apply_permissions(observed, None, None).await;
        let revoked = condition(outcome, &Registrations::default())?;
        Ok(if revoked.status == status::TRUE { not_needed() } else { revoked })
    }

    async fn apply_permissions(
        &self,
        observed: &Observed,
        identity: Option<&Identity>,
        permissions: Option<&dyn PermissionConfig>,
    ) -> Result<(), PermissionError> {
        let grant = Grant { uid: observed.addon.uid(), identity: identity.cloned() };
        if self.grants.contains(&observed.key, &grant) {
            return Ok(());
        }
        let on = observed.installation();
        let mut context = PermissionContext::new(&self.client, &on, identity);
        context.is_first = !observed.was_registered();
        match permissions {
            Some(permissions) => {
                let applied = author::call(async { permissions.apply(&context).await }).await;
                applied.unwrap_or_else(|no_answer| Err(PermissionError::Other(no_answer.into())))?;
            }
            None => withdraw_all(&context).await?,
        }
        self.grants.insert(&observed.key, grant);
        Ok(())
    }
}

/// Deletes what a former version of the add-on granted. A manager that may not read Roles has never granted anything.
async fn withdraw_all(context: &PermissionContext<'_>) -> Result<(), PermissionError> {
    match PermissionBuilder::new().apply(context).await {
        Err(PermissionError::Api(error)) if error.is_denied() => Ok(()),
        Err(PermissionError::SubjectNotReady) => Ok(()),
        outcome => outcome,
    }
}

fn condition(outcome: Result<(), PermissionError>, desired: &Registrations) -> Result<NewCondition, Error> {
    match outcome {
        Ok(()) => Ok(granted()),
        Err(PermissionError::Api(error)) if error.class() == Class::Conflict => Err(error),
        Err(error @ PermissionError::SubjectNotReady) => {
            let reason = desired.fault.clone().unwrap_or_else(|| error.to_string());
            let message = format!("The agent gets its permissions on the hub later: {reason}.");
            Ok(NewCondition::is_false(REGISTRATION_APPLIED, PERMISSION_CONFIG_PENDING, message))
        }
        Err(error) => {
            let message = format!("The agent's permissions on the hub could not be set up: {}.", chain(&error));
            Ok(failed(message))
        }
    }
}

fn granted() -> NewCondition {
    let message = "The agent's identity on the hub and its permissions are set up.";
    NewCondition::is_true(REGISTRATION_APPLIED, SET_PERMISSION_APPLIED, message)
}

fn not_needed() -> NewCondition {
    let message = "The add-on's agent needs no identity on the hub.";
    NewCondition::is_true(REGISTRATION_APPLIED, NIL_REGISTRATION, message)
}

pub(super) fn failed(message: String) -> NewCondition {
    NewCondition::is_false(REGISTRATION_APPLIED, SET_PERMISSION_FAILED, message)
}
