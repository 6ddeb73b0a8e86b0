//! Asking a server where it stands, by a list of one object.

use std::fmt::Debug;

use kube::{Api, Resource, api::ListParams, runtime::watcher};
use serde::de::DeserializeOwned;

use super::{Cache, Watchable, backstop::Kind};
use crate::error::{Result, ResultExt as _};

/// A kind that is listed for what its list says of the version; `A` is how it is read, `K` how it is kept.
pub(super) struct Listed<A, K> {
    api: Api<A>,
    cache: Cache<K>,
    one: ListParams,
}

impl<A: Clone, K> Listed<A, K> {
    pub(super) fn new(api: &Api<A>, cache: &Cache<K>, config: &watcher::Config) -> Self {
        let mut one = ListParams::default().limit(1);
        one.label_selector.clone_from(&config.label_selector);
        one.field_selector.clone_from(&config.field_selector);
        Self { api: api.clone(), cache: cache.clone(), one }
    }
}

impl<A, K> Kind for Listed<A, K>
where
    A: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K: Watchable,
{
    fn newest(&self) -> u64 {
        self.cache.newest()
    }

    async fn ask(&self) -> Result<Option<u64>> {
        let listed = self.api.list_metadata(&self.one).await;
        let listed = listed.while_trying_to("list one object of", || K::plural(&()).into_owned())?;
        Ok(listed.metadata.resource_version.and_then(|version| version.parse().ok()))
    }
}
