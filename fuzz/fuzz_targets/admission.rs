//! AdmissionReviews, as an API server, or everyone who reaches the webhook, may send them.
#![no_main]

use k8s_openapi::jiff::Timestamp;
use kube::core::{DynamicObject, admission::AdmissionReview};
use libfuzzer_sys::fuzz_target;
use ocm_hub::webhook::admission::{Admission, Webhook};
use ocm_runtime::feature_gates::FeatureGates;

fuzz_target!(|data: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime is built");
    // Without a client, so that everything that takes a right is refused. With a limit that the fuzzer reaches.
    let admission = Admission::new(None, FeatureGates::default()).with_manifest_limit(1000);
    for webhook in Webhook::ALL {
        let answer = runtime.block_on(admission.answer(webhook, data, Timestamp::UNIX_EPOCH));
        let Ok(answer) = answer else { continue };
        let asked: AdmissionReview<DynamicObject> = serde_json::from_slice(data).expect("what is answered was a review");
        let reply: AdmissionReview<DynamicObject> = serde_json::from_slice(&answer.body).expect("the answer is a review");
        let response = reply.response.expect("it is answered");
        assert_eq!(asked.request.expect("it was asked").uid, response.uid);
        assert_eq!(response.allowed, answer.failure.is_none());
        assert!(response.allowed || response.patch.is_none(), "what is refused is not changed");
    }
});
