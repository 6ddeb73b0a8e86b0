use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::certificates::v1::{
        CertificateSigningRequestCondition, CertificateSigningRequestSpec, CertificateSigningRequestStatus,
    },
};
use ocm_api::{labels, signers};
use ocm_runtime::pki::{PrivateKey, RequestError, Subject};
use serde_json::json;

use super::*;
use crate::{
    registration::{
        driver::{Driver, Drivers, csr::CsrDriver},
        requester::Unapproved,
    },
    testing::now,
};

const AGENT: &str = "system:open-cluster-management:c1:agent1";
const OWN: &str = "system:open-cluster-management:c1";
const ALL: &str = "system:open-cluster-management:managed-clusters";

fn request(user: &str, groups: &[&str]) -> CertificateSigningRequest {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    let pem = PrivateKey::generate().request(&Subject::new(user, groups)).unwrap();
    let mut request = CertificateSigningRequest {
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem.into_bytes()),
            signer_name: signers::KUBE_API_SERVER_CLIENT.into(),
            username: Some(AGENT.into()),
            uid: Some("u".into()),
            groups: Some(vec![OWN.into(), ALL.into(), "system:authenticated".into()]),
            ..CertificateSigningRequestSpec::default()
        },
        ..CertificateSigningRequest::default()
    };
    request.metadata.labels = Some(BTreeMap::from([(labels::CLUSTER_NAME.to_owned(), "c1".to_owned())]));
    request.metadata.resource_version = Some("7".into());
    request
}

fn judged(request: &CertificateSigningRequest) -> Result<Purpose, Unapproved> {
    CsrDriver::default().requester(request).purpose(request, false)
}

/// As a user who may bootstrap agents.
fn bootstrapped(mut request: CertificateSigningRequest) -> Result<Purpose, Unapproved> {
    request.spec.username = Some("system:bootstrap:ocmhub".into());
    CsrDriver::default().requester(&request).purpose(&request, true)
}

#[test]
fn an_agents_request_for_its_own_identity_is_a_renewal_with_or_without_the_common_group() {
    assert!(judged(&request(AGENT, &[OWN, ALL])).is_ok());
    assert!(judged(&request(AGENT, &[OWN])).is_ok());
}

#[test]
fn other_groups_make_it_none() {
    for groups in [&[] as &[&str], &[ALL], &[OWN, ALL, "system:masters"], &["system:open-cluster-management:c2", ALL]] {
        assert!(matches!(judged(&request(AGENT, groups)), Err(Unapproved::NotAnAgent(_))), "{groups:?}");
    }
}

#[test]
fn a_user_that_is_no_agent_of_the_cluster_makes_it_none() {
    for user in [
        "system:open-cluster-management:c2:agent1",
        "system:open-cluster-management:c1",
        "system:open-cluster-management:c1:",
        "system:open-cluster-management:c1:a:b",
        "system:admin",
        "",
    ] {
        let mut request = request(user, &[OWN]);
        request.spec.username = Some(user.into());
        assert!(matches!(judged(&request), Err(Unapproved::NotAnAgent(_))), "{user}");
    }
}

#[test]
fn a_requester_other_than_the_identity_makes_it_none() {
    for user in [Some("system:open-cluster-management:c1:agent2"), Some("system:serviceaccount:ocm:bootstrap"), None] {
        let mut request = request(AGENT, &[OWN]);
        request.spec.username = user.map(str::to_owned);
        assert!(matches!(judged(&request), Err(Unapproved::NotByItself(_))), "{user:?}");
    }
}

#[test]
fn the_label_must_be_there_and_name_the_cluster_of_the_subject() {
    let mut unlabelled = request(AGENT, &[OWN]);
    unlabelled.metadata.labels = None;
    assert!(matches!(judged(&unlabelled), Err(Unapproved::NoCluster)));
    let mut other = request(AGENT, &[OWN]);
    other.labels_mut().insert(labels::CLUSTER_NAME.into(), "c2".into());
    assert!(matches!(judged(&other), Err(Unapproved::NotAnAgent(_))));
}

#[test]
fn an_unreadable_request_is_none() {
    let mut unreadable = request(AGENT, &[OWN]);
    unreadable.spec.request = ByteString(b"-----BEGIN hello".to_vec());
    assert!(matches!(judged(&unreadable), Err(Unapproved::Unreadable(_))));
}

/// A driver whose requests are made by a server in the name of others.
#[derive(Debug)]
struct Proxied;

impl Driver for Proxied {
    fn signer(&self) -> Option<&'static str> {
        Some("example.com/proxied")
    }

    fn requester(&self, request: &CertificateSigningRequest) -> Requester {
        Requester { user: request.annotations().get("user").cloned().unwrap_or_default(), ..Requester::default() }
    }
}

#[test]
fn the_signer_decides_which_driver_knows_the_requester_and_of_an_unknown_signer_none_does() {
    let drivers = Drivers::of([Box::new(CsrDriver::default()) as Box<dyn Driver>, Box::new(Proxied)]);
    let mut request = request(AGENT, &[OWN]);
    let requester = |request: &CertificateSigningRequest| {
        Some(drivers.of_signer(&request.spec.signer_name)?.requester(request).user)
    };
    request.annotations_mut().insert("user".into(), "proxied".into());
    assert_eq!(requester(&request).as_deref(), Some(AGENT));
    request.spec.signer_name = "example.com/proxied".into();
    assert_eq!(requester(&request).as_deref(), Some("proxied"));
    request.spec.signer_name = "kubernetes.io/kubelet-serving".into();
    assert_eq!(requester(&request), None);
}

#[test]
fn a_second_request_behind_or_before_the_first_makes_it_none() {
    let (own, other) = (request(AGENT, &[OWN]), request("system:open-cluster-management:c2:a", &[OWN]));
    for (first, second) in [(&own, &other), (&other, &own)] {
        let mut both = own.clone();
        both.spec.request = ByteString([&first.spec.request.0[..], &second.spec.request.0[..]].concat());
        assert!(matches!(judged(&both), Err(Unapproved::Unreadable(RequestError::SeveralBlocks))));
    }
}

#[test]
fn a_request_that_is_approved_or_denied_is_decided() {
    for type_ in ["Approved", "Denied"] {
        let mut request = request(AGENT, &[OWN]);
        let condition = CertificateSigningRequestCondition { type_: type_.into(), ..Default::default() };
        request.status =
            Some(CertificateSigningRequestStatus { conditions: Some(vec![condition]), ..Default::default() });
        assert!(is_decided(&request));
    }
}

#[test]
fn the_review_is_about_the_requester_with_all_that_is_known_of_them() {
    let spec = CsrDriver::default().requester(&request(AGENT, &[OWN])).review(renewal());
    assert_eq!((spec.user.as_deref(), spec.uid.as_deref()), (Some(AGENT), Some("u")));
    assert_eq!(spec.groups.unwrap().len(), 3);
    let attributes = serde_json::to_value(spec.resource_attributes).unwrap();
    let expected = json!({"group": "register.open-cluster-management.io", "resource": "managedclusters",
        "subresource": "clientcertificates", "verb": "renew"});
    assert_eq!(attributes, expected);
}

fn observed(grounds: Grounds) -> Observed {
    Observed { request: Arc::new(request(AGENT, &[OWN])), grounds }
}

#[test]
fn only_who_may_renew_is_approved_and_the_approval_is_bound_to_what_was_read() {
    let observed = |may_renew| observed(Grounds::Renewal { may_renew });
    assert_eq!(CsrController::plan(&observed(false), now()), None);
    let patch = CsrController::plan(&observed(true), now()).unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    let condition = &patch["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("Approved"), &json!("True")));
    assert_eq!(condition["reason"], "AutoApprovedByHubCSRApprovingController");
}

#[test]
fn a_user_who_may_bootstrap_may_ask_for_an_agent_of_the_cluster_in_the_label_and_for_nothing_else() {
    assert_eq!(bootstrapped(request(AGENT, &[OWN, ALL])).unwrap(), Purpose::Bootstrap { cluster: "c1".into() });
    for groups in [&[] as &[&str], &[ALL], &[OWN, "system:masters"], &["system:open-cluster-management:c2"]] {
        assert!(matches!(bootstrapped(request(AGENT, groups)), Err(Unapproved::NotAnAgent(_))), "{groups:?}");
    }
    for user in ["system:admin", "system:open-cluster-management:c2:agent1", "system:open-cluster-management:c1:a:b"] {
        assert!(matches!(bootstrapped(request(user, &[OWN])), Err(Unapproved::NotAnAgent(_))), "{user}");
    }
    let mut unlabelled = request(AGENT, &[OWN]);
    unlabelled.metadata.labels = None;
    assert!(matches!(bootstrapped(unlabelled), Err(Unapproved::NoCluster)));
}

#[test]
fn an_agent_that_may_bootstrap_renews_all_the_same() {
    let request = request(AGENT, &[OWN]);
    assert_eq!(CsrDriver::default().requester(&request).purpose(&request, true).unwrap(), Purpose::Renewal);
}

#[test]
fn a_first_certificate_is_approved_for_an_accepted_cluster_only() {
    let approved =
        |is_cluster_accepted| CsrController::plan(&observed(Grounds::Bootstrap { is_cluster_accepted }), now());
    assert_eq!(approved(false), None);
    let patch = approved(true).unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(patch["status"]["conditions"][0]["reason"], "AutoApprovedByHubCSRApprovingController");
}
