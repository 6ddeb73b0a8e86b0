//! What fuzz targets reach of recovery. Only builds by cargo-fuzz have it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::{
    api::{certificates::v1::CertificateSigningRequest, core::v1::Namespace},
    apimachinery::pkg::apis::meta::v1::Time,
};
use ocm_api::cluster::v1::{ManagedCluster, ManagedClusterSpec};
use ocm_runtime::pki::parse_request;

use super::{Candidate, Facts, Proof, RecoveryPolicy, Refusal, decide};
use crate::requester::Requester;

/// Whether a hub with these certificate authorities (PEM), whose policy is for all, approves the request.
pub fn recovers(request: &CertificateSigningRequest, namespace: &Namespace, authorities: &str, now: Timestamp) -> bool {
    let Ok(subject) = parse_request(&request.spec.request.0) else { return false };
    let mut cluster = ManagedCluster::new("c1", ManagedClusterSpec::default());
    cluster.metadata.creation_timestamp = Some(Time(Timestamp::MIN));
    let proof = Proof::of(request).ok_or(Refusal::NoProof).and_then(|proof| Ok(proof?));
    let candidate = proof.map(|proof| Candidate {
        proof,
        cluster,
        authorities: authorities.into(),
        namespace: Some(namespace.clone()),
        may_renew: true,
    });
    let facts = Facts {
        policy: RecoveryPolicy::default(),
        cluster: "c1".into(),
        request: Arc::new(request.clone()),
        requester: Requester::default(),
        subject,
        candidate,
    };
    decide(&facts, now).is_ok()
}
