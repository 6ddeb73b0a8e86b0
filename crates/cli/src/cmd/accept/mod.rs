//! `clusteradm accept`: accepts clusters that ask to join. Approves the certificate signing request of the cluster's
//! agent and sets `hubAcceptsClient`.
//!
//! Rules:
//! * a request is only approved if an identity that agents bootstrap with made it, and if the certificate is one of an
//!   agent of this cluster and of nothing else;
//! * a cluster with a reserved name is refused before anything is approved;
//! * if several agents request certificates for one cluster, nothing is changed until the user names one of them;
//!   `--requesters` alone is enough for that;
//! * without an approved request the cluster is marked as accepted, but the command fails, since nothing has joined;
//! * a cluster that joined before needs no request: Kubernetes removes decided ones after an hour;
//! * only what was checked is approved: an object that was replaced or changed after it was read is read again.

mod attempt;
mod csr;
mod flags;
mod plan;
mod run;

pub(crate) use flags::AcceptArgs;
pub(crate) use run::run;
