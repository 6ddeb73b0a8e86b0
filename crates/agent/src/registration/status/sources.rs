//! What is read from the managed cluster: nodes, claims, namespaces, version.
//!
//! The status controller must run even if the managed cluster does not answer, so it does not wait for these informers; each
//! enqueues the key when it has synced, and at every change.

use std::{
    collections::BTreeSet,
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{Api, Client, core::PartialObjectMeta};
use ocm_api::{cluster::v1alpha1::ClusterClaim, labels};
use ocm_runtime::{
    Cache, Change, Context, Informers, Queue, ResultExt as _,
    error::chain,
    informer::{View, WatchFilter, Watchable},
};
use tracing::{info, warn};

use super::{
    StatusError, StatusSettings,
    namespaces::{self, Action, Outcome},
    plan::Facts,
    resources::NodeSize,
};
use crate::registration::list_one;

/// How often it checks whether the cluster serves ClusterClaims.
const CLAIMS_RECHECK: Duration = Duration::from_secs(60);
/// How soon it checks again if the cluster did not answer.
const RETRY: Duration = Duration::from_secs(5);

/// What is read from the managed cluster. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Sources {
    context: Context,
    managed: Informers,
    nodes: Cache<Node>,
    /// What their sums need of them.
    sizes: View<Arc<NodeSize>>,
    namespaces: Cache<PartialObjectMeta<Namespace>>,
    /// The label of namespaces that cluster sets of this hub require.
    label: String,
    claims: Arc<Mutex<Claims>>,
}

/// The state of the informer for ClusterClaims.
#[derive(Clone)]
enum Claims {
    /// The feature gate is off.
    Off,
    /// Not known yet whether the cluster serves them.
    Unknown,
    /// The cluster does not serve them, or the agent may not list them.
    None,
    Watched(Cache<ClusterClaim>),
}

impl Sources {
    pub(super) fn new(context: &Context, managed: &Informers, settings: &StatusSettings) -> Self {
        let label = labels::managed_namespace(&settings.hub_hash);
        let claims = settings.claims.as_ref().map_or(Claims::Off, |_| Claims::Unknown);
        let nodes = managed.all(WatchFilter::all());
        Self {
            context: context.clone(),
            sizes: nodes.view(|node| Some(Arc::new(NodeSize::of(node)))),
            nodes,
            namespaces: managed.metadata(WatchFilter::labelled(format!("{label}={}", namespaces::WANTED))),
            label,
            claims: Arc::new(Mutex::new(claims)),
            managed: managed.clone(),
        }
    }

    pub(super) fn client(&self) -> &Client {
        self.managed.client()
    }

    /// Enqueues `key` at every change.
    pub(super) fn setup(&self, queue: &Queue<String>, key: &str) {
        self.follow(&self.nodes, queue, key, |change| match change {
            Change::Updated { old, new } => NodeSize::of(old) != NodeSize::of(new),
            _ => true,
        });
        self.follow(&self.namespaces, queue, key, |_| true);
        if matches!(self.claims(), Claims::Unknown) {
            let (sources, queue, key) = (self.clone(), queue.clone(), key.to_owned());
            self.context.spawn(async move { sources.find_claims(&queue, &key).await });
        }
    }

    fn follow<T: Watchable>(
        &self,
        cache: &Cache<T>,
        queue: &Queue<String>,
        key: &str,
        matters: impl Fn(Change<'_, T>) -> bool + Send + 'static,
    ) {
        let (on_change, name, context) = (queue.clone(), key.to_owned(), self.context.clone());
        cache.subscribe(move |change| {
            if context.is_ended() {
                return ControlFlow::Break(());
            }
            if matters(change) {
                on_change.add(name.clone());
            }
            ControlFlow::Continue(())
        });
        let (cache, queue, key) = (cache.clone(), queue.clone(), key.to_owned());
        self.context.spawn(async move {
            cache.synced().await;
            queue.add(key);
        });
    }

    fn claims(&self) -> Claims {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_claims(&self, claims: Claims) {
        *self.claims.lock().unwrap_or_else(PoisonError::into_inner) = claims;
    }

    /// Watches ClusterClaims once the cluster serves them: the CRD may be installed later, or never.
    async fn find_claims(&self, queue: &Queue<String>, key: &str) {
        let mut is_logged = false;
        loop {
            let pause = match list_one(&Api::<ClusterClaim>::all(self.client().clone())).await {
                Ok(()) => break,
                Err(error) if error.is_not_found() || error.is_denied() => {
                    if !std::mem::replace(&mut is_logged, true) {
                        log_no_claims(&error);
                    }
                    self.set_claims(Claims::None);
                    queue.add(key.to_owned());
                    CLAIMS_RECHECK
                }
                Err(error) => {
                    warn!(error = %chain(&error), retry_in = ?RETRY, "cannot check whether the cluster serves ClusterClaims");
                    RETRY
                }
            };
            tokio::time::sleep(pause).await;
        }
        let cache = self.managed.all(WatchFilter::all());
        self.follow(&cache, queue, key, |_| true);
        self.set_claims(Claims::Watched(cache));
        queue.add(key.to_owned());
    }

    /// Whether all informers have synced.
    pub(super) fn are_ready(&self) -> bool {
        let claims = match self.claims() {
            Claims::Off | Claims::None => true,
            Claims::Unknown => false,
            Claims::Watched(cache) => cache.is_synced(),
        };
        claims && self.nodes.is_synced() && self.namespaces.is_synced()
    }

    pub(super) async fn facts(&self) -> Result<Facts, StatusError> {
        let version = self.client().apiserver_version().await;
        let version = version.while_trying_to("get", || "the version of the managed cluster".into())?;
        let claims = match self.claims() {
            Claims::Watched(cache) => cache.list(),
            Claims::Off | Claims::None | Claims::Unknown => Vec::new(),
        };
        Ok(Facts { version: version.git_version, nodes: self.node_sizes(), claims, namespaces: self.labelled() })
    }

    fn node_sizes(&self) -> Vec<Arc<NodeSize>> {
        self.sizes.read(|sizes| sizes.values().cloned().collect())
    }

    fn labelled(&self) -> BTreeSet<String> {
        self.namespaces.list().iter().filter_map(|namespace| namespace.metadata.name.clone()).collect()
    }

    pub(super) async fn manage(&self, actions: &[Action]) -> Vec<Outcome> {
        namespaces::apply(&Api::all(self.client().clone()), &self.label, actions).await
    }
}

fn log_no_claims(error: &ocm_runtime::Error) {
    let error = chain(error);
    info!(error, "reporting no ClusterClaims: this cluster does not serve them, or the agent may not list them");
}
