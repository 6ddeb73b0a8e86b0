use p256::{
    SecretKey,
    pkcs8::{DecodePrivateKey as _, LineEnding},
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, date_time_ymd,
};

use super::*;
use crate::pki::PrivateKey;

const AGENT: &str = "system:open-cluster-management:c1:a";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn authority(until: i32) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) = (date_time_ymd(2025, 1, 1), date_time_ymd(until, 1, 1));
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate that was valid in January 2026.
fn issued(by: &CertifiedIssuer<'static, KeyPair>, key: &KeyPair, usages: &[ExtendedKeyUsagePurpose]) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, AGENT);
    (params.not_before, params.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2026, 2, 1));
    params.extended_key_usages = usages.to_vec();
    params.signed_by(key, by).unwrap().pem().into_bytes()
}

fn key() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap()
}

fn agents(by: &CertifiedIssuer<'static, KeyPair>, key: &KeyPair) -> Vec<u8> {
    issued(by, key, &[ExtendedKeyUsagePurpose::ClientAuth])
}

#[test]
fn a_certificate_of_the_authority_is_verified_while_it_is_valid_and_after_it_has_expired() {
    let (authority, key) = (authority(2030), key());
    let pem = agents(&authority, &key);
    for now in ["2026-01-15T00:00:00Z", "2026-03-01T00:00:00Z"] {
        let verified = ClientCertificate::verify(&pem, authority.pem().as_bytes(), at(now)).unwrap();
        assert_eq!(verified.subject().common_name, AGENT);
        assert_eq!(
            (verified.not_before(), verified.not_after()),
            (at("2026-01-01T00:00:00Z"), at("2026-02-01T00:00:00Z"))
        );
        assert_eq!(verified.fingerprint().len(), 64);
    }
}

#[test]
fn a_certificate_of_another_authority_or_by_itself_is_not() {
    let (own, other, key) = (authority(2030), authority(2030), key());
    let now = at("2026-03-01T00:00:00Z");
    let forged = agents(&other, &key);
    for pem in [forged.clone(), other.pem().into_bytes(), [forged, own.pem().into_bytes()].concat()] {
        let refused = ClientCertificate::verify(&pem, own.pem().as_bytes(), now).unwrap_err();
        assert!(matches!(refused, ClientCertificateError::Untrusted(_)), "{refused}");
    }
}

#[test]
fn neither_authority_nor_certificate_may_be_used_outside_of_their_times() {
    let (authority, key) = (authority(2027), key());
    let pem = agents(&authority, &key);
    let verify = |now| ClientCertificate::verify(&pem, authority.pem().as_bytes(), at(now)).map(drop);
    assert_eq!(verify("2027-03-01T00:00:00Z"), Err(ClientCertificateError::NoAuthority));
    assert!(matches!(verify("2025-03-01T00:00:00Z"), Err(ClientCertificateError::Untrusted(_))));
    assert_eq!(verify("2026-03-01T00:00:00Z"), Ok(()));
}

#[test]
fn a_certificate_that_does_not_say_that_it_is_for_clients_is_not_for_them() {
    let (authority, key) = (authority(2030), key());
    let now = at("2026-03-01T00:00:00Z");
    let verify = |pem: Vec<u8>| ClientCertificate::verify(&pem, authority.pem().as_bytes(), now).unwrap_err();
    assert_eq!(verify(issued(&authority, &key, &[])), ClientCertificateError::NotForClients);
    let server = verify(issued(&authority, &key, &[ExtendedKeyUsagePurpose::ServerAuth]));
    assert!(matches!(server, ClientCertificateError::Untrusted(_)), "{server}");
    let other = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
    assert_eq!(verify(agents(&authority, &other)), ClientCertificateError::OtherKey);
}

#[test]
fn what_is_no_certificate_or_too_long_is_refused() {
    let authority = authority(2030);
    let verify =
        |pem: &[u8]| ClientCertificate::verify(pem, authority.pem().as_bytes(), Timestamp::UNIX_EPOCH).unwrap_err();
    assert_eq!(verify(b""), CertificateError::Empty.into());
    let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(verify(broken), ClientCertificateError::Unreadable(CertificateError::Malformed(_))));
    assert_eq!(verify(&authority.pem().repeat(40).into_bytes()), ClientCertificateError::TooLong);
}

#[test]
fn only_its_own_key_signs_and_only_what_was_signed() {
    let (authority, key) = (authority(2030), key());
    let pem = agents(&authority, &key);
    let verified = ClientCertificate::verify(&pem, authority.pem().as_bytes(), at("2026-03-01T00:00:00Z")).unwrap();
    let sec1 = SecretKey::from_pkcs8_der(&key.serialize_der()).unwrap().to_sec1_pem(LineEnding::LF).unwrap();
    let own = PrivateKey::from_pem(&sec1).unwrap();
    assert!(verified.has_signed(b"message", &own.sign(b"message")));
    assert!(!verified.has_signed(b"another", &own.sign(b"message")));
    assert!(!verified.has_signed(b"message", &PrivateKey::generate().sign(b"message")));
    assert!(!verified.has_signed(b"message", b"no signature"));
    assert!(PrivateKey::from_pem("no key").is_none());
}
