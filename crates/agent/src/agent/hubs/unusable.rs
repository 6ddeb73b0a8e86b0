//! Why a hub cannot be used, with what to do about it.

use std::{path::PathBuf, time::Duration};

use ocm_runtime::client::ClientError;

use crate::{agent::hub_kubeconfig::ConnectionError, registration::join_problem::JoinProblem};

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
    /// It cannot be reached, or does not let the agent join.
    #[error(transparent)]
    Join(#[from] JoinProblem),
    #[error(
        "the hub does not accept cluster {0} (hubAcceptsClient is false): an administrator of the hub accepts it with \
         clusteradm accept --clusters {0}"
    )]
    NotAccepted(String),
    #[error("no answer within {} s: check that the hub is up and that its address is right", .0.as_secs())]
    NoAnswer(Duration),
}
