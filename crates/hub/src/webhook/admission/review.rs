//! AdmissionReviews: what an API server asks, and what it is answered.

use kube::core::{
    DynamicObject,
    admission::{AdmissionRequest, AdmissionResponse, AdmissionReview},
};

use super::{
    super::review::{self, Answer, Review, ReviewError},
    refusal::Verdict,
};

/// The reviews of admission webhooks.
const REVIEW: Review = Review { group: "admission.k8s.io", kind: "AdmissionReview" };

/// Reads the request of a review.
pub(super) fn read(body: &[u8]) -> Result<AdmissionRequest<DynamicObject>, ReviewError> {
    let review: AdmissionReview<DynamicObject> = REVIEW.read(body)?;
    REVIEW.check(&review.types)?;
    review.try_into().map_err(|_| REVIEW.no_request())
}

/// Writes the review that answers a request.
pub(super) fn write(request: &AdmissionRequest<DynamicObject>, verdict: Verdict) -> Result<Answer, ReviewError> {
    let mut response = AdmissionResponse::from(request);
    let mut failure = None;
    match verdict {
        Ok(patch) if patch.is_empty() => {}
        Ok(patch) => {
            response = response.with_patch(patch).map_err(|error| ReviewError::Unwritable(error.to_string()))?;
        }
        Err(refusal) => {
            response = response.deny(&refusal.message);
            response.result = refusal.status();
            failure = Some(format!("{} {}: {}", request.kind.kind, request.name, refusal.message));
        }
    }
    Ok(Answer { body: review::json(&response.into_review())?, failure })
}
