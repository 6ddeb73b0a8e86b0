//! How an agent whose certificate has expired proves to the hub that it is the same agent. Ours alone: OCM ignores it.
//!
//! The request for the new certificate carries the former one and a signature with its key over [`statement`].

/// On a CertificateSigningRequest of an agent: its former client certificate, PEM.
pub const CERTIFICATE_ANNOTATION: &str = "ocm-rs.github.io/former-certificate";

/// On a CertificateSigningRequest of an agent: signature of [`statement`] with the key of the former certificate, ECDSA on
/// P-256 with SHA-256, DER in base64.
pub const SIGNATURE_ANNOTATION: &str = "ocm-rs.github.io/former-key-signature";

/// On the namespace of a cluster: the latest recoveries of its agents, JSON. Neither agents nor bootstrap users may write
/// namespaces.
pub const RECORD_ANNOTATION: &str = "ocm-rs.github.io/certificate-recoveries";

/// Separates these signatures from all others that the key makes, as in TLS and in certificate signing requests.
const CONTEXT: &[u8] = b"ocm-rs: this request continues the identity of an agent, v1";

/// What an agent signs: the request in `spec.request`, and the name of the CertificateSigningRequest, so that nobody can use
/// the signature in another one. Neither context nor name contains a zero byte.
pub fn statement(name: &str, request: &[u8]) -> Vec<u8> {
    [CONTEXT, name.as_bytes(), request].join(&0)
}

#[cfg(test)]
mod tests {
    use super::statement;

    #[test]
    fn another_name_or_request_makes_another_statement() {
        let all = [statement("a", b"b"), statement("a", b"c"), statement("ab", b""), statement("", b"ab")];
        for (index, one) in all.iter().enumerate() {
            assert!(all[index + 1..].iter().all(|other| other != one));
        }
    }
}
