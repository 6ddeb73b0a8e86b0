//! OCM's debug endpoint of placements, `/debug/placements/`: how a placement is decided, also one that is not stored.
//!
//! It decides by the computation of the hub, from the same informers, on every replica. A request needs a bearer token whose
//! user may `get` or `post` the URL, and may `get` or `create` placements in the namespace, as in OCM.

mod response;

use std::sync::{Arc, OnceLock};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::any,
};
use jiff::Timestamp;
use k8s_openapi::Resource as _;
use k8s_openapi::api::{authentication::v1::UserInfo, authorization::v1::ResourceAttributes};
use kube::ResourceExt as _;
use ocm_api::cluster::{
    v1::ManagedCluster,
    v1alpha1::AddOnPlacementScore,
    v1beta1::{Placement, PlacementDecision},
    v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
};
use ocm_runtime::{
    Cache, Clock, Informers, ObjectKey,
    admin::{Access, Url, bearer_token},
    informer::{WatchFilter, Watchable},
};
use ocm_scheduler::{Objects, Snapshot, explain};
use tokio::sync::Semaphore;

use self::response::Answer;
use crate::caches;

/// Where it is served.
const PREFIX: &str = "/debug/placements/";
/// The URL that a rule allows.
const RULE: &str = "/debug/placements/*";
/// How large a placement in a request may be, as in OCM.
const LARGEST: usize = 1 << 20;
/// How many placements are decided at a time. Further requests wait.
const MAX_CONCURRENT: usize = 2;

/// The endpoint. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PlacementDebug {
    access: Arc<Access>,
    clock: Clock,
    caches: Arc<OnceLock<Caches>>,
    permits: Arc<Semaphore>,
}

/// What decisions depend on.
#[derive(Clone, Debug)]
struct Caches {
    placements: Cache<Placement>,
    clusters: Cache<ManagedCluster>,
    sets: Cache<ManagedClusterSet>,
    bindings: Cache<ManagedClusterSetBinding>,
    decisions: Cache<PlacementDecision>,
    scores: Cache<AddOnPlacementScore>,
}

/// Why a request is not answered, and its status code.
type Refused = (StatusCode, String);

impl PlacementDebug {
    /// An endpoint that answers once it has [informers](Self::start).
    #[must_use]
    pub fn new(access: Arc<Access>, clock: Clock) -> Self {
        Self { access, clock, caches: Arc::default(), permits: Arc::new(Semaphore::new(MAX_CONCURRENT)) }
    }

    /// Decides from the objects of these informers from now on.
    pub fn start(&self, informers: &Informers) {
        self.caches.get_or_init(|| Caches::of(informers));
    }

    /// The routes.
    pub fn router(&self) -> Router {
        let route = any(|State(debug): State<Self>, request: Request| async move { debug.respond(request).await });
        Router::new().route(PREFIX, route.clone()).route("/debug/placements/{*path}", route).with_state(self.clone())
    }

    async fn respond(&self, request: Request) -> Response {
        let (verb, path) = (request.method().as_str().to_lowercase(), request.uri().path().to_owned());
        let url = Url { verb: &verb, path: &path, rule: RULE };
        let user = match self.access.check(bearer_token(request.headers()), url).await {
            Ok(user) => user,
            Err(refusal) => return refusal.respond(json(&Answer::of_error(&refusal))),
        };
        match self.answer(request, &user, &path).await {
            Ok(answer) => json(&answer).into_response(),
            Err((code, error)) => (code, json(&Answer::of_error(&error))).into_response(),
        }
    }

    async fn answer(&self, request: Request, user: &UserInfo, path: &str) -> Result<Answer, Refused> {
        let method = request.method().clone();
        if method != Method::GET && method != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, format!("method {method} not allowed")));
        }
        let caches = self.synced()?;
        if method == Method::GET {
            let placement = caches.find(path)?;
            self.authorize(user, "get", &placement).await?;
            return self.decide(caches, placement).await;
        }
        let placement = Arc::new(read(request).await?);
        self.authorize(user, "create", &placement).await?;
        self.decide(caches, placement).await
    }

    fn synced(&self) -> Result<&Caches, Refused> {
        let starting = || {
            let cause = "the hub is still reading its objects: try again in a few seconds";
            (StatusCode::SERVICE_UNAVAILABLE, cause.to_owned())
        };
        self.caches.get().filter(|caches| caches.are_synced()).ok_or_else(starting)
    }

    async fn authorize(&self, user: &UserInfo, verb: &str, placement: &Placement) -> Result<(), Refused> {
        let namespace = placement.namespace().unwrap_or_default();
        let attributes = ResourceAttributes {
            group: Some(Placement::GROUP.into()),
            version: Some(Placement::VERSION.into()),
            resource: Some(Placement::URL_PATH_SEGMENT.into()),
            namespace: Some(namespace.clone()),
            verb: Some(verb.into()),
            ..ResourceAttributes::default()
        };
        let name = user.username.as_deref().unwrap_or_default();
        match self.access.may(user, attributes).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                let cause = format!(
                    "{name} may not {verb} placements in namespace {namespace:?}: grant it, for example with kubectl create \
                     role NAME --verb={verb} --resource=placements.cluster.open-cluster-management.io and a role binding"
                );
                Err((StatusCode::FORBIDDEN, cause))
            }
            Err(cause) => Err((StatusCode::INTERNAL_SERVER_ERROR, cause)),
        }
    }

    async fn decide(&self, caches: &Caches, placement: Arc<Placement>) -> Result<Answer, Refused> {
        // Never closed, so this only waits.
        let permit = self.permits.clone().acquire_owned().await;
        let (caches, now) = (caches.clone(), self.clock.now());
        let decided = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let snapshot = caches.snapshot(&placement, now);
            Answer::of(&placement, &explain(&snapshot, now))
        });
        decided.await.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("the decision failed: {error}")))
    }
}

impl Caches {
    fn of(informers: &Informers) -> Self {
        Self {
            placements: informers.all(WatchFilter::all()),
            clusters: caches::clusters(informers),
            sets: caches::sets(informers),
            bindings: caches::set_bindings(informers),
            decisions: informers.all(WatchFilter::all()),
            scores: informers.all(WatchFilter::all()),
        }
    }

    fn are_synced(&self) -> bool {
        let Self { placements, clusters, sets, bindings, decisions, scores } = self;
        placements.is_synced()
            && clusters.is_synced()
            && sets.is_synced()
            && bindings.is_synced()
            && decisions.is_synced()
            && scores.is_synced()
    }

    /// The placement of a path.
    fn find(&self, path: &str) -> Result<Arc<Placement>, Refused> {
        let bad = |cause: &str| (StatusCode::BAD_REQUEST, format!("invalid debug path: {cause}"));
        let key = path.strip_prefix(PREFIX).unwrap_or_default();
        let (namespace, name) = key.split_once('/').ok_or_else(|| bad("namespace and name required"))?;
        if name.contains('/') {
            return Err(bad(&format!("{key:?} is not a namespace and a name")));
        }
        if namespace.is_empty() || name.is_empty() {
            return Err(bad("namespace and name required"));
        }
        let placement = self.placements.get(&ObjectKey::new(namespace, name));
        placement.ok_or_else(|| (StatusCode::NOT_FOUND, format!("placement '{name}' not found")))
    }

    fn snapshot(&self, placement: &Placement, now: Timestamp) -> Snapshot {
        let bindings = self.bindings.in_namespace(&placement.namespace().unwrap_or_default());
        let objects = Objects {
            clusters: &owned(self.clusters.list()),
            sets: &owned(self.sets.list()),
            bindings: &owned(bindings),
            decisions: &owned(self.decisions.list()),
            scores: &owned(self.scores.list()),
        };
        Snapshot::of(placement, &objects, now)
    }
}

fn owned<K: Watchable>(objects: Vec<Arc<K>>) -> Vec<K> {
    objects.into_iter().map(Arc::unwrap_or_clone).collect()
}

async fn read(request: Request) -> Result<Placement, Refused> {
    let bad = |cause: String| (StatusCode::BAD_REQUEST, cause);
    let body: Bytes = axum::body::to_bytes(request.into_body(), LARGEST)
        .await
        .map_err(|error| bad(format!("the request cannot be read, or has more than {LARGEST} bytes: {error}")))?;
    serde_json::from_slice(&body).map_err(|error| bad(format!("the request is no placement in JSON: {error}")))
}

fn json(answer: &Answer) -> impl axum::response::IntoResponse + use<> {
    let text = serde_json::to_string(answer).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text)
}

#[cfg(test)]
mod tests;
