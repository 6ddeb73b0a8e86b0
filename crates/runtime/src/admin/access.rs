//! Authorizes requests for metrics through the API server: a `TokenReview` authenticates the bearer token, and a
//! `SubjectAccessReview` authorizes its user. Client certificates are not requested.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReviewSpec},
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use sha2::{Digest as _, Sha256};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};
use tracing::warn;

use crate::{
    access,
    error::{Error, Result, ResultExt as _, chain},
};

/// How long a verdict of the API server is cached.
const CACHE_TTL: Duration = Duration::from_secs(10);
/// How many verdicts are cached.
const CAPACITY: usize = 1000;
/// How many reviews run concurrently, so that clients cannot make this process flood the API server.
const MAX_CONCURRENT: usize = 4;
/// How long the API server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why a request is rejected, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// The request is not authenticated.
    #[error("{0}")]
    Unknown(String),
    /// The user is authenticated but not authorized.
    #[error("{0}")]
    Forbidden(String),
}

type Verdict = std::result::Result<(), Refusal>;

/// Authenticates and authorizes requests through the API server.
pub struct Access {
    client: Client,
    permits: Semaphore,
    cache: Mutex<HashMap<Key, (Instant, Verdict)>>,
}

/// A path, and the token's hash: tokens themselves are not kept.
type Key = (String, [u8; 32]);

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

impl Access {
    /// Sends reviews with `client`, whose identity needs `create` on tokenreviews.authentication.k8s.io and
    /// subjectaccessreviews.authorization.k8s.io.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, permits: Semaphore::new(MAX_CONCURRENT), cache: Mutex::default() }
    }

    /// Whether the bearer of `token` may `get` the non-resource URL `path`.
    pub(super) async fn check(&self, token: Option<&str>, path: &str) -> Verdict {
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            return Err(Refusal::Unknown(format!(
                "{path} requires authentication: send the header Authorization: Bearer TOKEN, with the token of an account \
                 that may get the non-resource URL {path}"
            )));
        };
        let key = (path.to_owned(), Sha256::digest(token).into());
        if let Some(verdict) = self.cached(&key) {
            return verdict;
        }
        let verdict = match timeout(TIMEOUT, self.review(token, path)).await {
            Ok(verdict) => verdict?,
            Err(_) => return Err(Refusal::Unknown("the API server did not answer in time, try again".into())),
        };
        self.insert(key, verdict.clone());
        verdict
    }

    fn cached(&self, key: &Key) -> Option<Verdict> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(key).filter(|(at, _)| at.elapsed() < CACHE_TTL).map(|(_, verdict)| verdict.clone())
    }

    fn insert(&self, key: Key, verdict: Verdict) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= CAPACITY {
            cache.retain(|_, (at, _)| at.elapsed() < CACHE_TTL);
        }
        if cache.len() < CAPACITY {
            cache.insert(key, (Instant::now(), verdict));
        }
    }

    /// The API server's verdict; the outer error means that there was none, and is not cached.
    async fn review(&self, token: &str, path: &str) -> std::result::Result<Verdict, Refusal> {
        // Never closed, so this only waits.
        let _permit = self.permits.acquire().await;
        let user = self.review_token(token).await.map_err(|error| Refusal::Unknown(review_failed(&error)))?;
        let Some(user) = user else {
            let message = "the API server does not know this token: it may have expired; get a new one, for example with \
                           kubectl create token";
            return Ok(Err(Refusal::Unknown(message.into())));
        };
        let name = user.username.clone().unwrap_or_default();
        let allowed =
            self.review_access(user, path).await.map_err(|error| Refusal::Forbidden(review_failed(&error)))?;
        Ok(if allowed { Ok(()) } else { Err(Refusal::Forbidden(forbidden(&name, path))) })
    }

    async fn review_token(&self, token: &str) -> Result<Option<UserInfo>> {
        let spec = TokenReviewSpec { token: Some(token.into()), ..TokenReviewSpec::default() };
        let review = TokenReview { metadata: ObjectMeta::default(), spec, status: None };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await;
        let status = answer.while_trying_to("create", || "tokenreviews.authentication.k8s.io".into())?.status;
        let known = status.filter(|status| status.authenticated == Some(true));
        Ok(known.and_then(|status| status.user))
    }

    async fn review_access(&self, user: UserInfo, path: &str) -> Result<bool> {
        let attributes = NonResourceAttributes { path: Some(path.into()), verb: Some("get".into()) };
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra.map(BTreeMap::from_iter),
            non_resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        access::is_allowed(&self.client, spec).await
    }
}

fn forbidden(user: &str, path: &str) -> String {
    format!(
        "{user} may not get {path}: bind it to a ClusterRole with verb get on the non-resource URL {path}, for example \
         one made with kubectl create clusterrole NAME --verb=get --non-resource-url={path}"
    )
}

/// The answer if the review itself failed; the details are for our own log.
fn review_failed(error: &Error) -> String {
    warn!(error = %chain(error), "cannot authorize requests for metrics");
    let advice = if error.is_denied() {
        "grant the account of this process create on tokenreviews.authentication.k8s.io and \
         subjectaccessreviews.authorization.k8s.io (see deploy/)"
    } else {
        "its log says why; try again"
    };
    format!("this process cannot authenticate and authorize requests through the API server: {advice}")
}

#[cfg(test)]
mod tests;
