//! Certificates that an API server has issued.

use jiff::Timestamp;
use p256::{PublicKey, SecretKey, elliptic_curve::sec1::ToEncodedPoint as _};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use x509_cert::{Certificate as X509Certificate, der::Decode as _, time::Time};

use super::request::{Subject, subject_of};

/// Why a certificate could not be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// There is no PEM block `CERTIFICATE` in it.
    #[error("there is no PEM block CERTIFICATE in it")]
    Empty,
    /// A block does not hold a certificate.
    #[error("it is not an X.509 certificate: {0}")]
    Malformed(String),
    /// The certificate was issued for another key.
    #[error("the certificate was issued for another key")]
    OtherKey,
}

/// The certificates of one PEM file.
#[derive(Clone, Debug)]
pub struct Bundle {
    certificates: Vec<Certificate>,
}

#[derive(Clone, Debug)]
pub(super) struct Certificate {
    pub(super) subject: Subject,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
    public_key: Vec<u8>,
}

impl Bundle {
    /// Reads every certificate of a PEM text.
    ///
    /// # Errors
    /// [`CertificateError::Empty`] and [`CertificateError::Malformed`].
    pub fn parse(pem: &[u8]) -> Result<Self, CertificateError> {
        let malformed = |error: &dyn ToString| CertificateError::Malformed(error.to_string());
        let blocks = CertificateDer::pem_slice_iter(pem);
        let certificates = blocks.map(|der| Certificate::parse(&der.map_err(|error| malformed(&error))?));
        let certificates = certificates.collect::<Result<Vec<_>, _>>()?;
        if certificates.is_empty() { Err(CertificateError::Empty) } else { Ok(Self { certificates }) }
    }

    /// The time from which all of them are valid.
    #[must_use]
    pub fn not_before(&self) -> Timestamp {
        self.certificates.iter().map(|one| one.not_before).max().unwrap_or(Timestamp::MAX)
    }

    /// The time until which all of them are valid.
    #[must_use]
    pub fn not_after(&self) -> Timestamp {
        self.certificates.iter().map(|one| one.not_after).min().unwrap_or(Timestamp::MIN)
    }

    /// Whether one of them has expired.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.not_after() < now
    }

    /// The remaining part of the lifetime, from 1 (just issued) to 0 (expired).
    #[must_use]
    pub fn remaining(&self, now: Timestamp) -> f64 {
        let total = self.not_after().duration_since(self.not_before()).as_secs_f64();
        let left = self.not_after().duration_since(now).as_secs_f64();
        if total <= 0.0 { 0.0 } else { (left / total).clamp(0.0, 1.0) }
    }

    /// Whether one of them was issued to `subject`.
    #[must_use]
    pub fn is_for(&self, subject: &Subject) -> bool {
        self.certificates.iter().any(|one| one.subject.is_same_as(subject))
    }

    /// The subjects of all certificates.
    pub fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.certificates.iter().map(|one| &one.subject)
    }

    /// Checks that the first certificate was issued for the key in `key_pem` (`EC PRIVATE KEY`).
    ///
    /// # Errors
    /// [`CertificateError::OtherKey`], also if the key cannot be read.
    pub fn check_key(&self, key_pem: &str) -> Result<(), CertificateError> {
        let key = SecretKey::from_sec1_pem(key_pem).map_err(|_| CertificateError::OtherKey)?;
        let point = key.public_key().to_encoded_point(false);
        match self.certificates.first() {
            Some(certificate) if certificate.holds(point.as_bytes()) => Ok(()),
            _ => Err(CertificateError::OtherKey),
        }
    }
}

impl Certificate {
    pub(super) fn parse(der: &[u8]) -> Result<Self, CertificateError> {
        let malformed = |what: &str| CertificateError::Malformed(what.into());
        let parsed = X509Certificate::from_der(der).map_err(|error| malformed(&error.to_string()))?;
        let parsed = parsed.tbs_certificate;
        Ok(Self {
            subject: subject_of(&parsed.subject).ok_or_else(|| malformed("a name in its subject is not text"))?,
            not_before: timestamp(parsed.validity.not_before)?,
            not_after: timestamp(parsed.validity.not_after)?,
            public_key: parsed.subject_public_key_info.subject_public_key.raw_bytes().to_vec(),
        })
    }

    fn holds(&self, uncompressed_point: &[u8]) -> bool {
        PublicKey::from_sec1_bytes(&self.public_key)
            .is_ok_and(|key| key.to_encoded_point(false).as_bytes() == uncompressed_point)
    }
}

fn timestamp(time: Time) -> Result<Timestamp, CertificateError> {
    let since = jiff::SignedDuration::try_from(time.to_unix_duration()).ok();
    let time = since.and_then(|since| Timestamp::from_duration(since).ok());
    time.ok_or_else(|| CertificateError::Malformed("its validity is out of range".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_a_certificate_is_refused_with_a_reason() {
        assert_eq!(Bundle::parse(b"").unwrap_err(), CertificateError::Empty);
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(Bundle::parse(broken), Err(CertificateError::Malformed(_))));
    }
}
