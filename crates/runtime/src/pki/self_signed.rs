//! Self-signed certificates for servers.

use std::{net::IpAddr, time::SystemTime};

use jiff::Timestamp;
use p256::{
    ecdsa::{DerSignature, SigningKey},
    elliptic_curve::rand_core::{OsRng, RngCore as _},
    pkcs8::EncodePrivateKey as _,
};
use rustls::pki_types::{CertificateDer, DnsName, PrivateKeyDer, PrivatePkcs8KeyDer};
use x509_cert::{
    builder::{Builder as _, CertificateBuilder, Profile},
    der::{
        self, Encode as _,
        asn1::{Ia5String, OctetString},
    },
    ext::pkix::{SubjectAltName, name::GeneralName},
    serial_number::SerialNumber,
    spki::SubjectPublicKeyInfoOwned,
    time::{Time, Validity},
};

use super::Subject;

/// Why no certificate could be created.
#[derive(Debug, thiserror::Error)]
pub enum SelfSignedError {
    /// A part of it cannot be encoded.
    #[error(transparent)]
    Encode(#[from] der::Error),
    /// It could not be built.
    #[error(transparent)]
    Build(#[from] x509_cert::builder::Error),
    /// Its key cannot be encoded.
    #[error(transparent)]
    Key(p256::pkcs8::Error),
}

impl From<x509_cert::spki::Error> for SelfSignedError {
    fn from(error: x509_cert::spki::Error) -> Self {
        Self::Build(error.into())
    }
}

/// Creates a key and a certificate for a server with these host names and addresses. Invalid names are left out.
///
/// # Errors
/// [`SelfSignedError`].
pub(crate) fn self_signed(
    common_name: &str,
    names: &[&str],
    [not_before, not_after]: [Timestamp; 2],
) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), SelfSignedError> {
    let key = SigningKey::random(&mut OsRng);
    let subject = Subject::new(common_name, Vec::new()).to_name()?;
    let profile =
        Profile::Leaf { issuer: subject.clone(), enable_key_agreement: false, enable_key_encipherment: false };
    let public = SubjectPublicKeyInfoOwned::from_key(*key.verifying_key())?;
    let validity = Validity { not_before: time(not_before)?, not_after: time(not_after)? };
    let mut builder = CertificateBuilder::new(profile, serial_number(), validity, subject, public, &key)?;
    let names = names.iter().filter_map(|name| general_name(name).transpose()).collect::<Result<_, _>>()?;
    builder.add_extension(&SubjectAltName(names))?;
    let certificate = builder.build::<DerSignature>()?.to_der()?;
    let key = key.to_pkcs8_der().map_err(SelfSignedError::Key)?;
    Ok((certificate.into(), PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into()))
}

/// Never zero and never negative.
fn serial_number() -> SerialNumber {
    SerialNumber::from((OsRng.next_u64() >> 1) | 1)
}

fn time(at: Timestamp) -> Result<Time, der::Error> {
    Time::try_from(SystemTime::from(at))
}

fn general_name(name: &str) -> Result<Option<GeneralName>, der::Error> {
    Ok(match name.parse() {
        Ok(IpAddr::V4(address)) => Some(GeneralName::IpAddress(OctetString::new(address.octets())?)),
        Ok(IpAddr::V6(address)) => Some(GeneralName::IpAddress(OctetString::new(address.octets())?)),
        Err(_) if DnsName::try_from(name).is_err() => None,
        Err(_) => Some(GeneralName::DnsName(Ia5String::new(name)?)),
    })
}
