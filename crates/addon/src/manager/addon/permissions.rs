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
    pub(super) async fn grant(&self, observed: &Observed, desired: &Registrations) -> Result<Outcome, Error> {
        let permissions = observed.served.options.permissions.as_deref();
        let outcome = match observed.is_accepted() {
            true => self.apply_permissions(observed, desired.identity.as_ref(), permissions).await,
            false => self.withdraw(observed, permissions).await.and(Err(PermissionError::SubjectNotReady)),
        };
        condition(outcome, desired)
    }

    /// Deletes what a former version of the add-on granted, where this one has no identity.
    pub(super) async fn revoke(&self, observed: &Observed) -> Result<Outcome, Error> {
        if !observed.had_registrations() {
            return Ok((not_needed(), None));
        }
        let outcome = self.withdraw(observed, None).await;
        let (revoked, failure) = condition(outcome, &Registrations::default())?;
        Ok(if revoked.status == status::TRUE { (not_needed(), None) } else { (revoked, failure) })
    }

    async fn apply_permissions(
        &self,
        observed: &Observed,
        identity: Option<&Identity>,
        permissions: Option<&dyn PermissionConfig>,
    ) -> Result<(), PermissionError> {
        let Some(permissions) = permissions else { return self.withdraw(observed, None).await };
        let grant = Grant { uid: observed.addon.uid(), identity: identity.cloned(), is_withdrawal: false };
        if self.grants.contains(&observed.key, &grant) {
            return Ok(());
        }
        let on = observed.installation();
        let mut context = PermissionContext::new(&self.client, &on, identity);
        context.is_first = !observed.was_registered();
        apply(permissions, &context).await?;
        self.grants.insert(&observed.key, grant);
        Ok(())
    }

    /// Deletes everything that was granted, once for each installation. What exists is listed in any case: that the status
    /// has no condition proves nothing, since the cluster's agent may write it.
    async fn withdraw(
        &self,
        observed: &Observed,
        permissions: Option<&dyn PermissionConfig>,
    ) -> Result<(), PermissionError> {
        let withdrawal = Grant { uid: observed.addon.uid(), identity: None, is_withdrawal: true };
        if self.grants.contains(&observed.key, &withdrawal) {
            return Ok(());
        }
        let on = observed.installation();
        let context = PermissionContext::new(&self.client, &on, None);
        match (apply(&PermissionBuilder::new(), &context).await, permissions) {
            // A manager that may not read Roles has never granted anything.
            (Err(PermissionError::Api(error)), None) if error.is_denied() => {}
            (Err(PermissionError::SubjectNotReady), None) => {}
            (Err(PermissionError::SubjectNotReady), Some(own)) => match apply(own, &context).await {
                Err(PermissionError::SubjectNotReady) => {}
                outcome => outcome?,
            },
            (outcome, _) => outcome?,
        }
        self.grants.insert(&observed.key, withdrawal);
        Ok(())
    }
}

async fn apply(permissions: &dyn PermissionConfig, context: &PermissionContext<'_>) -> Result<(), PermissionError> {
    let applied = author::call(async { permissions.apply(context).await }).await;
    applied.unwrap_or_else(|no_answer| Err(PermissionError::Other(no_answer.into())))
}

/// The condition, and the class of the failure that it reports.
type Outcome = (NewCondition, Option<Class>);

fn condition(outcome: Result<(), PermissionError>, desired: &Registrations) -> Result<Outcome, Error> {
    match outcome {
        Ok(()) => Ok((granted(), None)),
        Err(PermissionError::Api(error)) if error.class() == Class::Conflict => Err(error),
        Err(error @ PermissionError::SubjectNotReady) => {
            let reason = desired.fault.clone().unwrap_or_else(|| error.to_string());
            let message = format!("The agent gets its permissions on the hub later: {reason}.");
            Ok((NewCondition::is_false(REGISTRATION_APPLIED, PERMISSION_CONFIG_PENDING, message), None))
        }
        Err(error) => {
            let message = format!("The agent's permissions on the hub could not be set up: {}.", chain(&error));
            Ok((failed(message), Some(class_of(&error))))
        }
    }
}

fn class_of(error: &PermissionError) -> Class {
    match error {
        PermissionError::Api(error) => error.class(),
        _ => Class::Transient,
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
