//! Asks an API server for the newest object that a cache holds.

use kube::{
    Client,
    api::{ListParams, ObjectList},
    runtime::watcher,
};

use super::{
    Cache, ObjectKey, Watchable,
    continuity::{Answer, Evidence, Found, Kind},
    packed::Packed,
    raw::{RawObject, Read},
};
use crate::error::{Error, Result, ResultExt as _};

/// One kind of a server, as the continuity check asks for it.
pub(super) struct Probe<const METADATA: bool, K> {
    client: Client,
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
    cache: Cache<K>,
    read: fn(RawObject<METADATA>) -> Read<K>,
}

impl<const METADATA: bool, K: Watchable> Probe<METADATA, K> {
    pub(super) fn new(
        client: &Client,
        namespace: Option<&str>,
        config: &watcher::Config,
        cache: &Cache<K>,
        read: fn(RawObject<METADATA>) -> Read<K>,
    ) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.map(str::to_owned),
            labels: config.label_selector.clone(),
            fields: config.field_selector.clone(),
            cache: cache.clone(),
            read,
        }
    }

    /// A list of one object by its namespace and name, which is as cheap as a get and needs no right that the watch does
    /// not need. Without an object: of any one.
    fn request(&self, object: Option<&ObjectKey>) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
        let of_object = object.map(|key| key.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let path = K::url_path(&(), of_object.or(self.namespace.as_deref()));
        let params = match object {
            Some(key) => ListParams::default().fields(&format!("metadata.name={}", key.name)),
            None => ListParams { field_selector: self.fields.clone(), ..ListParams::default().limit(1) },
        };
        let (request, params) =
            (kube::core::Request::new(path), ListParams { label_selector: self.labels.clone(), ..params });
        if METADATA { request.list_metadata(&params) } else { request.list(&params) }
    }

    fn found(&self, item: Option<RawObject<METADATA>>) -> Result<Found> {
        Ok(match item.map(self.read) {
            None => Found::Absent,
            Some(Err(_)) => Found::Unreadable,
            Some(Ok(mut object)) => {
                let key = ObjectKey::of(&object);
                let failed = |source| Error::Serialize { noun: key.to_string(), source };
                let packed = Packed::new(&mut object).map_err(failed)?;
                Evidence::new(key, &packed).map_or(Found::Unreadable, Found::Object)
            }
        })
    }
}

impl<const METADATA: bool, K: Watchable> Kind for Probe<METADATA, K> {
    fn newest(&self) -> u64 {
        self.cache.newest()
    }

    fn newest_object(&self) -> Option<Evidence> {
        self.cache.newest_object()
    }

    fn holds(&self, object: &Evidence) -> bool {
        self.cache.holds(object)
    }

    fn is_watching(&self) -> bool {
        self.cache.is_watching()
    }

    async fn ask(&self, object: Option<&ObjectKey>) -> Result<Option<Answer>> {
        let noun = || object.map_or_else(|| K::plural(&()).into_owned(), |key| format!("{} {key}", K::kind(&())));
        let request = self.request(object).map_err(kube::Error::BuildRequest).while_trying_to("list", noun)?;
        let list: ObjectList<RawObject<METADATA>> = self.client.request(request).await.while_trying_to("list", noun)?;
        let version = list.metadata.resource_version.and_then(|version| version.parse().ok());
        let Some(version) = version else { return Ok(None) };
        Ok(Some(Answer { version, found: self.found(list.items.into_iter().next())? }))
    }
}
