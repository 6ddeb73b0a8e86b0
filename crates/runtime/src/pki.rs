//! Keys, certificate signing requests and certificates.
//!
//! What comes from the other side (requests, certificates) is parsed here and nowhere else.

mod certificate;
mod request;

pub use certificate::{Bundle, CertificateError};
pub use request::{PrivateKey, RequestError, Subject, parse_request};
