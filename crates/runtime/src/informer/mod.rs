//! One watch per kind, shared by every controller that needs it.
//!
//! [`Informers`] belongs to one client identity. Asking it twice for the same kind and scope gives the
//! same [`Cache`]: one watch on the wire, one copy in memory. A controller subscribes whenever it
//! likes: a late subscriber first sees every object that is already there.
//!
//! Guarantees: a subscriber sees every change once and in order, with the object before and after it, and is called while
//! no cache is locked, so it may use any cache. After a gap in the watch, the informer relists and reports the difference
//! like any other change. An object that cannot be read never stops the watch: it is logged, and stays as it was last read,
//! or is left out if it never was.

mod cache;
mod continuity;
mod delivery;
mod follow;
mod packed;
mod probe;
mod raw;
mod retry;
mod state;
mod view;

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt::{self, Debug, Display},
    sync::{Arc, Mutex, PoisonError},
};

use futures::StreamExt as _;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Resource,
    api::ObjectMeta,
    core::{ApiResource, PartialObjectMeta},
    runtime::watcher,
};
use serde::{Serialize, de::DeserializeOwned};

pub use self::{cache::Cache, continuity::Relists, retry::is_refused, view::View};
use self::{
    continuity::ContinuityCheck,
    follow::{Need, Watch, WatchedKind, follow},
    probe::Probe,
    raw::{RawObject, Read},
};
use crate::context::Context;

/// Namespace and name of an object; sorts by namespace first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl ObjectKey {
    /// The key of a namespaced object.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object.
    pub fn of<K: Resource>(object: &K) -> Self {
        key_of_meta(object.meta())
    }
}

impl Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// Which objects of a kind to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WatchFilter {
    /// Only objects that this label selector matches.
    pub labels: Option<String>,
    /// Only objects that this field selector matches, such as `metadata.name=a`.
    pub fields: Option<String>,
}

impl WatchFilter {
    /// Every object of the kind.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Only those that the label selector matches.
    pub fn labelled(selector: impl Into<String>) -> Self {
        Self { labels: Some(selector.into()), ..Self::default() }
    }

    /// Only the object of that name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { fields: Some(format!("metadata.name={name}")), ..Self::default() }
    }
}

/// A kind that can be watched. Implemented for all that qualify.
pub trait Watchable:
    Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
}
impl<K> Watchable for K where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
}

/// What happened to an object.
#[derive(Debug)]
pub enum Change<'a, K> {
    /// It is new, or was there when the subscriber came.
    Added(&'a Arc<K>),
    /// It changed.
    Updated {
        /// As it was.
        old: &'a Arc<K>,
        /// As it is.
        new: &'a Arc<K>,
    },
    /// It is gone; this is how it was last seen.
    Deleted(&'a Arc<K>),
}

impl<K> Clone for Change<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Change<'_, K> {}

impl<'a, K> Change<'a, K> {
    /// The object as it is, or as it was last seen.
    #[must_use]
    pub fn object(self) -> &'a Arc<K> {
        match self {
            Self::Added(object) | Self::Updated { new: object, .. } | Self::Deleted(object) => object,
        }
    }
}

/// Kind, namespace and scope of a cache.
type CacheKey = (TypeId, Option<String>, WatchFilter);

/// The watches of one client identity.
#[derive(Clone)]
pub struct Informers {
    client: Client,
    context: Context,
    caches: Arc<Mutex<HashMap<CacheKey, Box<dyn Any + Send>>>>,
    continuity: ContinuityCheck,
}

impl Debug for Informers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informers").finish_non_exhaustive()
    }
}

impl Informers {
    /// Informers made with `client`, which end with `context`.
    #[must_use]
    pub fn new(client: Client, context: Context) -> Self {
        let continuity = ContinuityCheck::new(context.clock().pauses());
        Self { client, context, caches: Arc::default(), continuity }
    }

    /// Informers of the same server that end with `context`, for a part of what these are for. They share one check of the
    /// server's continuity.
    #[must_use]
    pub fn part(&self, context: Context) -> Self {
        Self { context, caches: Arc::default(), ..self.clone() }
    }

    /// The client they are made with.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// When watches of the same server, made without these informers, are to begin again with a list though they have not
    /// failed.
    #[must_use]
    pub fn relists(&self) -> Relists {
        self.continuity.relists()
    }

    /// The cache of a kind in all namespaces; started on the first call.
    #[must_use]
    pub fn all<K: Watchable>(&self, filter: WatchFilter) -> Cache<K> {
        self.cache(None, filter, Need::Required)
    }

    /// Like [`Informers::all`], for a kind that need not be installed: readiness does not wait for it, and the log contains
    /// `hint`, which names what to install, while the API server does not serve it or forbids to watch it.
    #[must_use]
    pub fn optional<K: Watchable>(&self, filter: WatchFilter, hint: &'static str) -> Cache<K> {
        self.cache(None, filter, Need::Optional { hint })
    }

    /// The cache of a kind in one namespace; started on the first call.
    #[must_use]
    pub fn namespaced<K>(&self, namespace: &str, filter: WatchFilter) -> Cache<K>
    where
        K: Watchable + Resource<Scope = NamespaceResourceScope>,
    {
        self.cache(Some(namespace), filter, Need::Required)
    }

    /// The cache of the metadata of a kind in all namespaces, for kinds whose contents nobody reads.
    #[must_use]
    pub fn metadata<K: Watchable>(&self, filter: WatchFilter) -> Cache<PartialObjectMeta<K>> {
        self.entry(None, filter, |cache, config| {
            let read = |raw: RawObject<true>| raw.read().map(lean);
            self.start(None, read, cache, config, Need::Required);
        })
    }

    fn cache<K: Watchable>(&self, namespace: Option<&str>, filter: WatchFilter, need: Need) -> Cache<K> {
        self.entry(namespace, filter, |cache, config| {
            self.start::<false, K>(namespace, RawObject::read, cache, config, need);
        })
    }

    /// Starts the watch of a cache, which reads objects with `read`.
    fn start<const METADATA: bool, K: Watchable>(
        &self,
        namespace: Option<&str>,
        read: fn(RawObject<METADATA>) -> Read<K>,
        cache: Cache<K>,
        config: watcher::Config,
        need: Need,
    ) {
        let probe = Probe::new(&self.client, namespace, &config, &cache, read);
        self.continuity.check_by(&self.context, probe);
        let watch = self.watch(namespace, &ApiResource::erase::<K>(&()), config);
        let kind = WatchedKind { plural: K::plural(&()).into_owned(), need };
        follow(&self.context, &self.continuity, watch, read, cache, kind);
    }

    /// What begins a watch. It does not depend on the kind, so that it is compiled once.
    fn watch<const METADATA: bool>(
        &self,
        namespace: Option<&str>,
        resource: &ApiResource,
        config: watcher::Config,
    ) -> Watch<METADATA> {
        let client = self.client.clone();
        let api: Api<RawObject<METADATA>> = match namespace {
            None => Api::all_with(client, resource),
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
        };
        Box::new(move || watcher::watcher(api.clone(), config.clone()).boxed())
    }

    fn entry<K: Watchable>(
        &self,
        namespace: Option<&str>,
        filter: WatchFilter,
        start: impl FnOnce(Cache<K>, watcher::Config),
    ) -> Cache<K> {
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut config = watcher::Config::default();
        config.label_selector.clone_from(&filter.labels);
        config.field_selector.clone_from(&filter.fields);
        let key = (TypeId::of::<K>(), namespace.map(str::to_owned), filter);
        let entry = caches.entry(key).or_insert_with(|| {
            let cache = Cache::<K>::default();
            start(cache.clone(), config);
            Box::new(cache)
        });
        // The type is part of the map's key, so the box holds nothing else.
        entry.downcast_ref::<Cache<K>>().cloned().unwrap_or_default()
    }
}

/// The annotation in which kubectl keeps the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Metadata without the copy of the contents that kubectl puts there, and without the type, which lists leave out.
fn lean<K>(mut object: PartialObjectMeta<K>) -> PartialObjectMeta<K> {
    object.types = None;
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
    object
}

fn key_of_meta(meta: &ObjectMeta) -> ObjectKey {
    ObjectKey::new(meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests;
