//! Keeps the token of an add-on's agent in its secret, and renews it.
//!
//! ```text
//!        TokenInfrastructureReady, and no valid token or a fifth of its life left
//!   Idle ─────────────────────────────────────> TokenRequest on the hub ──> Issued
//!    ^                                                                        │
//!    └───────────────────────────── Secret written <──────────────────────────┘
//! ```
//!
//! The hub has the service account, and names its uid in condition `TokenInfrastructureReady` of the add-on. A token of
//! another uid belongs to an account that was deleted, so it is replaced. A new token is in memory until the secret holds it.
//! Tokens are in no log, condition or error, and no type that holds one implements `Debug`.

mod account;
mod claims;
mod desired;
mod plan;
pub(super) mod report;
mod request;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use ocm_api::addon::v1alpha1::ManagedClusterAddOn;
use ocm_runtime::{
    Cache, Change, Class, Classified, Controller, ControllerBuilder, Informers, ObjectKey, Requeue,
    conditions::NewCondition, write,
};
use tracing::{debug, info};

#[cfg(fuzzing)]
pub(super) use self::account::uid_in;
#[cfg(fuzzing)]
pub(super) use self::claims::check;
pub(super) use self::desired::DesiredToken;
use self::{
    account::account,
    claims::{Unusable, Valid},
    plan::{Observed, Plan},
};
use crate::registration::certificate::{Outcomes, lacks_condition, save_secret, secret_at, set_condition};

/// The resync period.
const RESYNC: Duration = Duration::from_secs(300);

/// A token. No `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    fn reveal(&self) -> &String {
        &self.0
    }
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    /// A request failed.
    #[error(transparent)]
    Api(#[from] ocm_runtime::Error),
    /// The answer has no token.
    #[error("the hub's API server answered without a token")]
    NoToken,
    /// The issued token cannot be used.
    #[error("the token that the hub's API server issued cannot be used: {0}")]
    Unusable(Unusable),
}

impl Classified for TokenError {
    fn class(&self) -> Class {
        match self {
            Self::Api(error) => error.class(),
            Self::NoToken | Self::Unusable(_) => Class::Transient,
        }
    }
}

/// Requests the token, renews it and keeps it in its secret.
pub(super) struct AddOnToken {
    desired: Arc<DesiredToken>,
    hub: Client,
    keeper: Client,
    secrets: Cache<Secret>,
    addons: Cache<ManagedClusterAddOn>,
    outcomes: Outcomes,
    /// A token that is not saved yet.
    issued: Mutex<Option<Token>>,
    /// The condition that is not written yet.
    unreported: Mutex<Option<NewCondition>>,
    /// Whether the hub's API server denied the last request.
    was_denied: AtomicBool,
}

/// The outcome of `apply`.
pub(super) struct Applied {
    condition: Option<NewCondition>,
    failure: Option<TokenError>,
    next: Requeue,
}

impl Applied {
    fn done(condition: NewCondition) -> Self {
        Self { condition: Some(condition), failure: None, next: Requeue::OnChange }
    }

    fn failed(condition: impl Into<Option<NewCondition>>, failure: TokenError) -> Self {
        Self { condition: condition.into(), failure: Some(failure), next: Requeue::OnChange }
    }

    fn waiting(next: Requeue) -> Self {
        Self { condition: None, failure: None, next }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AddOnToken {
    /// The secret is on the cluster of `keeper`.
    pub(super) fn new(
        hub: Client,
        addons: Cache<ManagedClusterAddOn>,
        keeper: &Informers,
        desired: DesiredToken,
        outcomes: Outcomes,
    ) -> Self {
        Self {
            hub,
            keeper: keeper.client().clone(),
            secrets: secret_at(keeper, &desired.secret),
            addons,
            desired: Arc::new(desired),
            outcomes,
            issued: Mutex::default(),
            unreported: Mutex::default(),
            was_denied: AtomicBool::default(),
        }
    }

    fn secrets_api(&self) -> Api<Secret> {
        Api::namespaced(self.keeper.clone(), &self.desired.secret.namespace)
    }

    /// The secret, read live if it is not in the cache: another token is requested only if it does not exist.
    async fn secret(&self) -> Result<Option<Arc<Secret>>, TokenError> {
        let key = &self.desired.secret;
        match self.secrets.get(key) {
            Some(secret) => Ok(Some(secret)),
            None => Ok(write::get(&self.secrets_api(), &key.name).await?.map(Arc::new)),
        }
    }

    /// The new token is checked and saved by the next pass.
    async fn request(&self, cause: Unusable) -> Applied {
        debug!(%cause, "requesting a token");
        match request::create_token(&self.hub, &self.desired).await {
            Ok(token) => {
                self.was_denied.store(false, Ordering::Relaxed);
                *lock(&self.issued) = Some(token);
                Applied::waiting(Requeue::After(Duration::ZERO))
            }
            // The right is new as well: the API server may not know it yet.
            Err(error) if is_denied(&error) && !self.was_denied.swap(true, Ordering::Relaxed) => {
                Applied::failed(None, error)
            }
            Err(error) => Applied::failed(report::request_failed(&error), error),
        }
    }

    /// The token stays in memory until the secret holds it, so a failure takes no new request.
    async fn save(&self, known: Option<&Secret>, token: &Token, valid: Valid) -> Result<Applied, TokenError> {
        let (secret, data) = (&self.desired.secret, self.desired.secret_data(token));
        match save_secret(&self.secrets_api(), secret, known, &data, desired::OBSOLETE).await.map_err(TokenError::from)
        {
            Ok(saved) => {
                self.secrets.record_write(saved);
                *lock(&self.issued) = None;
                info!(%secret, until = %valid.expires, "saved a token");
                Ok(Applied { next: pause(valid), ..Applied::done(report::refreshed(valid.expires)) })
            }
            Err(error) if error.class() == Class::Conflict => Err(error),
            Err(error) => Ok(Applied::failed(report::save_failed(&self.desired, &error), error)),
        }
    }

    /// The condition, if it must still be written: a previous process may have been killed after it saved the token, or it
    /// reported a failure that is over.
    fn confirm(&self, valid: Valid) -> Option<NewCondition> {
        let (secret, condition) = (&self.desired.secret, report::refreshed(valid.expires));
        if self.outcomes.is_valid(secret) {
            return None;
        }
        let is_first = self.outcomes.record_initial(secret, &condition);
        let is_lacking = || lacks_condition(&self.addons, &self.desired.addon_key(), condition.type_);
        (!is_first || is_lacking()).then_some(condition)
    }

    /// Writes the condition that is not written yet.
    async fn write_condition(&self, now: Timestamp) -> Result<(), TokenError> {
        let Some(condition) = lock(&self.unreported).clone() else { return Ok(()) };
        let condition = self.outcomes.failure().unwrap_or(condition);
        let addons = Api::namespaced(self.hub.clone(), &self.desired.cluster);
        if set_condition(&addons, &self.addons, &self.desired.addon_key(), condition, now).await? {
            *lock(&self.unreported) = None;
        }
        Ok(())
    }
}

fn is_denied(error: &TokenError) -> bool {
    matches!(error, TokenError::Api(error) if error.is_denied())
}

fn pause(valid: Valid) -> Requeue {
    Requeue::After(valid.renew_in.min(RESYNC))
}

impl Controller for AddOnToken {
    const NAME: &'static str = "addon-token";
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Applied;
    type Error = TokenError;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        let (addon, of_addon) = (self.desired.addon_key(), self.desired.secret.clone());
        builder.watches(&self.addons, move |change| {
            (addon == ObjectKey::of(change.object().as_ref()) && concerns(change)).then(|| of_addon.clone())
        });
        let of_secret = self.desired.secret.clone();
        builder.watches(&self.secrets, move |_: Change<'_, Secret>| Some(of_secret.clone()));
        builder.every(RESYNC, self.desired.secret.clone());
    }

    async fn observe(&self, _: &ObjectKey) -> Result<Option<Observed>, TokenError> {
        Ok(Some(Observed {
            desired: self.desired.clone(),
            addon: self.addons.get(&self.desired.addon_key()),
            secret: self.secret().await?,
            issued: lock(&self.issued).clone(),
        }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed, now)
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<Applied, TokenError> {
        Ok(match plan {
            Plan::Wait => {
                debug!("waiting until the hub has the service account");
                Applied::waiting(Requeue::OnChange)
            }
            Plan::Unnamed => Applied::done(report::unnamed()),
            Plan::Keep(valid) => Applied { condition: self.confirm(valid), ..Applied::waiting(pause(valid)) },
            Plan::Request(cause) => self.request(cause).await,
            Plan::Save(token, valid) => self.save(observed.secret.as_deref(), &token, valid).await?,
            Plan::Discard(cause) => {
                *lock(&self.issued) = None;
                let error = TokenError::Unusable(cause);
                Applied::failed(report::request_failed(&error), error)
            }
        })
    }

    async fn report(&self, _: &Observed, applied: Applied, now: Timestamp) -> Result<Requeue, TokenError> {
        if let Some(condition) = applied.condition {
            self.outcomes.record(&self.desired.secret, condition.clone());
            *lock(&self.unreported) = Some(condition);
        }
        let written = self.write_condition(now).await;
        match applied.failure {
            Some(failure) => Err(failure),
            None => written.map(|()| applied.next),
        }
    }
}

/// Whether a change of the add-on can change what the hub says about the service account.
fn concerns(change: Change<'_, ManagedClusterAddOn>) -> bool {
    match change {
        Change::Updated { old, new } => account(old) != account(new),
        Change::Added(_) => true,
        Change::Deleted(_) => false,
    }
}
