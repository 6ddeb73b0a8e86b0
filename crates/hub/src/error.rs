//! Errors of the hub's controllers, and their class.

use std::sync::Arc;

use ocm_api::labels;
use ocm_runtime::{Class, Classified};

/// An error of a controller.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request to the API server failed.
    #[error(transparent)]
    Api(#[from] ocm_runtime::Error),
    /// The write was planned on an object that another controller of this hub has written since. Nothing was sent.
    #[error("failed to write {noun}: another controller of this hub has just written it")]
    Stale {
        /// The object, for people.
        noun: String,
    },
    /// The cache does not show an object as the API server has it. Nothing was decided.
    #[error("{noun} has changed, and the watch has not brought the change yet")]
    NotSynced {
        /// The object, for people.
        noun: String,
    },
    /// A work that may be the one that a replica set has on a cluster cannot be read.
    #[error(
        "failed to create a work of {set}: ManifestWork {work} cannot be read, and may be it. The hub's log names the error: correct or delete the ManifestWork"
    )]
    UnreadableWork {
        /// The set.
        set: String,
        /// The work.
        work: String,
    },
    /// An object that the hub needs for one cluster belongs to another cluster, or to all of them.
    #[error("failed to adopt {noun}: its label {label} says that it belongs to {}; delete it, or register the cluster under another name", owner_text(.owner), label = labels::CLUSTER_NAME)]
    Foreign {
        /// The object, for people.
        noun: String,
        /// The value of its label, empty for what all clusters share.
        owner: String,
    },
    /// The API server does not let the hub accept a cluster.
    #[error(
        "failed to accept ManagedCluster {cluster} automatically; the right to do so is granted by: kubectl apply --server-side -f deploy/auto-approval.yaml"
    )]
    MayNotAccept {
        /// The cluster's name.
        cluster: String,
        /// The API server's answer.
        #[source]
        source: ocm_runtime::Error,
    },
    /// The API server does not let the hub use the executor of a replica set.
    #[error(
        "failed to write a work of {set}, whose template has an executor; docs/executors.md describes how to grant the right, and which sets to check before: kubectl apply --server-side -f deploy/replica-set-executors.yaml"
    )]
    MayNotExecute {
        /// The set.
        set: String,
        /// The API server's answer.
        #[source]
        source: ocm_runtime::Error,
    },
    /// The API server does not let the hub read the certificate authorities of client certificates.
    #[error(
        "failed to verify an expired certificate; the right to do so is granted by: kubectl apply --server-side -f deploy/certificate-recovery.yaml"
    )]
    MayNotVerify(#[source] ocm_runtime::Error),
    /// An object that the hub needs for an add-on exists, and was not created for that.
    #[error(
        "failed to create {noun}: it exists without the labels of add-on {addon}, so it belongs to somebody else; delete it, or install the add-on under another name"
    )]
    NotOwned {
        /// The object, for people.
        noun: String,
        /// The add-on's name.
        addon: String,
    },
    /// An object that the hub needs is being deleted, and can be created again only when it is gone.
    #[error("failed to create {noun}: it is being deleted, and is created again when it is gone")]
    BeingDeleted {
        /// The object, for people.
        noun: String,
    },
    /// An error that a condition reports too.
    #[error(transparent)]
    Shared(Arc<Self>),
}

impl From<Arc<Self>> for Error {
    fn from(error: Arc<Self>) -> Self {
        Arc::try_unwrap(error).unwrap_or_else(Self::Shared)
    }
}

/// The result of a step of a controller.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Classified for Error {
    fn class(&self) -> Class {
        match self {
            Self::Api(error)
            | Self::MayNotAccept { source: error, .. }
            | Self::MayNotExecute { source: error, .. }
            | Self::MayNotVerify(error) => error.class(),
            Self::Shared(error) => error.class(),
            Self::Stale { .. } | Self::NotSynced { .. } => Class::Conflict,
            Self::Foreign { .. } | Self::NotOwned { .. } | Self::BeingDeleted { .. } | Self::UnreadableWork { .. } => {
                Class::Transient
            }
        }
    }
}

impl Error {
    /// Whether the object was written by somebody else, so that observing and planning again is enough.
    pub(crate) fn is_conflict(&self) -> bool {
        self.class() == Class::Conflict
    }
}

fn owner_text(owner: &str) -> String {
    if owner.is_empty() { "all clusters".into() } else { format!("cluster {owner}") }
}
