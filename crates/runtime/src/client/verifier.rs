//! Verifies the certificates of servers.
//!
//! The certificate authority of a kubeconfig may be the server's own certificate, which is no authority. As in Go, a
//! certificate that equals a configured one needs no issuer; its name, validity and usage are checked.

use std::sync::Arc;

use kube::Config;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use x509_cert::{
    Certificate,
    der::{
        Decode as _,
        oid::db::rfc5280::{ANY_EXTENDED_KEY_USAGE, ID_KP_SERVER_AUTH},
    },
    ext::pkix::ExtendedKeyUsage,
};

/// The verifier for a configuration; `None` if kube's is used: without configured certificates, without verification, and in
/// a pod, where kube reloads the certificate authorities.
pub(super) fn of(config: &Config) -> Result<Option<Arc<Verifier>>, BuildError> {
    let Some(certificates) = &config.root_cert else { return Ok(None) };
    if config.accept_invalid_certs || config.root_cert_file.is_some() {
        return Ok(None);
    }
    let certificates = certificates.iter().map(|der| CertificateDer::from(der.clone())).collect();
    Verifier::new(certificates).map(Arc::new).map(Some)
}

/// Why no certificate can be verified with the configured ones.
pub(super) type BuildError = rustls::client::VerifierBuilderError;

/// Trusts the configured certificates, and those that they have issued.
#[derive(Debug)]
pub(super) struct Verifier {
    issued: Arc<WebPkiServerVerifier>,
    configured: Vec<CertificateDer<'static>>,
}

impl Verifier {
    fn new(configured: Vec<CertificateDer<'static>>) -> Result<Self, BuildError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(configured.iter().cloned());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let issued = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        Ok(Self { issued, configured })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.configured.contains(certificate) {
            return verify_itself(certificate, name, now);
        }
        self.issued.verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issued.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issued.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issued.supported_verify_schemes()
    }
}

/// Checks everything but the issuer.
fn verify_itself(der: &CertificateDer<'_>, name: &ServerName<'_>, now: UnixTime) -> Result<ServerCertVerified, Error> {
    verify_server_name(&ParsedCertificate::try_from(der)?, name)?;
    let certificate = Certificate::from_der(der).map_err(|_| CertificateError::BadEncoding)?;
    let validity = certificate.tbs_certificate.validity;
    let now = now.as_secs();
    if now < validity.not_before.to_unix_duration().as_secs() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > validity.not_after.to_unix_duration().as_secs() {
        return Err(CertificateError::Expired.into());
    }
    if !is_for_servers(&certificate).ok_or(CertificateError::BadEncoding)? {
        return Err(CertificateError::InvalidPurpose.into());
    }
    Ok(ServerCertVerified::assertion())
}

/// `None` if its usage cannot be read.
fn is_for_servers(certificate: &Certificate) -> Option<bool> {
    let usage = certificate.tbs_certificate.get::<ExtendedKeyUsage>().ok()?;
    Some(usage.is_none_or(|(_, usage)| {
        usage.0.iter().any(|purpose| [ID_KP_SERVER_AUTH, ANY_EXTENDED_KEY_USAGE].contains(purpose))
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair};

    use super::*;

    /// In 2026.
    const NOW: u64 = 1_790_000_000;

    fn certificate(change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["hub.example.com".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2027, 1, 1);
        change(&mut params);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn verify(configured: &CertificateDer<'static>, shown: &CertificateDer<'_>, name: &str, now: u64) -> Option<Error> {
        let verifier = Verifier::new(vec![certificate(|_| {}), configured.clone()]).unwrap();
        let (name, now) = (name.to_owned().try_into().unwrap(), UnixTime::since_unix_epoch(Duration::from_secs(now)));
        verifier.verify_server_cert(shown, &[], &name, &[], now).err()
    }

    #[test]
    fn a_certificate_that_is_configured_itself_is_trusted_whether_it_is_an_authority_or_not() {
        let leaf = certificate(|_| {});
        assert_eq!(verify(&leaf, &leaf, "hub.example.com", NOW), None);
        let authority = certificate(|params| params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained));
        assert_eq!(verify(&authority, &authority, "hub.example.com", NOW), None);
    }

    #[test]
    fn another_one_is_not_even_if_it_looks_the_same() {
        let (configured, shown) = (certificate(|_| {}), certificate(|_| {}));
        let error = verify(&configured, &shown, "hub.example.com", NOW);
        assert!(matches!(error, Some(Error::InvalidCertificate(_))), "{error:?}");
    }

    #[test]
    fn its_name_and_its_dates_and_its_usage_are_checked() {
        let leaf = certificate(|_| {});
        let refused = |name, now| match verify(&leaf, &leaf, name, now) {
            Some(Error::InvalidCertificate(reason)) => reason,
            other => panic!("{other:?}"),
        };
        assert!(matches!(refused("other.example.com", NOW), CertificateError::NotValidForNameContext { .. }));
        assert_eq!(refused("hub.example.com", NOW + 31_536_000), CertificateError::Expired);
        assert_eq!(refused("hub.example.com", NOW - 31_536_000), CertificateError::NotValidYet);
        let client = certificate(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
        let error = verify(&client, &client, "hub.example.com", NOW);
        assert_eq!(error, Some(CertificateError::InvalidPurpose.into()));
        let server = certificate(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]);
        assert_eq!(verify(&server, &server, "hub.example.com", NOW), None);
    }
}
