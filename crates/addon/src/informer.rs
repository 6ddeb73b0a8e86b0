//! [`DynamicInformer`]: an informer of objects whose type is only known at run time.

use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::StreamExt as _;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    runtime::{WatchStreamExt as _, watcher, watcher::Event},
};
use ocm_runtime::{Context, ObjectKey, error::chain, informer::WatchFilter};
use tokio::sync::watch;
use tracing::warn;

/// An informer of objects whose type is only known at run time, from [`SetupContext::watch`](crate::SetupContext::watch).
/// Cheap to clone.
#[derive(Clone)]
pub struct DynamicInformer {
    objects: Arc<Mutex<Objects>>,
    is_synced: watch::Receiver<bool>,
}

#[derive(Default)]
struct Objects {
    current: BTreeMap<ObjectKey, Arc<DynamicObject>>,
    /// Objects of a list in progress.
    listed: BTreeMap<ObjectKey, Arc<DynamicObject>>,
}

impl fmt::Debug for DynamicInformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicInformer").field("objects", &self.lock().current.len()).finish_non_exhaustive()
    }
}

impl DynamicInformer {
    pub(crate) fn start(
        client: Client,
        context: &Context,
        resource: &ApiResource,
        filter: WatchFilter,
        on_change: impl Fn(&DynamicObject) + Send + Sync + 'static,
    ) -> Self {
        let api: Api<DynamicObject> = Api::all_with(client, resource);
        let config =
            watcher::Config { label_selector: filter.labels, field_selector: filter.fields, ..Default::default() };
        let (synced, is_synced) = watch::channel(false);
        let informer = Self { objects: Arc::default(), is_synced };
        let (shared, plural) = (informer.clone(), resource.plural.clone());
        let awaiting = context.health().awaiting(format!("informer of {plural}"));
        context.spawn(async move {
            let mut awaiting = Some(awaiting);
            let mut events = watcher(api, config).default_backoff().boxed();
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        let is_complete = matches!(event, Event::InitDone);
                        shared.take(event).iter().for_each(|object| call(&on_change, object));
                        if is_complete {
                            synced.send_replace(true);
                            awaiting = None;
                        }
                    }
                    Err(error) => warn!(error = %chain(&error), plural, "cannot watch, trying again"),
                }
            }
            drop(awaiting);
        });
        informer
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, event: Event<DynamicObject>) -> Vec<Arc<DynamicObject>> {
        self.lock().take(event)
    }

    /// The object, if it exists.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<DynamicObject>> {
        self.lock().current.get(key).cloned()
    }

    /// All objects.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<DynamicObject>> {
        self.lock().current.values().cloned().collect()
    }

    /// Waits until the objects that existed at the start are known.
    #[doc(alias = "WaitForCacheSync")]
    pub async fn synced(&self) {
        _ = self.is_synced.clone().wait_for(|is_synced| *is_synced).await;
    }
}

/// A panic of the author's code must not end the informer.
fn call(on_change: &impl Fn(&DynamicObject), object: &DynamicObject) {
    if catch_unwind(AssertUnwindSafe(|| on_change(object))).is_err() {
        warn!("the add-on's code panicked at a change of {}", key_of(object));
    }
}

impl Objects {
    /// Follows an event; returns the objects that were added, changed or deleted.
    fn take(&mut self, event: Event<DynamicObject>) -> Vec<Arc<DynamicObject>> {
        match event {
            Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                self.listed.insert(key_of(&object), Arc::new(object));
                Vec::new()
            }
            Event::InitDone => self.replace(),
            Event::Apply(object) => {
                let object = Arc::new(object);
                let former = self.current.insert(key_of(&object), object.clone());
                if former.is_some_and(|former| is_same(&former, &object)) { Vec::new() } else { vec![object] }
            }
            Event::Delete(object) => self.current.remove(&key_of(&object)).into_iter().collect(),
        }
    }

    fn replace(&mut self) -> Vec<Arc<DynamicObject>> {
        let new = std::mem::take(&mut self.listed);
        let old = std::mem::replace(&mut self.current, new);
        let is_new = |(key, object): &(&ObjectKey, &Arc<DynamicObject>)| {
            !old.get(*key).is_some_and(|former| is_same(former, object))
        };
        let changed = self.current.iter().filter(is_new).map(|(_, object)| object.clone());
        let deleted = old.iter().filter(|(key, _)| !self.current.contains_key(*key)).map(|(_, object)| object.clone());
        changed.chain(deleted).collect()
    }
}

fn is_same(one: &DynamicObject, other: &DynamicObject) -> bool {
    one.metadata.uid == other.metadata.uid && one.metadata.resource_version == other.metadata.resource_version
}

fn key_of(object: &DynamicObject) -> ObjectKey {
    let metadata = &object.metadata;
    ObjectKey::new(metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, version: &str) -> DynamicObject {
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
        let mut object = DynamicObject::new(name, &resource).within("n");
        object.metadata.resource_version = Some(version.into());
        object
    }

    fn names(changed: &[Arc<DynamicObject>]) -> Vec<String> {
        changed.iter().map(|object| key_of(object).to_string()).collect()
    }

    #[test]
    fn every_change_is_reported_once_also_those_that_a_new_list_brings() {
        let mut objects = Objects::default();
        let mut list = |versions: &[(&str, &str)]| {
            objects.take(Event::Init);
            for (name, version) in versions {
                assert!(objects.take(Event::InitApply(object(name, version))).is_empty());
            }
            names(&objects.take(Event::InitDone))
        };
        assert_eq!(list(&[("a", "1"), ("b", "2")]), ["n/a", "n/b"]);
        assert_eq!(list(&[("b", "3"), ("c", "4")]), ["n/b", "n/c", "n/a"]);
        assert_eq!(names(&objects.take(Event::Apply(object("b", "3")))), Vec::<String>::new());
        assert_eq!(names(&objects.take(Event::Apply(object("b", "5")))), ["n/b"]);
        assert_eq!(names(&objects.take(Event::Delete(object("b", "6")))), ["n/b"]);
        assert_eq!(objects.current.len(), 1);
    }
}
