//! Certificate signing requests (PKCS#10): making them and reading them.

use std::collections::BTreeSet;

use p256::{
    SecretKey,
    ecdsa::{DerSignature, SigningKey, signature::Signer as _},
    elliptic_curve::{rand_core::OsRng, sec1::ToEncodedPoint as _},
    pkcs8::{AssociatedOid as _, LineEnding},
};
use rustls::pki_types::{CertificateSigningRequestDer, pem::PemObject as _};
use sec1::{EcParameters, EcPrivateKey};
use x509_cert::{
    attr::{AttributeTypeAndValue, AttributeValue},
    builder::{Builder as _, RequestBuilder},
    der::{
        Decode as _, EncodePem as _, Tag, Tagged as _,
        asn1::{Ia5String, ObjectIdentifier, SetOfVec, Utf8StringRef},
    },
    ext::pkix::{SubjectAltName, name::GeneralName},
    name::{RdnSequence, RelativeDistinguishedName},
    request::CertReq,
};

const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");
const ORGANIZATIONAL_UNIT: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.11");
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// Why a request could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// A key could not be written as PEM.
    #[error("failed to encode the private key")]
    Key(#[source] x509_cert::der::Error),
    /// The request could not be built.
    #[error("failed to encode the certificate signing request")]
    Encode(#[source] x509_cert::builder::Error),
    /// A name of the subject cannot be encoded.
    #[error("failed to encode the subject of the certificate signing request")]
    Subject(#[source] x509_cert::der::Error),
    /// Not a PEM block, or one of another type.
    #[error("the request is not a PEM block CERTIFICATE REQUEST")]
    NotPem,
    /// There are several PEM blocks: another parser might read another one.
    #[error("the request does not hold exactly one PEM block")]
    SeveralBlocks,
    /// The PEM block does not contain a request.
    #[error("the request is not a PKCS#10 certificate signing request: {0}")]
    Malformed(String),
}

/// The subject of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The `CN`: the user.
    pub common_name: String,
    /// The `O` values: the groups.
    pub organizations: Vec<String>,
    /// The `OU` values.
    pub organizational_units: Vec<String>,
}

impl Subject {
    /// A user in groups.
    pub fn new(common_name: impl Into<String>, organizations: Vec<String>) -> Self {
        Self { common_name: common_name.into(), organizations, organizational_units: Vec::new() }
    }

    /// Whether both name the same user, groups and units, in any order.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.common_name == other.common_name
            && same_set(&self.organizations, &other.organizations)
            && same_set(&self.organizational_units, &other.organizational_units)
    }

    /// The subject as OCM's agents write it: all groups in one relative name, then all units, then the user.
    pub(super) fn to_name(&self) -> Result<RdnSequence, x509_cert::der::Error> {
        let user = std::slice::from_ref(&self.common_name);
        let parts = [
            (ORGANIZATION, &*self.organizations),
            (ORGANIZATIONAL_UNIT, &*self.organizational_units),
            (COMMON_NAME, user),
        ];
        let parts = parts.into_iter().filter(|(_, values)| !values.is_empty());
        parts.map(|(oid, values)| relative_name(oid, values)).collect::<Result<_, _>>().map(RdnSequence)
    }
}

/// One relative distinguished name with all these values, sorted and without duplicates.
fn relative_name(oid: ObjectIdentifier, values: &[String]) -> Result<RelativeDistinguishedName, x509_cert::der::Error> {
    let mut set = SetOfVec::new();
    for value in values.iter().collect::<BTreeSet<_>>() {
        set.insert(attribute(oid, value)?)?;
    }
    Ok(RelativeDistinguishedName(set))
}

fn same_set(a: &[String], b: &[String]) -> bool {
    a.iter().all(|one| b.contains(one)) && b.iter().all(|one| a.contains(one))
}

fn attribute(oid: ObjectIdentifier, value: &str) -> Result<AttributeTypeAndValue, x509_cert::der::Error> {
    Ok(AttributeTypeAndValue { oid, value: AttributeValue::from(Utf8StringRef::new(value)?) })
}

/// An ECDSA key on P-256. Its `Debug` form does not show it.
#[derive(Clone)]
pub struct PrivateKey(SecretKey);

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

impl PrivateKey {
    /// A new key.
    #[must_use]
    pub fn generate() -> Self {
        Self(SecretKey::random(&mut OsRng))
    }

    /// The key as a PEM block `EC PRIVATE KEY` (SEC1) that names its curve: the form in which OCM's
    /// agents keep it, and which Go reads.
    ///
    /// # Errors
    /// [`RequestError::Key`].
    pub fn to_pem(&self) -> Result<String, RequestError> {
        let (secret, public) = (self.0.to_bytes(), self.0.public_key().to_encoded_point(false));
        let key = EcPrivateKey {
            private_key: &secret,
            parameters: Some(EcParameters::NamedCurve(p256::NistP256::OID)),
            public_key: Some(public.as_bytes()),
        };
        key.to_pem(LineEnding::LF).map_err(RequestError::Key)
    }

    /// Reads a key in the form of [`PrivateKey::to_pem`]; `None` if it is not one on P-256.
    #[must_use]
    pub fn from_pem(pem: &str) -> Option<Self> {
        SecretKey::from_sec1_pem(pem).ok().map(Self)
    }

    /// Signs a message with ECDSA and SHA-256; the signature is in DER.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let signature: DerSignature = SigningKey::from(&self.0).sign(message);
        signature.as_bytes().to_vec()
    }

    /// A signing request for `subject` as a PEM block `CERTIFICATE REQUEST`, signed with SHA-256.
    ///
    /// # Errors
    /// [`RequestError`] when a name cannot be encoded.
    pub fn request(&self, subject: &Subject) -> Result<String, RequestError> {
        self.request_with_names(subject, &[])
    }

    /// Like [`PrivateKey::request`], for a certificate with DNS names.
    ///
    /// # Errors
    /// [`RequestError`] when a name cannot be encoded.
    pub fn request_with_names(&self, subject: &Subject, dns_names: &[String]) -> Result<String, RequestError> {
        let signer = SigningKey::from(&self.0);
        let name = subject.to_name().map_err(RequestError::Subject)?;
        let mut request = RequestBuilder::new(name, &signer).map_err(RequestError::Encode)?;
        if !dns_names.is_empty() {
            let names = dns_names.iter().map(|name| Ia5String::new(name).map(GeneralName::DnsName));
            let names = names.collect::<Result<_, _>>().map_err(RequestError::Subject)?;
            request.add_extension(&SubjectAltName(names)).map_err(RequestError::Encode)?;
        }
        let request = request.build::<DerSignature>().map_err(RequestError::Encode)?;
        request.to_pem(LineEnding::LF).map_err(RequestError::Subject)
    }
}

/// Reads the subject of a request in PEM form, as in `spec.request` of a CertificateSigningRequest.
///
/// # Errors
/// [`RequestError::NotPem`], [`RequestError::SeveralBlocks`] and [`RequestError::Malformed`].
pub fn parse_request(pem: &[u8]) -> Result<Subject, RequestError> {
    if count_blocks(pem) > 1 {
        return Err(RequestError::SeveralBlocks);
    }
    let der = CertificateSigningRequestDer::from_pem_slice(pem).map_err(|_| RequestError::NotPem)?;
    let request = CertReq::from_der(&der).map_err(|error| RequestError::Malformed(error.to_string()))?;
    subject_of(&request.info.subject).ok_or_else(|| {
        RequestError::Malformed("a name in its subject is not text, or there is more than one common name".into())
    })
}

/// PEM parsers differ in which malformed blocks they skip. With a single block, the signer cannot read another request than
/// this parser.
fn count_blocks(pem: &[u8]) -> usize {
    const BEGIN: &[u8] = b"-----BEGIN";
    pem.windows(BEGIN.len()).filter(|window| *window == BEGIN).count()
}

/// `None` if a value is not text, or if there are several common names: such a name must not be mistaken for another one.
/// The API server takes the last common name as it was encoded, and x509-cert sorts the values of a relative name, so this
/// code cannot know which one is the last.
pub(super) fn subject_of(name: &RdnSequence) -> Option<Subject> {
    let all = |oid| {
        let attributes = name.0.iter().flat_map(|relative| relative.0.iter());
        attributes.filter(|attribute| attribute.oid == oid).map(text).collect::<Option<Vec<_>>>()
    };
    let mut common_names = all(COMMON_NAME)?;
    let common_name = common_names.pop().unwrap_or_default();
    common_names.is_empty().then_some(())?;
    Some(Subject { common_name, organizations: all(ORGANIZATION)?, organizational_units: all(ORGANIZATIONAL_UNIT)? })
}

/// The string types that Go reads, except those in other encodings than UTF-8.
fn text(attribute: &AttributeTypeAndValue) -> Option<String> {
    let kinds = [Tag::Utf8String, Tag::PrintableString, Tag::Ia5String, Tag::NumericString];
    let is_text = kinds.contains(&attribute.value.tag());
    String::from_utf8(attribute.value.value().to_vec()).ok().filter(|_| is_text)
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::PrivateSec1KeyDer;

    use super::*;

    fn subject() -> Subject {
        Subject::new("system:ocm:c1:agent", vec!["system:ocm:c1".into(), "system:ocm:managed-clusters".into()])
    }

    #[test]
    fn a_request_says_who_it_is_for() {
        let pem = PrivateKey::generate().request(&subject()).unwrap();
        assert!(pem.starts_with("-----BEGIN CERTIFICATE REQUEST-----\n"), "{pem}");
        assert!(parse_request(pem.as_bytes()).unwrap().is_same_as(&subject()));
    }

    #[test]
    fn the_groups_stand_in_one_relative_name_before_the_user() {
        let names = subject().to_name().unwrap();
        assert_eq!(names.0.iter().map(|name| name.0.len()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_request_carries_units_and_dns_names_and_a_group_named_twice_once() {
        let mut subject = subject();
        subject.organizational_units = vec!["b".into(), "a".into()];
        let twice = subject.organizations[0].clone();
        subject.organizations.push(twice);
        assert_eq!(subject.to_name().unwrap().0.iter().map(|name| name.0.len()).collect::<Vec<_>>(), [2, 2, 1]);

        let names = ["hello.addon.open-cluster-management.io".to_owned()];
        let pem = PrivateKey::generate().request_with_names(&subject, &names).unwrap();
        assert!(parse_request(pem.as_bytes()).unwrap().is_same_as(&subject));
        let der = CertificateSigningRequestDer::from_pem_slice(pem.as_bytes()).unwrap();
        assert!(der.windows(names[0].len()).any(|window| window == names[0].as_bytes()), "the DNS name is missing");
    }

    #[test]
    fn a_request_with_several_common_names_is_refused() {
        let signer = SigningKey::from(&PrivateKey::generate().0);
        for (names, is_accepted) in
            [("CN=agent", true), ("CN=agent+CN=kube-controller-manager", false), ("CN=agent,CN=admin", false)]
        {
            let name: RdnSequence = names.parse().unwrap();
            let request = RequestBuilder::new(name, &signer).unwrap().build::<DerSignature>().unwrap();
            let parsed = parse_request(request.to_pem(LineEnding::LF).unwrap().as_bytes());
            assert_eq!(parsed.is_ok(), is_accepted, "{names}: {parsed:?}");
        }
    }

    #[test]
    fn keys_are_written_in_sec1_form_with_their_curve() {
        let key = PrivateKey::generate();
        let pem = key.to_pem().unwrap();
        assert!(pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"), "{}", &pem[..40]);
        let read = SecretKey::from_sec1_pem(&pem).unwrap();
        assert_eq!(read.public_key(), key.0.public_key());
        // Object identifier 1.2.840.10045.3.1.7, P-256.
        let der = PrivateSec1KeyDer::from_pem_slice(pem.as_bytes()).unwrap();
        let der = der.secret_sec1_der();
        let curve = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
        assert!(der.windows(curve.len()).any(|window| window == curve), "the key does not name its curve");
    }

    #[test]
    fn what_is_not_a_request_is_refused_with_a_reason() {
        assert!(matches!(parse_request(b"hello"), Err(RequestError::NotPem)));
        let twice = PrivateKey::generate().request(&subject()).unwrap().repeat(2);
        assert!(matches!(parse_request(twice.as_bytes()), Err(RequestError::SeveralBlocks)));
        let other = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(parse_request(other), Err(RequestError::NotPem)));
        let empty = b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";
        assert!(matches!(parse_request(empty), Err(RequestError::Malformed(_))));
    }

    #[test]
    fn a_name_that_is_not_text_is_refused() {
        let key = PrivateKey::generate();
        let request = |tag, value: &[u8]| {
            let value = AttributeValue::new(tag, value).unwrap();
            let name = SetOfVec::try_from([AttributeTypeAndValue { oid: ORGANIZATION, value }]).unwrap();
            let signer = SigningKey::from(&key.0);
            let builder = RequestBuilder::new(RdnSequence(vec![RelativeDistinguishedName(name)]), &signer).unwrap();
            parse_request(builder.build::<DerSignature>().unwrap().to_pem(LineEnding::LF).unwrap().as_bytes())
        };
        for tag in [Tag::Utf8String, Tag::PrintableString] {
            assert_eq!(request(tag, b"group").unwrap().organizations, ["group"]);
        }
        for (tag, value) in
            [(Tag::Utf8String, &b"\xff"[..]), (Tag::OctetString, b"group"), (Tag::TeletexString, b"group")]
        {
            assert!(matches!(request(tag, value), Err(RequestError::Malformed(_))), "{tag}");
        }
    }

    #[test]
    fn a_key_does_not_show_itself() {
        assert_eq!(format!("{:?}", PrivateKey::generate()), "PrivateKey(..)");
    }
}
