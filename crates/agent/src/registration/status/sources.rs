//! What is read from the managed cluster: nodes, properties, claims, namespaces, version.
//!
//! The status controller must run even if the managed cluster does not answer, so it does not wait for these informers; each
//! enqueues the key when it has synced, and at every change.

use std::{collections::BTreeSet, ops::ControlFlow, sync::Arc};

use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{Api, Client, core::PartialObjectMeta};
use ocm_api::{about::v1alpha1::ClusterProperty, cluster::v1alpha1::ClusterClaim, labels};
use ocm_runtime::{
    Cache, Change, Context, Informers, Queue, ResultExt as _,
    informer::{View, WatchFilter, Watchable},
};

use super::{
    StatusError, StatusSettings,
    claims::Statements,
    namespaces::{self, Action, Outcome},
    optional::OptionalKind,
    plan::Facts,
    resources::NodeSize,
};

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
    properties: OptionalKind<ClusterProperty>,
    claims: OptionalKind<ClusterClaim>,
}

impl Sources {
    pub(super) fn new(context: &Context, managed: &Informers, settings: &StatusSettings) -> Self {
        let label = labels::managed_namespace(&settings.hub_hash);
        let nodes = managed.all(WatchFilter::all());
        Self {
            context: context.clone(),
            sizes: nodes.view(|node| Some(Arc::new(NodeSize::of(node)))),
            nodes,
            namespaces: managed.metadata(WatchFilter::labelled(format!("{label}={}", namespaces::WANTED))),
            label,
            properties: OptionalKind::new(settings.reports_properties),
            claims: OptionalKind::new(settings.reports_claims),
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
        self.follow_when_served(&self.properties, queue, key);
        self.follow_when_served(&self.claims, queue, key);
    }

    fn follow_when_served<K: Watchable>(&self, kind: &OptionalKind<K>, queue: &Queue<String>, key: &str) {
        if !kind.is_on() {
            return;
        }
        let (sources, kind, queue, key) = (self.clone(), kind.clone(), queue.clone(), key.to_owned());
        self.context.spawn(async move {
            kind.served(sources.client(), || queue.add(key.clone())).await;
            let cache = sources.managed.all(WatchFilter::all());
            sources.follow(&cache, &queue, &key, |_| true);
            kind.watch(cache);
            queue.add(key);
        });
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

    /// Whether all informers have synced.
    pub(super) fn are_ready(&self) -> bool {
        let statements = self.properties.is_ready() && self.claims.is_ready();
        statements && self.nodes.is_synced() && self.namespaces.is_synced()
    }

    pub(super) async fn facts(&self) -> Result<Facts, StatusError> {
        let version = self.client().apiserver_version().await;
        let version = version.while_trying_to("get", || "the version of the managed cluster".into())?;
        let statements = Statements { properties: self.properties.list(), claims: self.claims.list() };
        Ok(Facts { version: version.git_version, nodes: self.node_sizes(), statements, namespaces: self.labelled() })
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
