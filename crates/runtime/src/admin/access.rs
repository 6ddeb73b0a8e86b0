//! Authorizes requests through the API server: a `TokenReview` authenticates the bearer token, and a `SubjectAccessReview`
//! authorizes its user. Client certificates are not requested.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http::{HeaderMap, header};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, ResourceAttributes, SubjectAccessReviewSpec},
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
pub enum Refusal {
    /// The request is not authenticated.
    #[error("{0}")]
    Unknown(String),
    /// The user is authenticated but not authorized.
    #[error("{0}")]
    Forbidden(String),
}

/// The user who is authorized, as the API server knows them.
type Verdict = std::result::Result<Arc<UserInfo>, Refusal>;

/// What a user wants to do with a non-resource URL.
#[derive(Clone, Copy, Debug)]
pub struct Url<'a> {
    /// The HTTP method in lower case.
    pub verb: &'a str,
    /// The path of the request.
    pub path: &'a str,
    /// The URL of a rule that allows this path, for the advice to those who may not.
    pub rule: &'a str,
}

impl<'a> Url<'a> {
    /// The verb `get` of a path that is named in full in a rule.
    #[must_use]
    pub fn get(path: &'a str) -> Self {
        Self { verb: "get", path, rule: path }
    }
}

/// Authenticates and authorizes requests through the API server.
pub struct Access {
    client: Client,
    permits: Semaphore,
    cache: Mutex<HashMap<Key, (Instant, Verdict)>>,
}

/// A verb, a path, and the token's hash: tokens themselves are not kept.
type Key = (String, String, [u8; 32]);

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

    /// The bearer of `token`, if they may do that with a non-resource URL.
    ///
    /// # Errors
    /// [`Refusal`] if they may not, or that is not known.
    pub async fn check(&self, token: Option<&str>, url: Url<'_>) -> Verdict {
        let path = url.path;
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            return Err(Refusal::Unknown(format!(
                "{path} requires authentication: send the header Authorization: Bearer TOKEN, with the token of an account \
                 that may {} the non-resource URL {}",
                url.verb, url.rule
            )));
        };
        let key = (url.verb.to_owned(), path.to_owned(), Sha256::digest(token).into());
        if let Some(verdict) = self.cached(&key) {
            return verdict;
        }
        let verdict = match timeout(TIMEOUT, self.review(token, url)).await {
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
    async fn review(&self, token: &str, url: Url<'_>) -> std::result::Result<Verdict, Refusal> {
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
            self.review_access(&user, url).await.map_err(|error| Refusal::Forbidden(review_failed(&error)))?;
        Ok(if allowed { Ok(Arc::new(user)) } else { Err(Refusal::Forbidden(forbidden(&name, url))) })
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

    async fn review_access(&self, user: &UserInfo, url: Url<'_>) -> Result<bool> {
        let attributes = NonResourceAttributes { path: Some(url.path.into()), verb: Some(url.verb.into()) };
        let spec = SubjectAccessReviewSpec { non_resource_attributes: Some(attributes), ..spec_of(user) };
        access::is_allowed(&self.client, spec).await
    }

    /// Whether a user may do something with an object. The answer is not cached.
    ///
    /// # Errors
    /// The answer to the user, if the API server did not say.
    pub async fn may(&self, user: &UserInfo, attributes: ResourceAttributes) -> std::result::Result<bool, String> {
        let spec = SubjectAccessReviewSpec { resource_attributes: Some(attributes), ..spec_of(user) };
        let review = async {
            // Never closed, so this only waits.
            let _permit = self.permits.acquire().await;
            access::is_allowed(&self.client, spec).await
        };
        match timeout(TIMEOUT, review).await {
            Ok(answer) => answer.map_err(|error| review_failed(&error)),
            Err(_) => Err("the API server did not answer in time, try again".into()),
        }
    }
}

/// A review of this user's rights.
fn spec_of(user: &UserInfo) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: user.username.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user.extra.clone().map(BTreeMap::from_iter),
        ..SubjectAccessReviewSpec::default()
    }
}

/// The token of a request.
#[must_use]
pub fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn forbidden(user: &str, Url { verb, path, rule }: Url<'_>) -> String {
    format!(
        "{user} may not {verb} {path}: bind it to a ClusterRole with verb {verb} on the non-resource URL {rule}, for example \
         one made with kubectl create clusterrole NAME --verb={verb} --non-resource-url={rule}"
    )
}

/// The answer if the review itself failed; the details are for our own log.
fn review_failed(error: &Error) -> String {
    warn!(error = %chain(error), "cannot authorize requests");
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
