//! Gets a client certificate from the hub, renews it, and keeps it in a Secret: the agent's own, or one of an add-on.
//!
//! ```text
//!            no valid certificate, other data desired beside it, or a fifth of its life left
//!   Idle ──────────────────────────────> CSR on the hub ──> Pending
//!    ^                                                        │ approved and issued
//!    └── Secret written <── Issued <──────────────────────────┘
//! ```
//!
//! The state is in memory only, and so is a new private key until the Secret holds it. The agent follows only the request that
//! it created itself; others of the cluster, or of the add-on, count towards the limit. After the bootstrap, the outcome is
//! reported in a condition of the ManagedCluster or ManagedClusterAddOn, and kept in memory until it is written. The Secret keeps
//! the former certificate and its key until it holds the new ones: with them an agent that bootstraps again proves who it is
//! (`recovery`).

mod csr;
mod desired;
mod outcomes;
mod plan;
mod recovery;
mod report;
mod secret;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, core::v1::Secret};
use kube::{Api, Client};
use ocm_runtime::{
    Cache, Change, Class, Classified, Controller, ControllerBuilder, Informers, ObjectKey, Requeue,
    conditions::NewCondition,
    informer::WatchFilter,
    pki::{PrivateKey, RequestError},
    write,
};
use tokio::time::Instant;
use tracing::{info, warn};

pub(crate) use self::{
    csr::Requests,
    desired::DesiredCertificate,
    outcomes::Outcomes,
    plan::{Cause, Credentials, Observed, Pending, Plan, State},
    report::{Reporter, failed, lacks_condition, set_condition},
    secret::save as save_secret,
};

/// The resync period.
const RESYNC: Duration = Duration::from_secs(300);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The key or the request could not be created.
    #[error("failed to make a certificate signing request")]
    Request(#[from] RequestError),
    /// A request failed.
    #[error(transparent)]
    Api(#[from] ocm_runtime::Error),
    /// The certificate signing request did not yield a certificate.
    #[error("{0}; requesting another certificate")]
    Restart(Cause),
}

impl Classified for CertificateError {
    fn class(&self) -> Class {
        match self {
            Self::Request(_) => Class::Invalid,
            Self::Api(error) => error.class(),
            Self::Restart(_) => Class::Transient,
        }
    }
}

/// Requests the certificate, renews it and keeps it in its secret.
pub(crate) struct Certificate {
    desired: Arc<DesiredCertificate>,
    requests: Requests,
    keeper: Client,
    secrets: Cache<Secret>,
    reporter: Reporter,
    state: Mutex<State>,
    /// The pending request and since when it is known as approved and not signed.
    unsigned: Mutex<Option<(String, Instant)>>,
    /// The condition that is not written yet.
    unreported: Mutex<Option<NewCondition>>,
}

/// The outcome of `apply`.
pub(crate) struct Applied {
    condition: Option<NewCondition>,
    failure: Option<CertificateError>,
    next: Requeue,
}

impl Applied {
    fn done(condition: NewCondition) -> Self {
        Self { condition: Some(condition), failure: None, next: Requeue::OnChange }
    }

    fn failed(condition: NewCondition, failure: CertificateError) -> Self {
        Self { condition: Some(condition), failure: Some(failure), next: Requeue::OnChange }
    }

    fn waiting(next: Requeue) -> Self {
        Self { condition: None, failure: None, next }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An informer for one secret.
pub(crate) fn secret_at(informers: &Informers, key: &ObjectKey) -> Cache<Secret> {
    informers.namespaced(&key.namespace, WatchFilter::named(&key.name))
}

impl Certificate {
    /// The secret is on the cluster of `keeper`.
    pub(crate) fn new(requests: Requests, keeper: &Informers, desired: DesiredCertificate, reporter: Reporter) -> Self {
        Self {
            requests,
            keeper: keeper.client().clone(),
            secrets: secret_at(keeper, &desired.secret),
            desired: Arc::new(desired),
            reporter,
            state: Mutex::default(),
            unsigned: Mutex::default(),
            unreported: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn unreported(&self) -> MutexGuard<'_, Option<NewCondition>> {
        lock(&self.unreported)
    }

    fn secrets_api(&self) -> Api<Secret> {
        Api::namespaced(self.keeper.clone(), &self.desired.secret.namespace)
    }

    /// The secret, read live if it is not in the cache: another certificate is requested only if it does not exist.
    async fn secret(&self) -> Result<Option<Arc<Secret>>, CertificateError> {
        let key = &self.desired.secret;
        match self.secrets.get(key) {
            Some(secret) => Ok(Some(secret)),
            None => Ok(write::get(&self.secrets_api(), &key.name).await?.map(Arc::new)),
        }
    }

    /// The pending request, read live if it is not in the cache yet.
    async fn pending_request(&self) -> Result<Option<Arc<CertificateSigningRequest>>, CertificateError> {
        let Some(name) = self.state().pending_name() else { return Ok(None) };
        match self.requests.cache.named(&name) {
            Some(request) => Ok(Some(request)),
            None => Ok(write::get(&self.requests.api(), &name).await?.map(Arc::new)),
        }
    }

    /// For how long the request has been known as approved and not signed.
    fn unsigned_for(&self, request: Option<&CertificateSigningRequest>) -> Duration {
        let name =
            request.filter(|request| csr::is_unsigned(request)).and_then(|request| request.metadata.name.clone());
        let mut unsigned = lock(&self.unsigned);
        let known = unsigned.take().filter(|(known, _)| Some(known) == name.as_ref());
        *unsigned = known.or_else(|| Some((name?, Instant::now())));
        unsigned.as_ref().map_or(Duration::ZERO, |(_, since)| since.elapsed())
    }

    async fn request(&self, known: Option<&Secret>) -> Applied {
        match self.create_request(known).await {
            Ok(pending) => {
                let approval = self.desired.approval();
                info!(request = pending.name, "requested a certificate from the hub; {approval}");
                *self.state() = State::Pending(pending);
                Applied::waiting(Requeue::OnChange)
            }
            Err(error) => Applied::failed(report::create_failed(&self.desired, &error), error),
        }
    }

    async fn create_request(&self, known: Option<&Secret>) -> Result<Pending, CertificateError> {
        let key = PrivateKey::generate();
        let request = recovery::with_proof(csr::request(&self.desired, &key)?, &self.desired, known);
        let created = write::create(&self.requests.api(), &request).await?;
        Ok(Pending { name: created.metadata.name.unwrap_or_default(), key: key.to_pem()?, since: None })
    }

    /// The certificate stays in memory until the secret holds it, so a failure takes no new request.
    async fn save(&self, known: Option<&Secret>, credentials: Credentials) -> Result<Applied, CertificateError> {
        *self.state() = State::Issued(credentials.clone());
        let (secret, data) = (&self.desired.secret, self.desired.secret_data(&credentials, known));
        let obsolete = self.desired.obsolete();
        match save_secret(&self.secrets_api(), secret, known, &data, obsolete).await.map_err(CertificateError::from) {
            Ok(saved) => {
                self.secrets.record_write(saved);
                *self.state() = State::Idle;
                info!(secret = %self.desired.secret, until = %credentials.bundle.not_after(), "saved a new certificate");
                Ok(Applied::done(report::rotated(&self.desired, &credentials.bundle)))
            }
            Err(error) if error.class() == Class::Conflict => Err(error),
            Err(error) => Ok(Applied::failed(report::save_failed(&self.desired, &error), error)),
        }
    }

    /// Writes the condition that is not written yet.
    async fn write_condition(&self, now: Timestamp) -> Result<(), CertificateError> {
        let Some(condition) = self.unreported().clone() else { return Ok(()) };
        if self.reporter.write(&self.requests.hub, &self.desired, condition, now).await? {
            *self.unreported() = None;
        }
        Ok(())
    }
}

impl Controller for Certificate {
    const NAME: &'static str = "client-certificate";
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Applied;
    type Error = CertificateError;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        let (desired, of_request) = (self.desired.clone(), self.desired.secret.clone());
        builder.watches(&self.requests.cache, move |change| {
            desired.is_asked_for_by(change.object()).then(|| of_request.clone())
        });
        let of_secret = self.desired.secret.clone();
        builder.watches(&self.secrets, move |_: Change<'_, Secret>| Some(of_secret.clone()));
        builder.every(RESYNC, self.desired.secret.clone());
    }

    async fn observe(&self, _: &ObjectKey) -> Result<Option<Observed>, CertificateError> {
        let request = self.pending_request().await?;
        Ok(Some(Observed {
            desired: self.desired.clone(),
            secret: self.secret().await?,
            state: self.state().clone(),
            unsigned_for: self.unsigned_for(request.as_deref()),
            request,
            requests_on_hub: self.requests.count(&self.desired),
            random: rand::random(),
        }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed, now)
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<Applied, CertificateError> {
        Ok(match plan {
            Plan::Wait => Applied::waiting(Requeue::OnChange),
            Plan::Signing { left } | Plan::Recovering { left } => Applied::waiting(Requeue::After(left)),
            Plan::Unsigned { request } => {
                let condition = report::unsigned(&self.desired, &request);
                warn!("{}", condition.message);
                Applied::done(condition)
            }
            Plan::Overdue { request, since } => {
                let condition = report::overdue(&self.desired, &request, since);
                warn!("{}", condition.message);
                Applied::done(condition)
            }
            Plan::Unrecovered { request, since } => {
                let condition = report::unrecovered(&self.desired, &request, since);
                warn!("{}", condition.message);
                Applied::done(condition)
            }
            Plan::Refused(refusal) => {
                let condition = report::refused(&self.desired, &refusal);
                warn!("{}", condition.message);
                Applied::done(condition)
            }
            Plan::Keep { renew_in, bundle } => Applied {
                condition: self.reporter.confirm(&self.desired, report::rotated(&self.desired, &bundle)),
                ..Applied::waiting(Requeue::After(renew_in.min(RESYNC)))
            },
            Plan::Request => self.request(observed.secret.as_deref()).await,
            Plan::Halt => {
                let condition = report::halted(&self.desired);
                warn!("{}", condition.message);
                Applied::done(condition)
            }
            Plan::Save(credentials) => self.save(observed.secret.as_deref(), credentials).await?,
            Plan::Restart(cause) => {
                *self.state() = State::Idle;
                Applied::failed(report::request_failed(&self.desired, &cause), CertificateError::Restart(cause))
            }
        })
    }

    async fn report(&self, observed: &Observed, applied: Applied, now: Timestamp) -> Result<Requeue, CertificateError> {
        self.state().waits_since(now);
        let condition = applied.condition.map(|condition| report::with_expiry(condition, observed.secret.as_deref()));
        if let Some(condition) = condition {
            self.reporter.record(&self.desired, &condition);
            *self.unreported() = Some(condition);
        }
        let written = self.write_condition(now).await;
        match applied.failure {
            Some(failure) => Err(failure),
            None => written.map(|()| applied.next),
        }
    }
}

#[cfg(test)]
mod tests;
