//! Gets a client certificate from the hub, renews it, and keeps it in a Secret: the agent's own, or one of an add-on.
//!
//! ```text
//!            no valid certificate, other content wanted beside it, or a fifth of its life left
//!   Idle ──────────────────────────────> CSR on the hub ──> Pending
//!    ^                                                        │ approved and issued
//!    └── Secret written <── Issued <──────────────────────────┘
//! ```
//!
//! The state lives in memory only, and so does a new private key until the Secret holds it. The
//! agent follows the one request it made itself; others of the cluster, or of the add-on, only count towards the limit.
//! After the bootstrap the outcome is a condition of the ManagedCluster or ManagedClusterAddOn, kept until it is written.

mod csr;
mod outcomes;
mod plan;
mod report;
mod secret;
mod wanted;

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
use tracing::{info, warn};

pub(crate) use self::{
    csr::Requests,
    outcomes::Outcomes,
    plan::{Cause, Credentials, Observed, Pending, Plan, State},
    report::{Reporting, failed, is_in_doubt, set_condition},
    wanted::Wanted,
};

/// How often it looks at everything even if nothing changes.
const RESYNC: Duration = Duration::from_secs(300);

/// What can go wrong on the way to a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The key or the request could not be made.
    #[error("failed to make a certificate signing request")]
    Request(#[from] RequestError),
    /// An API server did not do what it was asked to.
    #[error(transparent)]
    Api(#[from] ocm_runtime::Error),
    /// The request came to nothing.
    #[error("{0}; asking for another certificate")]
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

/// Keeps the certificate.
pub(crate) struct Certificate {
    wanted: Arc<Wanted>,
    requests: Requests,
    keeper: Client,
    secrets: Cache<Secret>,
    reporting: Reporting,
    state: Mutex<State>,
    /// The secret as created, until the watch brings it.
    created: Arc<Mutex<Option<Arc<Secret>>>>,
    /// What is still to be said in the condition.
    unreported: Mutex<Option<NewCondition>>,
}

/// What came of a plan.
pub(crate) struct Applied {
    finding: Option<NewCondition>,
    failure: Option<CertificateError>,
    next: Requeue,
}

impl Applied {
    fn done(finding: NewCondition) -> Self {
        Self { finding: Some(finding), failure: None, next: Requeue::OnChange }
    }

    fn failed(finding: NewCondition, failure: CertificateError) -> Self {
        Self { finding: Some(finding), failure: Some(failure), next: Requeue::OnChange }
    }

    fn waiting(next: Requeue) -> Self {
        Self { finding: None, failure: None, next }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A secret, by itself.
pub(crate) fn secret_at(watches: &Informers, key: &ObjectKey) -> Cache<Secret> {
    watches.namespaced(&key.namespace, WatchFilter::named(&key.name))
}

impl Certificate {
    /// The secret is kept on the cluster that `keeper` watches.
    pub(crate) fn new(requests: Requests, keeper: &Informers, wanted: Wanted, reporting: Reporting) -> Self {
        Self {
            requests,
            keeper: keeper.client().clone(),
            secrets: secret_at(keeper, &wanted.secret),
            wanted: Arc::new(wanted),
            reporting,
            state: Mutex::default(),
            created: Arc::default(),
            unreported: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn unreported(&self) -> MutexGuard<'_, Option<NewCondition>> {
        lock(&self.unreported)
    }

    fn secret(&self) -> Option<Arc<Secret>> {
        self.secrets.get(&self.wanted.secret).or_else(|| lock(&self.created).clone())
    }

    /// The pending request; read from the hub when the watch has not brought it yet.
    async fn pending_request(&self) -> Result<Option<Arc<CertificateSigningRequest>>, CertificateError> {
        let Some(name) = self.state().pending_name() else { return Ok(None) };
        match self.requests.cache.named(&name) {
            Some(request) => Ok(Some(request)),
            None => Ok(write::get(&self.requests.api(), &name).await?.map(Arc::new)),
        }
    }

    async fn request(&self) -> Applied {
        match self.create_request().await {
            Ok(pending) => {
                let approval = self.wanted.approval();
                info!(request = pending.name, "asked the hub for a certificate; {approval}");
                *self.state() = State::Pending(pending);
                Applied::waiting(Requeue::OnChange)
            }
            Err(error) => Applied::failed(report::create_failed(&self.wanted, &error), error),
        }
    }

    async fn create_request(&self) -> Result<Pending, CertificateError> {
        let key = PrivateKey::generate();
        let request = csr::request(&self.wanted, &key)?;
        let created = write::create(&self.requests.api(), &request).await?;
        Ok(Pending { name: created.metadata.name.unwrap_or_default(), key: key.to_pem()? })
    }

    /// The certificate stays in memory until the secret holds it: a failure costs no new request.
    async fn save(&self, credentials: Credentials) -> Result<Applied, CertificateError> {
        *self.state() = State::Issued(credentials.clone());
        match self.save_secret(&credentials).await {
            Ok(saved) => {
                *lock(&self.created) = Some(Arc::new(saved.clone()));
                self.secrets.record_write(saved);
                *self.state() = State::Idle;
                info!(secret = %self.wanted.secret, until = %credentials.bundle.not_after(), "saved a new certificate");
                Ok(Applied::done(report::rotated(&self.wanted, &credentials.bundle)))
            }
            Err(error) if error.class() == Class::Conflict => Err(error),
            Err(error) => Ok(Applied::failed(report::save_failed(&self.wanted, &error), error)),
        }
    }

    async fn save_secret(&self, credentials: &Credentials) -> Result<Secret, CertificateError> {
        let key = &self.wanted.secret;
        let secrets = Api::namespaced(self.keeper.clone(), &key.namespace);
        let data = self.wanted.secret_data(credentials);
        Ok(secret::save(&secrets, key, self.secret().as_deref(), &data).await?)
    }

    /// Writes what is to be said.
    async fn write_condition(&self, now: Timestamp) -> Result<(), CertificateError> {
        let Some(finding) = self.unreported().clone() else { return Ok(()) };
        if self.reporting.write(&self.requests.hub, &self.wanted, finding, now).await? {
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
        let (wanted, of_request) = (self.wanted.clone(), self.wanted.secret.clone());
        builder.watches(&self.requests.cache, move |change| {
            wanted.is_asked_for_by(change.object()).then(|| of_request.clone())
        });
        let (created, of_secret) = (self.created.clone(), self.wanted.secret.clone());
        builder.watches(&self.secrets, move |_: Change<'_, Secret>| {
            *lock(&created) = None;
            Some(of_secret.clone())
        });
        builder.every(RESYNC, self.wanted.secret.clone());
    }

    async fn observe(&self, _: &ObjectKey) -> Result<Option<Observed>, CertificateError> {
        let request = self.pending_request().await?;
        Ok(Some(Observed {
            wanted: self.wanted.clone(),
            secret: self.secret(),
            state: self.state().clone(),
            request,
            requests_on_hub: self.requests.count(&self.wanted),
            random: rand::random(),
        }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed, now)
    }

    async fn apply(&self, _: &Observed, plan: Plan) -> Result<Applied, CertificateError> {
        Ok(match plan {
            Plan::Wait => Applied::waiting(Requeue::OnChange),
            Plan::Refused(refusal) => {
                warn!("{refusal}; delete it there, and the agent asks again");
                Applied::done(report::refused(&self.wanted, &refusal))
            }
            Plan::Keep { renew_in, bundle } => Applied {
                finding: self.reporting.found_well(&self.wanted, report::rotated(&self.wanted, &bundle)),
                ..Applied::waiting(Requeue::After(renew_in.min(RESYNC)))
            },
            Plan::Request => self.request().await,
            Plan::Halt => {
                let finding = report::halted(&self.wanted);
                warn!("{}", finding.message);
                Applied::done(finding)
            }
            Plan::Save(credentials) => self.save(credentials).await?,
            Plan::Restart(cause) => {
                *self.state() = State::Idle;
                Applied::failed(report::came_to_nothing(&self.wanted, &cause), CertificateError::Restart(cause))
            }
        })
    }

    async fn report(&self, _: &Observed, applied: Applied, now: Timestamp) -> Result<Requeue, CertificateError> {
        if let Some(finding) = applied.finding {
            self.reporting.learn(&self.wanted, &finding);
            *self.unreported() = Some(finding);
        }
        let written = self.write_condition(now).await;
        match applied.failure {
            Some(failure) => Err(failure),
            None => written.map(|()| applied.next),
        }
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::secrets;
    use serde_json::json;

    use super::*;
    use crate::{
        agent::Names,
        testing::{Mock, conflict},
    };

    const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
    const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

    fn wanted() -> Wanted {
        let names = Names { cluster: "cluster1".into(), agent: "9hdnf".into() };
        Wanted::own(&names, ObjectKey::new("agent", secrets::HUB_KUBECONFIG), None, None)
    }

    #[tokio::test]
    async fn the_condition_is_kept_until_it_is_written() {
        let cluster = json!({"metadata": {"name": "cluster1", "uid": "u", "resourceVersion": "1"}, "spec": {}});
        let mock = Mock::answering(vec![conflict(), (200, cluster.clone())])
            .listing(CLUSTERS, &json!([cluster]))
            .listing(REQUESTS, &json!([]));
        let context = ocm_runtime::Context::new();
        let (hub, now) = (Informers::new(mock.client(), context.clone()), context.clock().now());
        let clusters = hub.all(WatchFilter::named("cluster1"));
        clusters.synced().await;
        let management =
            Informers::new(Mock::default().listing("/api/v1/namespaces/agent/secrets", &json!([])).client(), context);
        let certificate =
            Certificate::new(Requests::of(&hub, "cluster1"), &management, wanted(), Reporting::Cluster(clusters));

        *certificate.unreported() = Some(report::halted(&wanted()));
        let conflict = certificate.write_condition(now).await.unwrap_err();
        assert_eq!(conflict.class(), Class::Conflict);
        assert!(certificate.unreported().is_some());
        certificate.write_condition(now).await.unwrap();
        assert!(certificate.unreported().is_none());
        let patches = mock.asked().into_iter().filter(|asked| asked.starts_with("PATCH"));
        assert_eq!(
            patches.collect::<Vec<_>>(),
            [format!("PATCH {CLUSTERS}/cluster1/status"), format!("PATCH {CLUSTERS}/cluster1/status")]
        );
    }
}
