//! Registration drivers: the ways in which agents prove to the hub who they are.
//!
//! What is the same for all of them is elsewhere: [`cluster`](super::cluster) gives a cluster its namespace and its rights,
//! [`csr`](super::csr) approves certificates. A driver says what is different: which signer's certificates its agents use, who
//! made a request for one, whether a cluster and its first request need an administrator, and what else a cluster needs. A
//! new driver is a file here and an entry in [`Drivers::new`].

pub(crate) mod csr;

use std::{fmt::Debug, future::ready, pin::Pin, sync::Arc};

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::cluster::v1::ManagedCluster;

use self::csr::CsrDriver;
use crate::requester::Requester;
use crate::{
    HubConfig,
    error::{Error, Result},
};

/// What a driver does for a cluster.
pub(crate) type Done<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// One way in which agents prove who they are.
pub(crate) trait Driver: Debug + Send + Sync + 'static {
    /// The signer of its agents' certificates; `None` if they have none.
    fn signer(&self) -> Option<&'static str>;

    /// Who made a request for a certificate of its signer.
    fn requester(&self, request: &CertificateSigningRequest) -> Requester;

    /// Whether this user may have the first certificates of agents approved without an administrator.
    fn may_bootstrap(&self, _user: &str) -> bool {
        false
    }

    /// Whether the hub may accept the cluster without an administrator. `true` for clusters that do not register with this
    /// driver.
    fn accepts(&self, _: &ManagedCluster) -> bool {
        true
    }

    /// Creates what an accepted cluster needs outside of this hub's API. Called whenever the cluster is reconciled, so it
    /// must be idempotent and send nothing if nothing is missing.
    fn create_permissions<'a>(&'a self, _: &'a ManagedCluster) -> Done<'a> {
        Box::pin(ready(Ok(())))
    }

    /// Removes what [`Driver::create_permissions`] created, for a cluster that is denied or being deleted.
    fn clean_up<'a>(&'a self, _: &'a ManagedCluster) -> Done<'a> {
        Box::pin(ready(Ok(())))
    }
}

/// The drivers of this hub. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Drivers(Arc<[Box<dyn Driver>]>);

impl Drivers {
    pub(crate) fn new(config: &HubConfig) -> Self {
        Self::of([Box::new(CsrDriver::new(config)) as _])
    }

    pub(crate) fn of(drivers: impl IntoIterator<Item = Box<dyn Driver>>) -> Self {
        Self(drivers.into_iter().collect())
    }

    /// The driver whose agents use certificates of this signer.
    pub(crate) fn of_signer(&self, signer: &str) -> Option<&dyn Driver> {
        self.0.iter().map(AsRef::as_ref).find(|driver| driver.signer() == Some(signer))
    }

    /// Whether all drivers agree that the hub accepts the cluster without an administrator.
    pub(crate) fn accept(&self, cluster: &ManagedCluster) -> bool {
        self.0.iter().all(|driver| driver.accepts(cluster))
    }

    /// Lets every driver create what the cluster needs; returns the errors of those that failed.
    pub(crate) async fn create_permissions(&self, cluster: &ManagedCluster) -> Vec<Error> {
        let mut errors = Vec::new();
        for driver in &*self.0 {
            errors.extend(driver.create_permissions(cluster).await.err());
        }
        errors
    }

    /// Lets every driver clean up after the cluster, and returns the errors of those that failed.
    pub(crate) async fn clean_up(&self, cluster: &ManagedCluster) -> Vec<Error> {
        let mut errors = Vec::new();
        for driver in &*self.0 {
            errors.extend(driver.clean_up(cluster).await.err());
        }
        errors
    }
}
