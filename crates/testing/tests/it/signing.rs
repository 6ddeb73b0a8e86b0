use anyhow::Result;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use ocm_testing::{eventually, fixture, unique};
use p256::ecdsa::{DerSignature, SigningKey};
use p256::elliptic_curve::rand_core::OsRng;
use p256::pkcs8::LineEnding;
use x509_cert::builder::{Builder as _, RequestBuilder};
use x509_cert::der::EncodePem as _;
use x509_cert::name::Name;

#[tokio::test]
async fn an_approved_certificate_request_is_signed() -> Result<()> {
    let hub = fixture::hub();
    let requests: Api<CertificateSigningRequest> = Api::all(hub.client().await?);
    let name = unique("csr");
    requests.create(&PostParams::default(), &request(&name)?).await?;
    hub.kubectl(&["certificate", "approve", &name]).await?;
    let certificate = eventually("the request carries a certificate", || async {
        let status = requests.get(&name).await?.status;
        Ok::<_, kube::Error>(status.and_then(|status| status.certificate))
    });
    assert!(certificate.await?.0.starts_with(b"-----BEGIN CERTIFICATE-----"));
    Ok(())
}

fn request(name: &str) -> Result<CertificateSigningRequest> {
    let key = SigningKey::random(&mut OsRng);
    let subject: Name = "CN=someone".parse()?;
    let pem = RequestBuilder::new(subject, &key)?.build::<DerSignature>()?.to_pem(LineEnding::LF)?;
    Ok(CertificateSigningRequest {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem.into_bytes()),
            signer_name: "kubernetes.io/kube-apiserver-client".into(),
            usages: Some(vec!["digital signature".into(), "client auth".into()]),
            ..CertificateSigningRequestSpec::default()
        },
        ..CertificateSigningRequest::default()
    })
}
