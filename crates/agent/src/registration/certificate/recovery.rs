//! The proof that an agent which bootstraps again is the same agent: see [`ocm_api::recovery`].
//!
//! A hub of ours approves such a request if its policy allows that. Others ignore the annotations.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, core::v1::Secret};
use kube::ResourceExt as _;
use ocm_api::{
    recovery::{CERTIFICATE_ANNOTATION, SIGNATURE_ANNOTATION, statement},
    secrets::{KEY_TLS_CERT, KEY_TLS_KEY},
};
use ocm_runtime::pki::{Bundle, PrivateKey};
use rand::Rng as _;

use super::desired::DesiredCertificate;

/// The characters of names that API servers generate.
const CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// So long that nobody guesses a name and takes it first.
const SUFFIX_LENGTH: usize = 16;

/// The request with the proof, if the secret holds a certificate of the same agent and its key. The agent chooses the name,
/// since it signs that too.
pub(super) fn with_proof(
    mut request: CertificateSigningRequest,
    desired: &DesiredCertificate,
    secret: Option<&Secret>,
) -> CertificateSigningRequest {
    let Some((certificate, key)) = secret.filter(|_| desired.is_recovery).and_then(|it| former(it, desired)) else {
        return request;
    };
    let name = format!("{}{}", desired.generate_name(), random_suffix());
    let signature = STANDARD.encode(key.sign(&statement(&name, &request.spec.request.0)));
    request.metadata.generate_name = None;
    request.metadata.name = Some(name);
    request.annotations_mut().insert(CERTIFICATE_ANNOTATION.into(), certificate);
    request.annotations_mut().insert(SIGNATURE_ANNOTATION.into(), signature);
    request
}

/// The certificate in the secret and its key, if they belong together and to this agent.
fn former(secret: &Secret, desired: &DesiredCertificate) -> Option<(String, PrivateKey)> {
    let text = |key: &str| String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok();
    let (certificate, key) = (text(KEY_TLS_CERT)?, text(KEY_TLS_KEY)?);
    let bundle = Bundle::parse(certificate.as_bytes()).ok()?;
    bundle.check_key(&key).ok()?;
    bundle.is_for(&desired.subject).then(|| PrivateKey::from_pem(&key)).flatten().map(|key| (certificate, key))
}

fn random_suffix() -> String {
    let mut random = rand::rng();
    (0..SUFFIX_LENGTH).map(|_| char::from(CHARACTERS[random.random_range(0..CHARACTERS.len())])).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::ByteString;
    use ocm_api::secrets;
    use ocm_runtime::ObjectKey;

    use super::{super::csr, *};
    use crate::{agent::Names, registration::certificate::plan::tests::credentials};

    fn names(agent: &str) -> Names {
        Names { cluster: "cluster1".into(), agent: agent.into() }
    }

    fn desired() -> DesiredCertificate {
        let desired =
            DesiredCertificate::own(&names("9hdnf"), ObjectKey::new("agent", secrets::HUB_KUBECONFIG), None, None);
        DesiredCertificate { is_recovery: true, ..desired }
    }

    fn proved(desired: &DesiredCertificate, data: BTreeMap<String, ByteString>) -> CertificateSigningRequest {
        let request = csr::request(desired, &PrivateKey::generate()).unwrap();
        with_proof(request, desired, Some(&Secret { data: Some(data), ..Secret::default() }))
    }

    #[test]
    fn the_former_key_signs_the_request_and_its_name() {
        let former = credentials(&names("9hdnf"));
        let request = proved(&desired(), desired().secret_data(&former, None));
        let name = request.name_any();
        assert!(name.starts_with("cluster1-") && request.metadata.generate_name.is_none(), "{name}");
        assert_eq!(request.annotations()[CERTIFICATE_ANNOTATION].as_bytes(), former.certificate);
        let signature = STANDARD.decode(&request.annotations()[SIGNATURE_ANNOTATION]).unwrap();
        let key = p256::SecretKey::from_sec1_pem(&former.key).unwrap();
        let key = p256::ecdsa::VerifyingKey::from(key.public_key());
        let signature = p256::ecdsa::DerSignature::from_bytes(&signature).unwrap();
        let signed = statement(&name, &request.spec.request.0);
        assert!(p256::ecdsa::signature::Verifier::verify(&key, &signed, &signature).is_ok());
    }

    #[test]
    fn without_a_certificate_of_the_same_agent_and_its_key_the_request_is_as_in_ocm() {
        let (own, other) = (credentials(&names("9hdnf")), credentials(&names("other")));
        let of = |certificate: &[u8], key: &str| {
            let data = [(KEY_TLS_CERT, certificate), (KEY_TLS_KEY, key.as_bytes())];
            data.map(|(name, data)| (name.to_owned(), ByteString(data.to_vec()))).into()
        };
        let first = DesiredCertificate { is_recovery: false, ..desired() };
        for (desired, data) in [
            (desired(), BTreeMap::new()),
            (desired(), of(&own.certificate, &other.key)),
            (desired(), of(&own.certificate, "garbage")),
            (desired(), of(&other.certificate, &other.key)),
            (first, of(&own.certificate, &own.key)),
        ] {
            let request = proved(&desired, data);
            assert_eq!(request.metadata.generate_name.as_deref(), Some("cluster1-"));
            assert!(request.metadata.name.is_none() && request.metadata.annotations.is_none());
        }
    }
}
