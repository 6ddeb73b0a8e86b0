//! Certificate authorities that a server publishes.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use x509_cert::{Certificate as X509Certificate, der::Decode as _, ext::pkix::BasicConstraints};

use super::certificate::Certificate;

/// More than any API server publishes, and little enough for a secret.
const MAX_AUTHORITIES: usize = 32;

/// Certificates of authorities, without duplicates, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorities(Vec<CertificateDer<'static>>);

impl Authorities {
    /// Reads the certificates of a PEM text that are those of authorities and have not expired. Others are left out, and so
    /// is what cannot be read.
    #[must_use]
    pub fn read(pem: &str, now: Timestamp) -> Self {
        let mut all = Vec::new();
        for der in CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok) {
            if all.len() < MAX_AUTHORITIES && !all.contains(&der) && is_authority(&der, now) {
                all.push(der);
            }
        }
        Self(all)
    }

    /// Those that are not among the others.
    #[must_use]
    pub fn without(mut self, others: &Self) -> Self {
        self.0.retain(|der| !others.0.contains(der));
        self
    }

    /// As PEM.
    #[must_use]
    pub fn to_pem(&self) -> String {
        certificates_to_pem(&self.0)
    }
}

fn is_authority(der: &[u8], now: Timestamp) -> bool {
    let is_current = Certificate::parse(der).is_ok_and(|certificate| now <= certificate.not_after);
    let constraints = X509Certificate::from_der(der)
        .ok()
        .and_then(|parsed| parsed.tbs_certificate.get::<BasicConstraints>().ok().flatten());
    is_current && constraints.is_some_and(|(_, constraints)| constraints.ca)
}

/// Certificates (DER) as PEM.
pub fn certificates_to_pem(certificates: &[impl AsRef<[u8]>]) -> String {
    certificates.iter().map(|der| pem(der.as_ref())).collect()
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}
