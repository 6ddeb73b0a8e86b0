//! What to do about the token. Pure.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use ocm_api::addon::v1alpha1::ManagedClusterAddOn;

use super::{
    Token,
    account::{Account, account},
    claims::{Unusable, Valid, check},
    desired::{DesiredToken, stored},
};

/// The shortest time until the next pass.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// The input of `plan`. No `Debug`: it holds tokens.
pub(crate) struct Observed {
    pub(super) desired: Arc<DesiredToken>,
    /// The add-on on the hub.
    pub(super) addon: Option<Arc<ManagedClusterAddOn>>,
    pub(super) secret: Option<Arc<Secret>>,
    /// A token that is not saved yet.
    pub(super) issued: Option<Token>,
}

/// What to do.
pub(crate) enum Plan {
    /// Wait until the hub has the service account.
    Wait,
    /// The hub does not say which service account it is.
    Unnamed,
    /// The token is valid.
    Keep(Valid),
    /// Request a token, for this reason.
    Request(Unusable),
    /// Save a token.
    Save(Token, Valid),
    /// The token that was issued cannot be used.
    Discard(Unusable),
}

pub(super) fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let Some(addon) = &observed.addon else { return Plan::Wait };
    let uid = match account(addon) {
        Account::NotReady => return Plan::Wait,
        Account::Unnamed => return Plan::Unnamed,
        Account::Ready(uid) => uid,
    };
    match &observed.issued {
        Some(token) => match check(token.reveal(), uid, now) {
            Ok(valid) => Plan::Save(token.clone(), valid),
            Err(cause) => Plan::Discard(cause),
        },
        None => renew(observed, uid, now),
    }
}

fn renew(observed: &Observed, uid: &str, now: Timestamp) -> Plan {
    let Some(secret) = &observed.secret else { return Plan::Request(Unusable::Missing) };
    let Some(token) = stored(secret) else { return Plan::Request(Unusable::Missing) };
    match check(token.reveal(), uid, now) {
        Ok(valid) if observed.desired.is_kept_in(secret, &token) => {
            Plan::Keep(Valid { renew_in: valid.renew_in.max(SHORTEST_PAUSE), ..valid })
        }
        Ok(valid) => Plan::Save(token, valid),
        Err(cause) => Plan::Request(cause),
    }
}
