//! Requests with a proof, as everyone with a bootstrap token may write them, and the record of former recoveries.
#![no_main]

use k8s_openapi::{
    api::{certificates::v1::CertificateSigningRequest, core::v1::Namespace},
    jiff::Timestamp,
};
use libfuzzer_sys::fuzz_target;
use ocm_hub::recovery_fuzzing::recovers;
use ocm_runtime::pki::ClientCertificate;

fuzz_target!(|data: &[u8]| {
    let now = Timestamp::UNIX_EPOCH;
    if let Ok(certificate) = ClientCertificate::verify(data, data, now) {
        assert!(certificate.not_before() <= now);
    }
    type Input = (CertificateSigningRequest, Namespace, String);
    if let Ok((request, namespace, authorities)) = serde_json::from_slice::<Input>(data) {
        let _ = recovers(&request, &namespace, &authorities, now);
        assert!(!recovers(&request, &namespace, "", now), "it recovered without an authority");
    }
});
