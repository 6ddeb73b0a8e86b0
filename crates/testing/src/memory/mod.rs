//! A managed cluster in memory: see [`MemoryCluster`].
//!
//! A request is read (`call`), answered under one lock (`read`, `create`, `update`, `delete`) from the objects
//! in `store`, which also keeps the latest changes for `watch`. `failure` has the errors.

mod answer;
mod call;
mod create;
mod delete;
mod discovery;
mod failure;
mod kinds;
mod meta;
mod namespaces;
mod read;
mod select;
mod store;
mod update;
mod watch;

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::sync::watch as signal;
use tower::Service;

use self::answer::Answer;
pub use self::answer::AnswerBody;
use self::call::Call;
use self::failure::Failure;
pub use self::kinds::Kind;
use self::store::State;

/// A managed cluster in memory, for fleets: as much of the Kubernetes API as agents and their works
/// need, answered in this process. Cheap to clone: all clones are the same cluster.
///
/// ```no_run
/// # async fn example() -> anyhow::Result<()> {
/// use k8s_openapi::api::core::v1::Namespace;
/// use ocm_testing::MemoryCluster;
///
/// let cluster = MemoryCluster::new();
/// let namespaces = kube::Api::<Namespace>::all(cluster.client("default"));
/// assert!(namespaces.get_opt("kube-system").await?.is_some());
/// # Ok(())
/// # }
/// ```
///
/// It is a [`tower::Service`] that answers the requests a kube-apiserver would get, so a `kube::Client`
/// over it is like any other. Objects are created, read, listed, watched (from a resource version,
/// with bookmarks, or with initial events), replaced, merge-patched and deleted as there: uids,
/// resource versions, generations, finalizers, preconditions, label selectors, `metadata.name` fields,
/// metadata-only responses, dry runs, and errors as Status objects. Tests compare its responses with those
/// of a real kube-apiserver.
///
/// It neither authenticates nor authorizes; specs are neither validated nor
/// completed with defaults, apart from a few fields of namespaces and secrets; there is no garbage
/// collection; lists have no pages; patches other than
/// merge patches are refused with 415.
#[derive(Clone)]
pub struct MemoryCluster {
    kinds: Arc<[Kind]>,
    state: Arc<Mutex<State>>,
    /// The newest resource version, for watches.
    newest: Arc<signal::Sender<u64>>,
}

impl fmt::Debug for MemoryCluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryCluster").field("version", &self.lock().version()).finish_non_exhaustive()
    }
}

impl Default for MemoryCluster {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryCluster {
    /// A cluster with the namespaces every cluster has, which serves [`Kind::ALL`].
    pub fn new() -> Self {
        Self::serving(Kind::ALL)
    }

    /// A cluster that serves these kinds. Namespaces should be among them.
    pub fn serving(kinds: &[Kind]) -> Self {
        let cluster = Self {
            kinds: kinds.into(),
            state: Arc::new(Mutex::new(State::default())),
            newest: Arc::new(signal::Sender::new(0)),
        };
        namespaces::create_initial(&cluster.kinds, &mut cluster.lock());
        cluster
    }

    /// A client of this cluster with a default namespace, for the Tokio runtime this is called on.
    pub fn client(&self, namespace: &str) -> Client {
        Client::new(self.clone(), namespace)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let (head, body) = request.into_parts();
        let answer = match body.collect_bytes().await {
            Ok(body) => self.handle(&head, &body),
            Err(error) => Err(Failure::bad_request(format!("failed to read the request's body: {error}"))),
        };
        answer.unwrap_or_else(Answer::from)
    }

    fn handle(&self, head: &Parts, body: &[u8]) -> Result<Answer, Failure> {
        if let Some(answer) = discovery::answer(&self.kinds, head.uri.path()) {
            return Ok(answer);
        }
        let call = Call::read(&self.kinds, head)?;
        if head.method == Method::GET && call.name.is_none() && call.query.flag("watch") {
            return watch::start(self, &call);
        }
        let mut state = self.lock();
        let answer = self.respond(&mut state, head, &call, body);
        self.newest.send_if_modified(|newest| std::mem::replace(newest, state.version()) != state.version());
        answer
    }

    fn respond(&self, state: &mut State, head: &Parts, call: &Call, body: &[u8]) -> Result<Answer, Failure> {
        match (&head.method, &call.name) {
            (&Method::GET, None) => read::list(state, call),
            (&Method::GET, Some(name)) => read::get(state, call, name),
            (&Method::POST, None) => create::create(&self.kinds, state, call, body),
            (&Method::PUT, Some(name)) => update::replace(&self.kinds, state, call, name, body),
            (&Method::PATCH, Some(name)) => update::patch(&self.kinds, state, call, name, head, body),
            (&Method::DELETE, Some(name)) => delete::delete(&self.kinds, state, call, name, body),
            (&Method::DELETE, None) => delete::delete_all(&self.kinds, state, call),
            _ => Err(Failure::method_not_allowed()),
        }
    }
}

impl Service<Request<Body>> for MemoryCluster {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let cluster = self.clone();
        async move { Ok(cluster.answer(request).await.into_response()) }.boxed()
    }
}
