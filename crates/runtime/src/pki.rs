//! Keys, certificate signing requests and certificates.
//!
//! What others send (requests, certificates) is parsed here and nowhere else.

mod authorities;
mod certificate;
mod client;
mod request;
mod self_signed;

pub use authorities::{Authorities, certificates_to_pem};
pub use certificate::{Bundle, CertificateError};
pub use client::{ClientCertificate, ClientCertificateError};
pub use request::{PrivateKey, RequestError, Subject, parse_request};
pub use self_signed::SelfSignedError;
pub(crate) use self_signed::self_signed;
