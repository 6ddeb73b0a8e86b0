//! What a user may do, as an API server knows it.

use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};

use crate::error::{Result, ResultExt as _};

/// Whether the API server allows what the review asks for. Needs the right to create SubjectAccessReviews.
///
/// # Errors
/// [`Error::Request`](crate::Error::Request) if the API server does not answer.
pub async fn is_allowed(client: &Client, spec: SubjectAccessReviewSpec) -> Result<bool> {
    let review = SubjectAccessReview { metadata: ObjectMeta::default(), spec, status: None };
    let answer = Api::<SubjectAccessReview>::all(client.clone()).create(&PostParams::default(), &review).await;
    let status = answer.while_trying_to("create", || "subjectaccessreviews.authorization.k8s.io".into())?.status;
    Ok(status.is_some_and(|status| status.allowed && status.denied != Some(true)))
}
