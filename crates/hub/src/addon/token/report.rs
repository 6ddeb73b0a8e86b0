//! Condition `TokenInfrastructureReady` of an add-on.

use jiff::Timestamp;
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    conditions::addon::TOKEN_INFRASTRUCTURE_READY as READY,
    rbac,
    reasons::addon::{TOKEN_INFRASTRUCTURE_APPLY_FAILED, TOKEN_INFRASTRUCTURE_READY},
};
use ocm_runtime::{
    Class, Classified as _, ObjectKey,
    conditions::{self, NewCondition},
    error::chain,
};

use super::apply::{Applied, ConditionChange};
use crate::error::Error;

/// The add-on with what came of its objects.
pub(super) fn reported(addon: &ManagedClusterAddOn, applied: &Applied, now: Timestamp) -> ManagedClusterAddOn {
    let mut new = addon.clone();
    match &applied.condition {
        ConditionChange::None => {}
        ConditionChange::Set(condition) => {
            conditions::set(&mut new.status.get_or_insert_default().conditions, condition.clone(), None, now);
        }
        ConditionChange::Remove(type_) => {
            let known = new.status.iter_mut();
            known.for_each(|status| status.conditions.retain(|condition| condition.type_ != *type_));
        }
    }
    new
}

/// The cluster's agents read the uid out of this text, so it is a contract.
pub(super) fn ready(key: &ObjectKey, uid: &str) -> NewCondition {
    let account = rbac::addon_token_service_account(&key.name);
    let message = format!("ServiceAccount {}/{account} (UID: {uid}) is ready", key.namespace);
    NewCondition::is_true(READY, TOKEN_INFRASTRUCTURE_READY, message)
}

pub(super) fn failed(error: &Error) -> NewCondition {
    let next = match error.class() {
        Class::Refused => {
            "The API server refuses this: change the policy, webhook or quota that does. The hub retries every few minutes."
        }
        _ => "The hub retries.",
    };
    not_ready(format!("The hub could not set up the service account of the add-on's agent: {}. {next}", chain(error)))
}

pub(super) fn refused(cause: &str) -> NewCondition {
    not_ready(format!("The add-on's agent gets no service account on the hub: {cause}."))
}

fn not_ready(message: String) -> NewCondition {
    NewCondition::is_false(READY, TOKEN_INFRASTRUCTURE_APPLY_FAILED, message)
}
