//! Gets the agent's client certificate from the hub, renews it, and keeps it in a Secret.
//!
//! ```text
//!            no valid certificate, other names or kubeconfig, or a fifth of its life left
//!   Idle ──────────────────────────────> CSR on the hub ──> Pending
//!    ^                                                        │ approved and issued
//!    └── Secret written <── Issued <──────────────────────────┘
//! ```
//!
//! The state lives in memory only, and so does a new private key until the Secret holds it. The
//! agent follows the one request it made itself; others of the cluster only count towards the limit.
//! After the bootstrap the outcome is a condition of the ManagedCluster, kept until it is written.

mod csr;
mod plan;
mod secret;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, core::v1::Secret};
use kube::{Api, Client};
use ocm_api::{cluster::v1::ManagedCluster, components, labels, secrets};
use ocm_runtime::{
    Cache, Change, Class, Classified, Controller, Next, ObjectKey, Watches, Wiring, conditions as set,
    conditions::Finding,
    pki::{PrivateKey, RequestError},
    watch::Scope,
    write,
};
use tracing::{info, warn};

pub(crate) use self::plan::{Cause, Credentials, Observed, Pending, Plan, State, Wanted};
use crate::agent::Names;

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
            Self::Api(error) if error.class() == Class::Conflict => Class::Conflict,
            // Waiting for an edit would be wrong: the hub's policies may change, and nobody would tell.
            Self::Api(_) | Self::Restart(_) => Class::Transient,
        }
    }
}

/// Where the certificate's fate is reported.
pub(crate) struct Reporting {
    pub(crate) clusters: Cache<ManagedCluster>,
}

/// Keeps the certificate.
pub(crate) struct Certificate {
    wanted: Arc<Wanted>,
    hub: Client,
    csrs: Cache<CertificateSigningRequest>,
    management: Client,
    secrets: Cache<Secret>,
    namespace: String,
    reporting: Option<Reporting>,
    state: Mutex<State>,
    /// The secret as created, until the watch brings it.
    created: Arc<Mutex<Option<Arc<Secret>>>>,
    /// What is still to be said in the condition.
    unreported: Mutex<Option<Finding>>,
}

/// What came of a plan.
pub(crate) struct Applied {
    finding: Option<Finding>,
    failure: Option<CertificateError>,
    next: Next,
}

impl Applied {
    fn done(finding: Finding) -> Self {
        Self { finding: Some(finding), failure: None, next: Next::Change }
    }

    fn failed(finding: Finding, failure: CertificateError) -> Self {
        Self { finding: Some(finding), failure: Some(failure), next: Next::Change }
    }

    fn waiting(next: Next) -> Self {
        Self { finding: None, failure: None, next }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The requests of a cluster.
pub(crate) fn requests_of(hub: &Watches, cluster: &str) -> Cache<CertificateSigningRequest> {
    hub.all(Scope::labelled(format!("{}={cluster}", labels::CLUSTER_NAME)))
}

/// The secret that holds the credentials.
pub(crate) fn secret_in(management: &Watches, namespace: &str) -> Cache<Secret> {
    management.within(namespace, Scope::named(secrets::HUB_KUBECONFIG))
}

impl Certificate {
    pub(crate) fn new(
        hub: &Watches,
        management: &Watches,
        namespace: &str,
        wanted: Wanted,
        reporting: Option<Reporting>,
    ) -> Self {
        Self {
            csrs: requests_of(hub, &wanted.names.cluster),
            wanted: Arc::new(wanted),
            hub: hub.client().clone(),
            management: management.client().clone(),
            secrets: secret_in(management, namespace),
            namespace: namespace.into(),
            reporting,
            state: Mutex::default(),
            created: Arc::default(),
            unreported: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn unreported(&self) -> MutexGuard<'_, Option<Finding>> {
        lock(&self.unreported)
    }

    fn secret(&self) -> Option<Arc<Secret>> {
        let watched = self.secrets.get(&ObjectKey::new(self.namespace.as_str(), secrets::HUB_KUBECONFIG));
        watched.or_else(|| lock(&self.created).clone())
    }

    fn names(&self) -> &Names {
        &self.wanted.names
    }

    fn requests(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.hub.clone())
    }

    /// The pending request; read from the hub when the watch has not brought it yet.
    async fn pending_request(&self) -> Result<Option<Arc<CertificateSigningRequest>>, CertificateError> {
        let Some(name) = self.state().pending_name() else { return Ok(None) };
        match self.csrs.named(&name) {
            Some(request) => Ok(Some(request)),
            None => Ok(write::get(&self.requests(), &name).await?.map(Arc::new)),
        }
    }

    async fn request(&self) -> Applied {
        match self.create_request().await {
            Ok(pending) => {
                info!(
                    request = pending.name,
                    "asked the hub for a certificate; an admin of the hub approves with: clusteradm accept --clusters {}",
                    self.names().cluster
                );
                *self.state() = State::Pending(pending);
                Applied::waiting(Next::Change)
            }
            Err(error) => Applied::failed(csr::create_failed(&error), error),
        }
    }

    async fn create_request(&self) -> Result<Pending, CertificateError> {
        let key = PrivateKey::generate();
        let request = csr::request(&self.wanted, &key)?;
        let created = write::create(&self.requests(), &request).await?;
        Ok(Pending { name: created.metadata.name.unwrap_or_default(), key: key.to_pem()? })
    }

    /// The certificate stays in memory until the secret holds it: a failure costs no new request.
    async fn save(&self, credentials: Credentials) -> Result<Applied, CertificateError> {
        let finding = csr::rotated(&credentials);
        *self.state() = State::Issued(credentials.clone());
        let secrets = Api::namespaced(self.management.clone(), &self.namespace);
        let known = self.secret();
        let data = self.wanted.secret_data(&credentials);
        let saved = secret::save(&secrets, &self.namespace, known.as_deref(), &data).await?;
        *lock(&self.created) = Some(Arc::new(saved.clone()));
        self.secrets.learn(saved);
        *self.state() = State::Idle;
        info!(until = %credentials.bundle.not_after(), "saved a new certificate for the hub");
        Ok(Applied::done(finding))
    }

    /// Writes what is to be said, unless nobody is to be told.
    async fn write_condition(&self, now: Timestamp) -> Result<(), CertificateError> {
        let (Some(reporting), Some(finding)) = (&self.reporting, self.unreported().clone()) else { return Ok(()) };
        if let Some(cluster) = reporting.clusters.named(&self.names().cluster) {
            let mut new = ManagedCluster::clone(&cluster);
            set::set(&mut new.status.get_or_insert_default().conditions, finding, None, now);
            let patched = write::patch_status(&Api::all(self.hub.clone()), &*cluster, &new).await;
            if let Some(patched) = ocm_runtime::error::found(patched)?.flatten() {
                reporting.clusters.learn(patched);
            }
        } else if !reporting.clusters.is_synced() {
            return Ok(());
        }
        *self.unreported() = None;
        Ok(())
    }
}

impl Controller for Certificate {
    const NAME: &'static str = "cluster-certificate";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Applied;
    type Error = CertificateError;

    fn wire(&self, wiring: &mut Wiring<'_, String>) {
        let key = self.names().cluster.clone();
        let prefix = components::cluster_csr_generate_name(&key);
        let of_change = key.clone();
        wiring.on(&self.csrs, move |change| csr::is_clusters_own(change.object(), &prefix).then(|| of_change.clone()));
        let of_change = key.clone();
        let created = self.created.clone();
        wiring.on(&self.secrets, move |_: Change<'_, Secret>| {
            *lock(&created) = None;
            Some(of_change.clone())
        });
        wiring.every(RESYNC, key);
    }

    async fn observe(&self, _: &String) -> Result<Option<Observed>, CertificateError> {
        let request = self.pending_request().await?;
        Ok(Some(Observed {
            wanted: self.wanted.clone(),
            secret: self.secret(),
            state: self.state().clone(),
            request,
            requests_on_hub: self.csrs.list().iter().filter(|request| csr::counts(request)).count(),
            random: rand::random(),
        }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed, now)
    }

    async fn apply(&self, _: &Observed, plan: Plan) -> Result<Applied, CertificateError> {
        Ok(match plan {
            Plan::Wait => Applied::waiting(Next::Change),
            Plan::Denied(request) => {
                warn!(
                    request,
                    "the hub has denied the certificate: delete the request there, and the agent asks again"
                );
                Applied::waiting(Next::Change)
            }
            Plan::Keep { renew_in } => Applied::waiting(Next::After(renew_in.min(RESYNC))),
            Plan::Request => self.request().await,
            Plan::Halt => {
                warn!(
                    "the hub holds too many certificate signing requests of this cluster: approve or delete them there"
                );
                Applied::done(csr::halted())
            }
            Plan::Save(credentials) => self.save(credentials).await?,
            Plan::Restart(cause) => {
                *self.state() = State::Idle;
                Applied::failed(csr::came_to_nothing(&cause), CertificateError::Restart(cause))
            }
        })
    }

    async fn report(&self, _: &Observed, applied: Applied, now: Timestamp) -> Result<Next, CertificateError> {
        if let Some(finding) = applied.finding {
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
    use serde_json::json;

    use super::*;
    use crate::testing::{Mock, conflict};

    const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
    const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

    fn wanted() -> Wanted {
        let names = Names { cluster: "cluster1".into(), agent: "9hdnf".into() };
        Wanted { names, kubeconfig: None, expiration_seconds: None }
    }

    #[tokio::test]
    async fn the_condition_is_kept_until_it_is_written() {
        let cluster = json!({"metadata": {"name": "cluster1", "uid": "u", "resourceVersion": "1"}, "spec": {}});
        let mock = Mock::answering(vec![conflict(), (200, cluster.clone())])
            .listing(CLUSTERS, &json!([cluster]))
            .listing(REQUESTS, &json!([]));
        let context = ocm_runtime::Context::new();
        let (hub, now) = (Watches::new(mock.client(), context.clone()), context.clock().now());
        let clusters = hub.all(Scope::named("cluster1"));
        clusters.synced().await;
        let management =
            Watches::new(Mock::default().listing("/api/v1/namespaces/agent/secrets", &json!([])).client(), context);
        let certificate = Certificate::new(&hub, &management, "agent", wanted(), Some(Reporting { clusters }));

        *certificate.unreported() = Some(csr::halted());
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
