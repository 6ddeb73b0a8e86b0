//! `clusteradm accept`: lets clusters join that have asked to. Approves the certificate signing request of the cluster's
//! agent and sets `hubAcceptsClient`.
//!
//! What is checked before a request is approved, and what is not done without one:
//! * a request is only approved when an identity that agents bootstrap with made it, and when the certificate would make
//!   its holder an agent of this cluster and nothing else;
//! * a cluster with a reserved name is refused before anything is approved;
//! * when several agents ask in the name of one cluster, nothing is changed until the user says which one they mean;
//!   `--requesters` alone is enough for that;
//! * without an approved request the cluster is marked as accepted, but the command fails, since nothing has joined;
//! * a cluster that joined before needs no request: Kubernetes removes decided ones after an hour;
//! * what was checked is what is approved: an object that was replaced or changed after it was read is read again.

mod attempt;
mod csr;
mod flags;
mod plan;
mod run;

pub(crate) use flags::AcceptArgs;
pub(crate) use run::run;
