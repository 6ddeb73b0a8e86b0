//! The certificates of a control plane: one authority that signs everything.
//!
//! x509-cert rather than rcgen, since a user in several groups has several `O` values in the
//! subject. P-256 throughout: an RSA key takes longer to make than etcd takes to start.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use p256::ecdsa::{DerSignature, SigningKey, VerifyingKey};
use p256::elliptic_curve::rand_core::{OsRng, RngCore as _};
use p256::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::builder::{Builder as _, CertificateBuilder, Profile};
use x509_cert::der::asn1::{Any, Ia5String, OctetString};
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::oid::db::rfc4519::{COMMON_NAME, ORGANIZATION_NAME};
use x509_cert::der::oid::db::rfc5280::{ID_KP_CLIENT_AUTH, ID_KP_SERVER_AUTH};
use x509_cert::der::{EncodePem as _, Tag};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{ExtendedKeyUsage, SubjectAltName};
use x509_cert::name::{Name, RdnSequence, RelativeDistinguishedName};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::SubjectPublicKeyInfoOwned;
use x509_cert::time::{Time, Validity};

const HOUR: Duration = Duration::from_secs(3600);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A certificate and its key, both PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A key pair without a certificate, both PEM.
pub(crate) struct KeyPair {
    pub(crate) private: String,
    pub(crate) public: String,
}

/// The cluster's certificate authority.
pub(crate) struct Authority {
    name: Name,
    signer: SigningKey,
    certificate: String,
}

impl Authority {
    pub(crate) fn new(common_name: &str) -> Result<Self> {
        let name = subject(common_name, &[])?;
        let signer = SigningKey::random(&mut OsRng);
        let builder = builder(Profile::Root, &name, signer.verifying_key(), &signer)?;
        let certificate = finish(builder).context("failed to make the certificate authority")?;
        Ok(Self { name, signer, certificate })
    }

    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    pub(crate) fn key(&self) -> Result<String> {
        key_pem(&self.signer)
    }

    /// A certificate with which `user` of `groups` logs in.
    pub(crate) fn client(&self, user: &str, groups: &[&str]) -> Result<Pair> {
        let subject = subject(user, groups)?;
        self.issue(&subject, ID_KP_CLIENT_AUTH, None)
            .with_context(|| format!("failed to make a client certificate for {user}"))
    }

    /// A certificate for a server that is reached under these DNS names and addresses.
    pub(crate) fn server(&self, common_name: &str, names: &[String]) -> Result<Pair> {
        let subject = subject(common_name, &[])?;
        let names = names.iter().map(|name| general_name(name)).collect::<Result<Vec<_>>>()?;
        self.issue(&subject, ID_KP_SERVER_AUTH, Some(SubjectAltName(names)))
            .with_context(|| format!("failed to make a serving certificate for {common_name}"))
    }

    fn issue(&self, subject: &Name, usage: ObjectIdentifier, names: Option<SubjectAltName>) -> Result<Pair> {
        let key = SigningKey::random(&mut OsRng);
        let profile =
            Profile::Leaf { issuer: self.name.clone(), enable_key_agreement: false, enable_key_encipherment: false };
        let mut builder = builder(profile, subject, key.verifying_key(), &self.signer)?;
        builder.add_extension(&ExtendedKeyUsage(vec![usage]))?;
        if let Some(names) = names {
            builder.add_extension(&names)?;
        }
        Ok(Pair { certificate: finish(builder)?, key: key_pem(&key)? })
    }
}

/// A key pair with which service account tokens are signed.
pub(crate) fn key_pair() -> Result<KeyPair> {
    let key = SigningKey::random(&mut OsRng);
    let public = key.verifying_key().to_public_key_pem(LineEnding::LF);
    Ok(KeyPair { private: key_pem(&key)?, public: public.context("failed to encode a public key")? })
}

fn builder<'s>(
    profile: Profile,
    subject: &Name,
    key: &VerifyingKey,
    signer: &'s SigningKey,
) -> Result<CertificateBuilder<'s, SigningKey>> {
    // Never zero and never negative: one bit less than the number has, and the lowest bit set.
    let serial = SerialNumber::from((OsRng.next_u64() >> 1) | 1);
    let key = SubjectPublicKeyInfoOwned::from_key(*key)?;
    Ok(CertificateBuilder::new(profile, serial, validity()?, subject.clone(), key, signer)?)
}

fn validity() -> Result<Validity> {
    let now = SystemTime::now();
    Ok(Validity { not_before: Time::try_from(now - HOUR)?, not_after: Time::try_from(now + YEAR)? })
}

fn finish(builder: CertificateBuilder<'_, SigningKey>) -> Result<String> {
    Ok(builder.build::<DerSignature>()?.to_pem(LineEnding::LF)?)
}

/// PKCS #8: the SEC1 form that p256 writes leaves the curve out, and Go reads no such key.
fn key_pem(key: &SigningKey) -> Result<String> {
    let pem = key.to_pkcs8_pem(LineEnding::LF).context("failed to encode a private key")?;
    Ok(pem.to_string())
}

fn subject(common_name: &str, organizations: &[&str]) -> Result<Name> {
    let organizations = organizations.iter().map(|value| attribute(ORGANIZATION_NAME, value));
    let attributes = organizations.chain([attribute(COMMON_NAME, common_name)]);
    Ok(RdnSequence(attributes.collect::<Result<Vec<_>>>()?))
}

fn attribute(oid: ObjectIdentifier, value: &str) -> Result<RelativeDistinguishedName> {
    let value = Any::new(Tag::Utf8String, value.as_bytes())?;
    let attributes = vec![AttributeTypeAndValue { oid, value }];
    Ok(RelativeDistinguishedName(attributes.try_into()?))
}

fn general_name(name: &str) -> Result<GeneralName> {
    Ok(match name.parse() {
        Ok(IpAddr::V4(address)) => GeneralName::IpAddress(OctetString::new(address.octets())?),
        Ok(IpAddr::V6(address)) => GeneralName::IpAddress(OctetString::new(address.octets())?),
        Err(_) => GeneralName::DnsName(Ia5String::new(name)?),
    })
}
