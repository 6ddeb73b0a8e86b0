use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::{
    ByteString, api::certificates::v1::CertificateSigningRequestSpec, apimachinery::pkg::apis::meta::v1::Time,
};
use ocm_api::{
    identities, labels,
    recovery::{CERTIFICATE_ANNOTATION, RECORD_ANNOTATION, SIGNATURE_ANNOTATION, statement},
    signers,
};
use ocm_runtime::pki::{PrivateKey, Subject};
use p256::{
    SecretKey,
    pkcs8::{DecodePrivateKey as _, LineEnding},
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};

use super::{record::Recoveries, *};
use crate::testing;

const BOOTSTRAP: &str = "system:bootstrap:ocmhub";

/// The certificates here were valid in January 2026.
fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A week after their expiry.
fn now() -> Timestamp {
    at("2026-02-08T00:00:00Z")
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate of an agent, and its key.
struct Identity {
    certificate: String,
    key: PrivateKey,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        (params.not_before, params.not_after) = (date_time_ymd(2025, 1, 1), date_time_ymd(2035, 1, 1));
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn issue(&self, subject: &Subject) -> Identity {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, subject.common_name.clone());
        // rcgen keeps one value per type of name, so the second organization goes by its number.
        for (index, group) in subject.organizations.iter().enumerate() {
            let kind = if index == 0 { DnType::OrganizationName } else { DnType::CustomDnType(vec![2, 5, 4, 10]) };
            params.distinguished_name.push(kind, group.clone());
        }
        (params.not_before, params.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2026, 2, 1));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.0).unwrap().pem();
        let sec1 = SecretKey::from_pkcs8_der(&key.serialize_der()).unwrap().to_sec1_pem(LineEnding::LF).unwrap();
        Identity { certificate, key: PrivateKey::from_pem(&sec1).unwrap() }
    }
}

fn subject(cluster: &str, agent: &str) -> Subject {
    let groups = vec![identities::cluster_group(cluster), identities::MANAGED_CLUSTERS_GROUP.into()];
    Subject::new(identities::cluster_user(cluster, agent), groups)
}

/// A request for the agent of c1, with a proof by the identity.
fn request(name: &str, by: &Identity) -> CertificateSigningRequest {
    let pem = PrivateKey::generate().request(&subject("c1", "a")).unwrap().into_bytes();
    let signature = STANDARD.encode(by.key.sign(&statement(name, &pem)));
    let mut request = CertificateSigningRequest {
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem),
            signer_name: signers::KUBE_API_SERVER_CLIENT.into(),
            username: Some(BOOTSTRAP.into()),
            ..CertificateSigningRequestSpec::default()
        },
        ..CertificateSigningRequest::default()
    };
    request.metadata.name = Some(name.into());
    request.metadata.uid = Some(format!("uid-{name}"));
    request.annotations_mut().insert(CERTIFICATE_ANNOTATION.into(), by.certificate.clone());
    request.annotations_mut().insert(SIGNATURE_ANNOTATION.into(), signature);
    request
}

fn namespace() -> Namespace {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("c1".into());
    namespace.labels_mut().insert(labels::CLUSTER_NAME.into(), "c1".into());
    namespace
}

fn cluster() -> ManagedCluster {
    let mut cluster = testing::accepted("c1");
    cluster.metadata.creation_timestamp = Some(Time(at("2025-12-31T00:00:00Z")));
    cluster
}

fn requester() -> Requester {
    Requester { user: BOOTSTRAP.into(), ..Requester::default() }
}

/// Everything in order.
fn facts(authority: &Authority, request: CertificateSigningRequest) -> Facts {
    let candidate = Proof::of(&request).unwrap().map_err(Refusal::from).map(|proof| Candidate {
        proof,
        cluster: cluster(),
        authorities: authority.0.pem(),
        namespace: Some(namespace()),
        may_renew: true,
    });
    Facts {
        policy: RecoveryPolicy { users: vec![BOOTSTRAP.into()], limit: 2, ..RecoveryPolicy::default() },
        cluster: "c1".into(),
        request: Arc::new(request),
        requester: requester(),
        subject: subject("c1", "a"),
        candidate,
    }
}

/// What becomes of facts that differ from those in order.
fn outcome(authority: &Authority, by: &Identity, change: impl FnOnce(&mut Facts)) -> Result<Grant, Refusal> {
    let mut facts = facts(authority, request("csr", by));
    change(&mut facts);
    decide(&facts, now())
}

fn candidate(facts: &mut Facts) -> &mut Candidate {
    facts.candidate.as_mut().unwrap()
}

#[test]
fn an_agent_with_its_expired_certificate_and_key_recovers_and_that_is_recorded() {
    let authority = Authority::new();
    let grant = outcome(&authority, &authority.issue(&subject("c1", "a")), |_| {}).unwrap();
    assert!(grant.message.contains("recovery 1 of 2 within 720h"), "{}", grant.message);
    let (old, new) = grant.record.unwrap();
    assert_eq!(*old, namespace());
    let record: serde_json::Value = serde_json::from_str(&new.annotations()[RECORD_ANNOTATION]).unwrap();
    assert_eq!(record[0]["at"], "2026-02-08T00:00:00Z");
    assert_eq!((&record[0]["uid"], &record[0]["requester"]), (&"uid-csr".into(), &BOOTSTRAP.into()));
    assert_eq!(record[0]["certificate"], grant.fingerprint);
}

#[test]
fn a_certificate_of_another_authority_or_agent_recovers_nothing() {
    let (authority, forger) = (Authority::new(), Authority::new());
    let forged = outcome(&authority, &forger.issue(&subject("c1", "a")), |_| {}).unwrap_err();
    assert!(matches!(forged, Refusal::Proof(_)), "{forged}");
    let (mut more, mut fewer) = (subject("c1", "a"), subject("c1", "a"));
    more.organizations[1] = "system:masters".into();
    fewer.organizations.pop();
    for other in [subject("c1", "b"), subject("c2", "a"), more, fewer] {
        let refused = outcome(&authority, &authority.issue(&other), |_| {}).unwrap_err();
        assert!(matches!(refused, Refusal::OtherIdentity(_)), "{other:?}: {refused}");
    }
}

#[test]
fn the_certificate_alone_or_the_signature_of_another_key_recovers_nothing() {
    let authority = Authority::new();
    let (own, thief) = (authority.issue(&subject("c1", "a")), PrivateKey::generate());
    let stolen = Identity { certificate: own.certificate.clone(), key: thief };
    let refused = outcome(&authority, &stolen, |_| {}).unwrap_err();
    assert_eq!(refused, Refusal::from(proof::ProofError::Signature));
    for missing in [CERTIFICATE_ANNOTATION, SIGNATURE_ANNOTATION] {
        let mut request = request("csr", &own);
        request.annotations_mut().remove(missing);
        let refused = decide(&facts(&authority, request), now()).unwrap_err();
        assert_eq!(refused, Refusal::from(proof::ProofError::Missing(missing)));
    }
    for garbage in ["", "?", &"A".repeat(1000)] {
        let mut request = request("csr", &own);
        request.annotations_mut().insert(SIGNATURE_ANNOTATION.into(), garbage.into());
        assert!(matches!(decide(&facts(&authority, request), now()), Err(Refusal::Proof(_))), "{garbage}");
    }
}

#[test]
fn a_signature_is_good_for_one_request_under_one_name() {
    let authority = Authority::new();
    let own = authority.issue(&subject("c1", "a"));
    let first = request("csr", &own);
    let mut renamed = first.clone();
    renamed.metadata.name = Some("copy".into());
    let mut other = first.clone();
    other.spec.request = request("csr", &own).spec.request;
    for copied in [renamed, other] {
        let refused = decide(&facts(&authority, copied), now()).unwrap_err();
        assert_eq!(refused, Refusal::from(proof::ProofError::Signature));
    }
    assert!(decide(&facts(&authority, first), now()).is_ok());
}

#[test]
fn after_the_window_it_is_too_late_and_a_certificate_that_is_still_valid_is_early_enough() {
    let authority = Authority::new();
    let facts = facts(&authority, request("csr", &authority.issue(&subject("c1", "a"))));
    for (when, ok) in [("2026-01-20T00:00:00Z", true), ("2026-03-03T00:00:00Z", true), ("2026-03-03T00:00:01Z", false)]
    {
        let outcome = decide(&facts, at(when));
        assert_eq!(outcome.is_ok(), ok, "{when}");
        assert!(ok || matches!(outcome, Err(Refusal::TooLate { .. })));
    }
}

#[test]
fn the_agent_of_a_former_cluster_of_that_name_recovers_nothing() {
    let authority = Authority::new();
    let own = authority.issue(&subject("c1", "a"));
    let created = |text: &'static str| {
        outcome(&authority, &own, |facts| {
            let mut cluster = cluster();
            cluster.metadata.creation_timestamp = Some(Time(at(text)));
            candidate(facts).cluster = cluster;
        })
    };
    assert!(matches!(created("2026-01-02T00:00:00Z"), Err(Refusal::FormerCluster { .. })));
    // The certificate is dated back.
    assert!(created("2026-01-01T00:05:00Z").is_ok());
}

#[test]
fn without_the_right_to_renew_or_a_namespace_of_its_own_there_is_no_recovery() {
    let authority = Authority::new();
    let own = authority.issue(&subject("c1", "a"));
    let refused = |change: fn(&mut Candidate)| outcome(&authority, &own, |facts| change(candidate(facts))).unwrap_err();
    assert_eq!(refused(|candidate| candidate.may_renew = false), Refusal::MayNotRenew);
    assert_eq!(refused(|candidate| candidate.namespace = None), Refusal::NoNamespace);
    assert_eq!(refused(|candidate| candidate.namespace = Some(Namespace::default())), Refusal::NoNamespace);
    let garbage = refused(|candidate| {
        let mut namespace = namespace();
        namespace.annotations_mut().insert(RECORD_ANNOTATION.into(), "[{}]".into());
        candidate.namespace = Some(namespace);
    });
    assert_eq!(garbage, Refusal::Record);
}

#[test]
fn a_cluster_has_so_many_recoveries_within_the_window_and_more_when_they_are_older() {
    let authority = Authority::new();
    let own = authority.issue(&subject("c1", "a"));
    let mut known = namespace();
    let mut recover = |name: &str, when: &str| {
        let mut facts = facts(&authority, request(name, &own));
        facts.policy.window = Duration::from_secs(20 * 24 * 3600);
        candidate(&mut facts).namespace = Some(known.clone());
        let outcome = decide(&facts, at(when));
        if let Ok(Grant { record: Some((_, new)), .. }) = &outcome {
            known = *new.clone();
        }
        outcome
    };
    assert!(recover("first", "2026-02-02T00:00:00Z").is_ok());
    assert!(recover("second", "2026-02-05T00:00:00Z").is_ok());
    let refused = recover("third", "2026-02-08T00:00:00Z").unwrap_err();
    let Refusal::TooMany { limit: 2, next, pause } = refused else { panic!("{refused}") };
    assert_eq!((next, pause), (at("2026-02-22T00:00:00Z"), Duration::from_secs(3600)));
    // One that was recorded and not approved, since the hub was stopped in between, is not counted again.
    let again = recover("second", "2026-02-08T00:00:00Z").unwrap();
    assert_eq!(again.record, None);
    // The former one is dropped from the record, and the certificate has its last day.
    assert!(recover("fourth", "2026-02-21T00:00:00Z").is_err());
    assert!(matches!(recover("fifth", "2026-02-22T00:00:00Z"), Err(Refusal::TooLate { .. })));
    let still_valid = "2026-02-28T00:00:00Z";
    assert!(Recoveries::of(&known, at(still_valid), Duration::from_secs(20 * 24 * 3600)).unwrap().count() == 0);
}

#[test]
fn the_hub_says_why_it_refuses_and_what_to_do() {
    let note = Refusal::NotNamed("somebody".into()).note("c1", "csr");
    for part in ["somebody", "--certificate-recovery-users", "clusteradm accept --clusters c1", "approve csr"] {
        assert!(note.contains(part), "{note}");
    }
}

#[test]
fn only_requests_with_a_proof_that_are_open_are_considered() {
    let authority = Authority::new();
    let with = request("csr", &authority.issue(&subject("c1", "a")));
    assert!(is_open(&with));
    let mut without = with.clone();
    without.metadata.annotations = None;
    assert!(!is_open(&without) && Proof::of(&without).is_none());
    let mut decided = with;
    decided.status = Some(
        serde_json::from_value(serde_json::json!({"conditions": [{"type": "Denied", "status": "True"}]})).unwrap(),
    );
    assert!(!is_open(&decided));
}
