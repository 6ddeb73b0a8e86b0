//! Writing `ManagedCluster`s without conflicts among the controllers of this hub.
//!
//! Several controllers write the same cluster at the same moment: when one appears, it gets a finalizer and a taint.
//! Each write carries the resource version that was observed, so the API server would refuse the second one. Here, writes
//! to one cluster take turns and each result is recorded in the shared cache. A write that was planned on an older version
//! fails with [`Error::Stale`] before it is sent.
//!
//! A patch also adds what else this hub maintains on the cluster and it lacks, so that a new cluster costs one patch however
//! many controllers maintain something on it. If the API server refuses that, the patch is sent as it was planned: what is
//! refused to one controller stops no other.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use kube::{Api, Client, Resource as _, ResourceExt as _};
use ocm_api::cluster::v1::ManagedCluster;
use ocm_runtime::{Cache, Clock, write};
use tokio::sync::{Mutex, MutexGuard};

use crate::{
    error::{Error, Result},
    registration::{
        availability::time_added::{TimeAdded, is_refused},
        maintained::Maintained,
    },
};

/// How many locks the clusters share. It is harmless that some clusters share one.
const TURNS: u64 = 64;

/// Writes clusters, one write at a time for each cluster. Cheap to clone; all clones share the locks.
#[derive(Clone, Debug)]
pub(crate) struct ClusterWriter {
    api: Api<ManagedCluster>,
    cache: Cache<ManagedCluster>,
    turns: Arc<[Mutex<()>]>,
    maintained: Maintained,
    times: Arc<TimeAdded>,
    clock: Clock,
}

impl ClusterWriter {
    pub(crate) fn new(client: Client, cache: Cache<ManagedCluster>, maintained: Maintained, clock: Clock) -> Self {
        let turns = (0..TURNS).map(|_| Mutex::default()).collect();
        Self { api: Api::all(client), cache, turns, maintained, times: Arc::default(), clock }
    }

    /// Writes what differs outside the status, and what else is missing there; `None` when nothing differs.
    pub(crate) async fn patch(&self, old: &ManagedCluster, new: &ManagedCluster) -> Result<Option<ManagedCluster>> {
        if old == new {
            return Ok(None);
        }
        let complete = self.maintained.add_to(new, self.clock.now());
        match self.patch_with_times(old, &complete).await {
            Err(refusal) if complete != *new && is_refused(&refusal) => self.patch_with_times(old, new).await,
            result => result,
        }
    }

    async fn patch_with_times(&self, old: &ManagedCluster, new: &ManagedCluster) -> Result<Option<ManagedCluster>> {
        if old.spec.taints == new.spec.taints {
            return self.send(old, new).await;
        }
        self.times.write(old, new.clone(), |new| async move { self.send(old, &new).await }).await
    }

    async fn send(&self, old: &ManagedCluster, new: &ManagedCluster) -> Result<Option<ManagedCluster>> {
        let _turn = self.turn(old).await?;
        self.recorded(write::patch(&self.api, old, new).await?)
    }

    /// Writes what differs in the status; `None` when nothing does.
    pub(crate) async fn patch_status(
        &self,
        old: &ManagedCluster,
        new: &ManagedCluster,
    ) -> Result<Option<ManagedCluster>> {
        if old.status == new.status {
            return Ok(None);
        }
        let _turn = self.turn(old).await?;
        self.recorded(write::patch_status(&self.api, old, new).await?)
    }

    /// Waits until no other write to this cluster is in flight, and checks that the cluster is as it was observed.
    async fn turn(&self, read: &ManagedCluster) -> Result<MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        read.name_any().hash(&mut hasher);
        let index = usize::try_from(hasher.finish() % TURNS).unwrap_or_default();
        let turn = self.turns[index].lock().await;
        let known = self.cache.named(&read.name_any());
        let is_current = known.is_some_and(|known| known.meta().resource_version == read.meta().resource_version);
        is_current.then_some(turn).ok_or_else(|| Error::Stale { noun: write::describe(read) })
    }

    fn recorded(&self, written: Option<ManagedCluster>) -> Result<Option<ManagedCluster>> {
        match &written {
            Some(cluster) if is_gone(cluster) => self.cache.record_delete(cluster),
            Some(cluster) => self.cache.record_write(cluster.clone()),
            None => {}
        }
        Ok(written)
    }
}

/// Whether the last finalizer of a deleted object has been removed, and the object with it.
fn is_gone(cluster: &ManagedCluster) -> bool {
    write::is_deleting(cluster) && cluster.finalizers().is_empty()
}
