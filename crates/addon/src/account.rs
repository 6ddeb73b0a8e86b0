//! The service account that an agent runs as on its own cluster.

use k8s_openapi::{
    Resource as _,
    api::{
        authentication::v1::{SelfSubjectReview, UserInfo},
        core::v1::ServiceAccount,
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Api, Client};
use ocm_api::identities;
use ocm_runtime::{Error, write};

/// The service account that a client acts as, if it is one in that namespace. `None` also for old clusters, and for those
/// that do not permit the question.
pub(crate) async fn of(client: &Client, namespace: &str) -> Result<Option<OwnerReference>, Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = match write::create(&reviews, &SelfSubjectReview::default()).await {
        Ok(review) => review,
        Err(error) if error.is_not_found() || error.is_denied() => return Ok(None),
        Err(error) => return Err(error),
    };
    let user = review.status.and_then(|status| status.user_info).unwrap_or_default();
    Ok(account(&user, namespace))
}

fn account(user: &UserInfo, namespace: &str) -> Option<OwnerReference> {
    let name = user.username.as_deref()?.strip_prefix(&identities::service_account_user(namespace, ""))?;
    Some(OwnerReference {
        api_version: ServiceAccount::API_VERSION.into(),
        kind: ServiceAccount::KIND.into(),
        name: name.into(),
        uid: user.uid.clone()?,
        ..OwnerReference::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_service_account_of_the_agents_own_namespace_owns_things_there() {
        let user = |name: &str| UserInfo { username: Some(name.into()), uid: Some("u".into()), ..UserInfo::default() };
        let owner = account(&user("system:serviceaccount:n:hello"), "n").unwrap();
        let expected = ("v1", "ServiceAccount", "hello", "u");
        assert_eq!((&*owner.api_version, &*owner.kind, &*owner.name, &*owner.uid), expected);
        for other in ["system:serviceaccount:other:hello", "system:admin", ""] {
            assert_eq!(account(&user(other), "n"), None, "{other}");
        }
    }
}
