//! Condition `TokenRefreshed` of an add-on.

use jiff::Timestamp;
use ocm_api::{
    conditions::addon::TOKEN_REFRESHED as REFRESHED,
    reasons::addon::{TOKEN_CREATION_FAILED, TOKEN_REFRESHED},
};
use ocm_runtime::{conditions::NewCondition, error::chain};

use super::{TokenError, desired::DesiredToken};

pub(super) fn refreshed(expires: Timestamp) -> NewCondition {
    let message = format!("The add-on's token was refreshed: it expires at {expires}");
    NewCondition::is_true(REFRESHED, TOKEN_REFRESHED, message)
}

/// No token, or no new one.
pub(in crate::registration::addon) fn failed(message: String) -> NewCondition {
    NewCondition::is_false(REFRESHED, TOKEN_CREATION_FAILED, message)
}

pub(super) fn unnamed() -> NewCondition {
    failed(
        "The add-on gets no token: the message of condition TokenInfrastructureReady holds no uid of a service account, such \
         as `(UID: 1234)`. The hub's add-on manager has to write it; bring the hub up to date"
            .into(),
    )
}

pub(super) fn request_failed(error: &TokenError) -> NewCondition {
    failed(format!("Failed to request a token for the add-on: {}; the agent retries", chain(error)))
}

pub(super) fn save_failed(desired: &DesiredToken, error: &TokenError) -> NewCondition {
    let next = match error {
        TokenError::Api(error) if error.is_not_found() => "create the namespace, and the agent retries",
        _ => "the agent retries",
    };
    failed(format!("Failed to save the add-on's token in secret {}: {}; {next}", desired.secret, chain(error)))
}
