//! ConversionReviews from an API server, or from any client that reaches the webhook.
#![no_main]

use kube::core::conversion::ConversionReview;
use libfuzzer_sys::fuzz_target;
use ocm_api::addon::convert::convert;
use ocm_hub::webhook::conversion;

fuzz_target!(|data: &[u8]| {
    let Ok(answer) = conversion::answer(data) else { return };
    let asked: ConversionReview = serde_json::from_slice(data).expect("what is answered was a review");
    let told: ConversionReview = serde_json::from_slice(&answer.body).expect("the answer is a review");
    let (asked, told) = (asked.request.expect("it was asked"), told.response.expect("it is answered"));
    assert_eq!(asked.uid, told.uid);
    if answer.failure.is_some() {
        assert!(told.converted_objects.is_empty());
        return;
    }
    assert_eq!(asked.objects.len(), told.converted_objects.len());
    for (before, after) in asked.objects.iter().zip(told.converted_objects) {
        assert_eq!(before.pointer("/metadata/name"), after.pointer("/metadata/name"));
        let version = before["apiVersion"].as_str().expect("what is converted has a version");
        let Ok(once) = convert(after, version) else { continue };
        let again = convert(once.clone(), &asked.desired_api_version).and_then(|there| convert(there, version));
        assert!(again.is_err() || again == Ok(once), "a second round trip changes nothing");
    }
});
