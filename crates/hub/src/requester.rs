//! Who made a request, and what they may do, as the API server knows it.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    authentication::v1::UserInfo,
    authorization::v1::{ResourceAttributes, SubjectAccessReviewSpec},
};
use kube::Client;
use ocm_runtime::{Result, access};

/// A user as the API server knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requester {
    /// The user's name.
    pub(crate) user: String,
    pub(crate) uid: Option<String>,
    pub(crate) groups: Option<Vec<String>>,
    pub(crate) extra: Option<BTreeMap<String, Vec<String>>>,
}

impl Requester {
    /// Whether the API server allows it.
    ///
    /// # Errors
    /// If the API server does not answer a SubjectAccessReview.
    pub(crate) async fn may(&self, client: &Client, attributes: ResourceAttributes) -> Result<bool> {
        access::is_allowed(client, self.review(attributes)).await
    }

    pub(crate) fn review(&self, attributes: ResourceAttributes) -> SubjectAccessReviewSpec {
        SubjectAccessReviewSpec {
            user: Some(self.user.clone()),
            uid: self.uid.clone(),
            groups: self.groups.clone(),
            extra: self.extra.clone(),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        }
    }
}

impl From<&UserInfo> for Requester {
    fn from(user: &UserInfo) -> Self {
        let UserInfo { username, uid, groups, extra } = user.clone();
        Self { user: username.unwrap_or_default(), uid, groups, extra }
    }
}
