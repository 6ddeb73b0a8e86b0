//! What is left of a deleted cluster.

use std::sync::Arc;

use kube::{
    Api, ResourceExt as _,
    api::ListParams,
    core::{DynamicObject, PartialObjectMeta},
};
use ocm_api::{annotations::CLEANUP_PRIORITY, cluster::v1::ManagedCluster};
use ocm_runtime::{ResultExt as _, error::found, write};

use super::{CleanupController, GcResource};
use crate::{
    error::{Error, Result},
    registration::names,
};

/// The highest priority; higher numbers count as none.
const HIGHEST_PRIORITY: u8 = 100;

/// A cluster, and when it is deleted what is left in its namespace.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(super) name: String,
    /// `None` when the cluster itself is gone already.
    pub(super) cluster: Option<Arc<ManagedCluster>>,
    /// Of the first kind of which anything is left. Not looked up for clusters that stay.
    pub(super) remaining: Result<Option<RemainingResources>, Arc<Error>>,
}

/// Objects of one kind that are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RemainingResources {
    pub(super) resource: GcResource,
    pub(super) items: Vec<Item>,
}

/// An object that is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(super) name: String,
    pub(super) uid: Option<String>,
    /// Lower goes first.
    pub(super) priority: u8,
    pub(super) has_finalizer: bool,
    pub(super) is_deleting: bool,
}

impl Item {
    pub(super) fn of(object: &PartialObjectMeta<DynamicObject>) -> Self {
        Self {
            name: object.name_any(),
            uid: object.metadata.uid.clone(),
            priority: priority(object.annotations().get(CLEANUP_PRIORITY).map(String::as_str)),
            has_finalizer: !object.finalizers().is_empty(),
            is_deleting: object.metadata.deletion_timestamp.is_some(),
        }
    }
}

/// What is not a number from 0 to 100 counts as 0.
fn priority(text: Option<&str>) -> u8 {
    text.and_then(|text| text.parse().ok()).filter(|number| *number <= HIGHEST_PRIORITY).unwrap_or_default()
}

impl CleanupController {
    pub(super) async fn gather(&self, name: &str) -> Result<Option<Observed>> {
        let cluster = self.clusters.named(name);
        let remaining = match &cluster {
            Some(cluster) if !write::is_deleting(cluster.as_ref()) => Ok(None),
            None if self.hub.cluster_exists(name).await? => return Ok(None),
            // The namespace of that name belongs to somebody else.
            _ if names::refusal(name, &self.hub.config.namespace).is_some() => Ok(None),
            _ => self.remaining(name).await.map_err(Arc::new),
        };
        Ok(Some(Observed { name: name.into(), cluster, remaining }))
    }

    /// In the configured order; a kind comes after all before it are gone.
    async fn remaining(&self, namespace: &str) -> Result<Option<RemainingResources>> {
        for resource in &self.hub.config.gc_resources {
            let items = self.items(namespace, resource).await?;
            if !items.is_empty() {
                return Ok(Some(RemainingResources { resource: resource.clone(), items }));
            }
        }
        Ok(None)
    }

    /// None when the API server does not know the kind.
    async fn items(&self, namespace: &str, resource: &GcResource) -> Result<Vec<Item>> {
        let listed = self.api(namespace, resource).list_metadata(&ListParams::default()).await;
        let listed = listed.while_trying_to("list", || format!("{resource} in namespace {namespace}"));
        Ok(found(listed)?.map(|list| list.items.iter().map(Item::of).collect()).unwrap_or_default())
    }

    pub(super) fn api(&self, namespace: &str, resource: &GcResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.hub.client.clone(), namespace, &resource.api())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_from_0_to_100_counts_as_0() {
        for (text, number) in
            [(None, 0), (Some("7"), 7), (Some("100"), 100), (Some("101"), 0), (Some("-1"), 0), (Some("a"), 0)]
        {
            assert_eq!(priority(text), number, "{text:?}");
        }
    }
}
