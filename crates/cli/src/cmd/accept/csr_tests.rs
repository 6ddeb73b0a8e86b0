//! Tests of [`super`], and the requests of other tests.

use p256::{ecdsa::SigningKey, pkcs8::LineEnding};
use serde_json::json;
use x509_cert::{
    builder::{Builder as _, RequestBuilder},
    der::EncodePem as _,
    name::Name,
};

use super::*;

const TOKEN_USER: (&str, &str) = ("system:bootstrap:ocmhub", "system:bootstrappers:managedcluster");
const ACCOUNT_USER: (&str, &str) = (
    "system:serviceaccount:open-cluster-management:agent-registration-bootstrap",
    "system:serviceaccounts:open-cluster-management",
);

fn pem(subject: &str) -> String {
    let key = SigningKey::from_slice(&[7; 32]).unwrap();
    let subject: Name = subject.parse().unwrap();
    let request = RequestBuilder::new(subject, &key).unwrap().build::<p256::ecdsa::DerSignature>().unwrap();
    request.to_pem(LineEnding::LF).unwrap()
}

fn request(subject: &str, (user, group): (&str, &str)) -> CertificateSigningRequest {
    let mut csr: CertificateSigningRequest = serde_json::from_value(json!({
        "metadata": { "name": "csr", "labels": { "open-cluster-management.io/cluster-name": "c1" } },
        "spec": {
            "request": "", "signerName": "kubernetes.io/kube-apiserver-client",
            "username": user, "groups": [group, "system:authenticated"],
        },
    }))
    .unwrap();
    csr.spec.request.0 = pem(subject).into_bytes();
    csr
}

fn subject_of(cluster: &str, agent: &str) -> String {
    format!(
        "CN=system:open-cluster-management:{cluster}:{agent},O=system:open-cluster-management:{cluster},\
         O=system:open-cluster-management:managed-clusters"
    )
}

/// A pending request of agent `agent` of cluster `c1`.
pub(in crate::cmd::accept) fn pending(name: &str, agent: &str) -> CertificateSigningRequest {
    let mut csr = request(&subject_of("c1", agent), ACCOUNT_USER);
    csr.metadata.name = Some(name.to_owned());
    csr
}

/// The same request after a decision.
pub(in crate::cmd::accept) fn decided(mut csr: CertificateSigningRequest, type_: &str) -> CertificateSigningRequest {
    let status = json!({ "conditions": [{ "type": type_, "status": "True" }] });
    csr.status = Some(serde_json::from_value(status).unwrap());
    csr
}

fn problem(csr: &CertificateSigningRequest) -> String {
    match assess(csr, "c1") {
        Assessment::Unfit(problem) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_of_bootstrapping_agents_are_candidates() {
    for user in [
        TOKEN_USER,
        ACCOUNT_USER,
        (
            "system:serviceaccount:open-cluster-management-hub:grpc-server-sa",
            "system:serviceaccounts:open-cluster-management-hub",
        ),
    ] {
        let expected = Assessment::Candidate {
            requester: "system:open-cluster-management:c1:a".to_owned(),
            state: State::Pending,
        };
        assert_eq!(assess(&request(&subject_of("c1", "a"), user), "c1"), expected, "{user:?}");
    }
}

#[test]
fn the_state_of_a_candidate_is_that_of_its_conditions() {
    for (type_, expected) in [("Approved", State::Approved), ("Denied", State::Denied), ("Failed", State::Failed)] {
        let assessment = assess(&decided(pending("csr", "a"), type_), "c1");
        assert!(matches!(assessment, Assessment::Candidate { state, .. } if state == expected), "{assessment:?}");
    }
}

#[test]
fn requests_of_other_users_are_unfit() {
    let stranger = request(&subject_of("c1", "a"), ("mallory", "system:bootstrappers:managedcluster"));
    assert!(problem(&stranger).contains("mallory"));
    let lookalike = format!("{}-evil", ACCOUNT_USER.0);
    assert!(problem(&request(&subject_of("c1", "a"), (&lookalike, ACCOUNT_USER.1))).contains("-evil"));
    assert!(problem(&request(&subject_of("c1", "a"), (TOKEN_USER.0, "system:bootstrappers"))).contains("bootstrap"));
}

#[test]
fn requests_for_more_than_an_agent_of_the_cluster_may_have_are_unfit() {
    let group = format!("{},O=system:nodes", subject_of("c1", "a"));
    assert!(problem(&request(&group, ACCOUNT_USER)).contains("group system:nodes"));
    assert!(problem(&request(&subject_of("c2", "a"), ACCOUNT_USER)).contains("not that of an agent of the cluster"));
    let no_group = "CN=system:open-cluster-management:c1:a";
    assert!(problem(&request(no_group, ACCOUNT_USER)).contains("lacks group"));
}

#[test]
fn requests_for_other_signers_and_requests_that_cannot_be_read_are_unfit() {
    let mut csr = pending("csr", "a");
    csr.spec.signer_name = "kubernetes.io/kubelet-serving".to_owned();
    assert!(problem(&csr).contains("kubernetes.io/kubelet-serving"));
    let mut csr = pending("csr", "a");
    csr.spec.request.0 = b"nonsense".to_vec();
    assert!(problem(&csr).contains("not a PEM block"));
}

#[test]
fn unfit_requests_that_are_decided_already_are_ignored() {
    let stranger = request(&subject_of("c1", "a"), ("mallory", "system:bootstrappers:managedcluster"));
    assert_eq!(assess(&decided(stranger, "Denied"), "c1"), Assessment::NotOurs);
}

#[test]
fn renewals_and_requests_of_add_ons_are_left_to_the_hub() {
    let agent = "system:open-cluster-management:c1:a";
    let renewal = request(&subject_of("c1", "a"), (agent, "system:open-cluster-management:c1"));
    assert_eq!(assess(&renewal, "c1"), Assessment::NotOurs);
    let mut addon = pending("csr", "a");
    addon.metadata.labels.get_or_insert_default().insert(labels::ADDON_NAME.to_owned(), "hello".to_owned());
    assert_eq!(assess(&addon, "c1"), Assessment::NotOurs);
}
