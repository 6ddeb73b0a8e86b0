//! Client certificates that are presented outside of TLS, verified as an API server verifies them.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use p256::{
    PublicKey,
    ecdsa::{DerSignature, VerifyingKey, signature::Verifier as _},
};
use rustls::{
    RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, UnixTime, pem::PemObject as _},
    server::WebPkiClientVerifier,
};
use x509_cert::{
    Certificate as X509Certificate,
    der::{Decode as _, oid::db::rfc5280::ID_KP_CLIENT_AUTH, referenced::OwnedToRef as _},
    ext::pkix::ExtendedKeyUsage,
};

use super::{CertificateError, Subject, certificate::Certificate};
use crate::digest::sha256_hex;

/// Certificates longer than this, with their intermediates, are not read.
const LONGEST_PEM: usize = 16 * 1024;

/// Why a client certificate proves nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientCertificateError {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] CertificateError),
    /// It is longer than any certificate of an agent.
    #[error("it is longer than {LONGEST_PEM} bytes")]
    TooLong,
    /// None of the authorities can be used.
    #[error("the bundle of certificate authorities for clients holds no valid certificate")]
    NoAuthority,
    /// It was not issued by one of the authorities, or not for clients.
    #[error("it is not a client certificate of this API server: {0}")]
    Untrusted(String),
    /// Its extensions do not include the usage by clients.
    #[error("it is not for client authentication")]
    NotForClients,
    /// Its key is not an ECDSA key on P-256.
    #[error("its key is not an ECDSA key on P-256")]
    OtherKey,
}

/// A client certificate that was valid until [`ClientCertificate::not_after`], and may have expired.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    certificate: Certificate,
    key: VerifyingKey,
    fingerprint: String,
}

impl ClientCertificate {
    /// Verifies the first certificate of a PEM text, with the others as intermediates, against the authorities of another:
    /// the signatures, the usage by clients, and all times as of `now`, or of its last moment if it has expired. Authorities
    /// that have expired by now do not count.
    ///
    /// # Errors
    /// [`ClientCertificateError`].
    pub fn verify(pem: &[u8], authorities: &[u8], now: Timestamp) -> Result<Self, ClientCertificateError> {
        if pem.len() > LONGEST_PEM {
            return Err(ClientCertificateError::TooLong);
        }
        let chain = chain(pem)?;
        let (leaf, intermediates) = chain.split_first().ok_or(CertificateError::Empty)?;
        let certificate = Certificate::parse(leaf)?;
        check_chain(leaf, intermediates, valid_authorities(authorities, now), now.min(certificate.not_after))?;
        Ok(Self { certificate, key: client_key(leaf)?, fingerprint: sha256_hex(leaf) })
    }

    /// Whom it was issued to.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        &self.certificate.subject
    }

    /// Since when it is valid.
    #[must_use]
    pub fn not_before(&self) -> Timestamp {
        self.certificate.not_before
    }

    /// Until when it is, or was, valid.
    #[must_use]
    pub fn not_after(&self) -> Timestamp {
        self.certificate.not_after
    }

    /// The SHA-256 of the certificate, in hexadecimal.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Whether its key has signed the message. See [`PrivateKey::sign`](super::PrivateKey::sign).
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        DerSignature::from_bytes(signature).is_ok_and(|signature| self.key.verify(message, &signature).is_ok())
    }
}

fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let blocks = CertificateDer::pem_slice_iter(pem);
    blocks.map(|der| der.map_err(|error| CertificateError::Malformed(error.to_string()))).collect()
}

/// Those of the bundle that have not expired. What cannot be read is left out, as in Go.
fn valid_authorities(pem: &[u8], now: Timestamp) -> RootCertStore {
    let mut store = RootCertStore::empty();
    for der in CertificateDer::pem_slice_iter(pem).filter_map(Result::ok) {
        if Certificate::parse(&der).is_ok_and(|authority| authority.not_before <= now && now <= authority.not_after) {
            // One that cannot be used signs nothing.
            let _ = store.add(der);
        }
    }
    store
}

fn check_chain(
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    authorities: RootCertStore,
    at: Timestamp,
) -> Result<(), ClientCertificateError> {
    let untrusted = |error: rustls::Error| ClientCertificateError::Untrusted(error.to_string());
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider).build();
    let verifier = verifier.map_err(|_| ClientCertificateError::NoAuthority)?;
    let since_epoch = Duration::try_from(at.as_duration()).unwrap_or_default();
    let at = UnixTime::since_unix_epoch(since_epoch);
    verifier.verify_client_cert(leaf, intermediates, at).map(drop).map_err(untrusted)
}

/// The key of a certificate that says that it is for clients.
fn client_key(der: &[u8]) -> Result<VerifyingKey, ClientCertificateError> {
    let malformed = |error: x509_cert::der::Error| CertificateError::Malformed(error.to_string());
    let parsed = X509Certificate::from_der(der).map_err(malformed)?.tbs_certificate;
    let usages = parsed.get::<ExtendedKeyUsage>().map_err(malformed)?;
    if !usages.is_some_and(|(_, usages)| usages.0.contains(&ID_KP_CLIENT_AUTH)) {
        return Err(ClientCertificateError::NotForClients);
    }
    let key = PublicKey::try_from(parsed.subject_public_key_info.owned_to_ref());
    key.map(VerifyingKey::from).map_err(|_| ClientCertificateError::OtherKey)
}

#[cfg(test)]
mod tests;
