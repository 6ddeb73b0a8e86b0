//! Why a hub cannot be used, with what to do about it.

use std::{path::PathBuf, time::Duration};

use ocm_runtime::{Error, client::ClientError};

use crate::agent::hub_kubeconfig::ConnectionError;

/// Why a hub cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    /// The bootstrap kubeconfig cannot be read, or names no server.
    #[error(transparent)]
    Kubeconfig(#[from] ConnectionError),
    /// Its credentials cannot be used.
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{server} is also the server of {first}: give one bootstrap kubeconfig for each hub", first = .first.display())]
    SameServer { server: String, first: PathBuf },
    #[error(
        "the hub does not know the credentials in this bootstrap kubeconfig (401): put new ones into it, such as from \
         `clusteradm get token` on that hub"
    )]
    Unauthorized,
    #[error(
        "the user of this bootstrap kubeconfig may not {}: grant the user that on the hub; the ClusterRole \
         open-cluster-management:bootstrap of deploy/hub.yaml has these rights",
        .0.join(", ")
    )]
    Forbidden(Vec<String>),
    #[error(
        "this server is no hub, it does not serve ManagedClusters: name a hub, or install the CRDs there (ocm crds --hub)"
    )]
    NoHub,
    #[error(
        "the hub does not accept cluster {0} (hubAcceptsClient is false): an administrator of the hub accepts it with \
         clusteradm accept --clusters {0}"
    )]
    NotAccepted(String),
    #[error("no answer within {} s: check that the hub is up and that its address is right", .0.as_secs())]
    NoAnswer(Duration),
    /// There is no answer, or one that is none of the above.
    #[error(
        "the hub cannot be asked: check that it is up, and server, certificate authority and proxy in this bootstrap kubeconfig"
    )]
    Failed(#[source] Box<Error>),
}

impl From<Error> for Unusable {
    fn from(error: Error) -> Self {
        match error.code() {
            Some(401) => Self::Unauthorized,
            _ => Self::Failed(Box::new(error)),
        }
    }
}
