//! The proof in a request: the former certificate of the agent, and a signature with its key.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::ResourceExt as _;
use ocm_api::recovery::{CERTIFICATE_ANNOTATION, SIGNATURE_ANNOTATION, statement};
use ocm_runtime::pki::{ClientCertificate, ClientCertificateError};

/// A signature has 72 bytes at most.
const LONGEST_SIGNATURE: usize = 128;

/// Why a proof does not hold.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProofError {
    #[error("the annotation {0} is missing")]
    Missing(&'static str),
    #[error("the annotation {SIGNATURE_ANNOTATION} is not a signature in base64")]
    Encoding,
    #[error("the former certificate in the annotation {CERTIFICATE_ANNOTATION} proves nothing: {0}")]
    Certificate(#[from] ClientCertificateError),
    #[error("the key of the former certificate has not signed this request under this name")]
    Signature,
}

/// A proof that is not verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    certificate: String,
    signature: Vec<u8>,
    statement: Vec<u8>,
}

impl Proof {
    /// Whether a request has a part of a proof.
    pub(super) fn is_in(request: &CertificateSigningRequest) -> bool {
        let annotations = request.annotations();
        [CERTIFICATE_ANNOTATION, SIGNATURE_ANNOTATION].iter().any(|key| annotations.contains_key(*key))
    }

    /// The proof in a request; `None` if it has none.
    pub(super) fn of(request: &CertificateSigningRequest) -> Option<Result<Self, ProofError>> {
        Self::is_in(request).then(|| Self::read(request))
    }

    fn read(request: &CertificateSigningRequest) -> Result<Self, ProofError> {
        let annotation = |key| request.annotations().get(key).ok_or(ProofError::Missing(key));
        let (certificate, signature) = (annotation(CERTIFICATE_ANNOTATION)?, annotation(SIGNATURE_ANNOTATION)?);
        let signature = Some(signature).filter(|text| text.len() <= LONGEST_SIGNATURE);
        let signature = signature.and_then(|text| STANDARD.decode(text).ok()).ok_or(ProofError::Encoding)?;
        let statement = statement(&request.name_any(), &request.spec.request.0);
        Ok(Self { certificate: certificate.clone(), signature, statement })
    }

    /// The former certificate, if one of the authorities (PEM) issued it and its key has signed this very request.
    pub(super) fn verify(&self, authorities: &str, now: Timestamp) -> Result<ClientCertificate, ProofError> {
        let certificate = ClientCertificate::verify(self.certificate.as_bytes(), authorities.as_bytes(), now)?;
        let has_signed = certificate.has_signed(&self.statement, &self.signature);
        has_signed.then_some(certificate).ok_or(ProofError::Signature)
    }
}
