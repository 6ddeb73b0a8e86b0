//! The objects that exist at one moment of a scenario.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use anyhow::{Context as _, Result};
use ocm_testing::{
    ControlPlane, eventually,
    scenario::{get, step},
    timeout,
};
use serde_json::Value;
use tokio::time::sleep;

use crate::{plain::plain, world::World};

const HUB: &str = "managedclusters,managedclustersets,managedclustersetbindings,placements,placementdecisions,\
    manifestworks,managedclusteraddons,clustermanagementaddons,certificatesigningrequests,leases,roles,rolebindings,\
    clusterroles,clusterrolebindings,namespaces";
const MANAGED: &str = "appliedmanifestworks,secrets,leases,configmaps,deployments,pods,serviceaccounts,roles,rolebindings,\
    clusterroles,clusterrolebindings,namespaces";
/// Where Kubernetes keeps its own leases.
const OF_KUBERNETES: &str = "kube-system";

const PAUSE: Duration = Duration::from_secs(1);
const QUIET_LOOKS: u32 = 4;

/// A moment of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    Joined,
    AddonRuns,
    AddonGone,
    ClusterGone,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Joined => "joined, with a work",
            Self::AddonRuns => "with the add-on",
            Self::AddonGone => "the add-on deleted",
            Self::ClusterGone => "the cluster deleted",
        })
    }
}

/// Objects in the form in which they are compared, by cluster and identity.
pub(crate) type Snapshot = BTreeMap<String, Value>;

/// The objects at each moment of a scenario.
#[derive(Default)]
pub(crate) struct Looks {
    ignored: BTreeSet<String>,
    pub(crate) taken: BTreeMap<Moment, Snapshot>,
}

impl Looks {
    /// Leaves out what existed before the scenario.
    pub(crate) async fn ignore_what_is_there(&mut self, world: &World) -> Result<()> {
        self.ignored = look(world).await?.into_keys().collect();
        Ok(())
    }

    /// Takes a snapshot once nothing changes any more.
    pub(crate) async fn take(&mut self, world: &World, moment: Moment) -> Result<()> {
        let rest = tokio::time::timeout(timeout(), rest(world));
        let seen = step("everything comes to rest", async { rest.await.context("something changes all the time")? });
        let seen = seen.await?.into_iter().filter(|(key, _)| !self.ignored.contains(key)).collect();
        self.taken.insert(moment, seen);
        Ok(())
    }
}

/// Reads until several reads in a row return the same.
async fn rest(world: &World) -> Result<Snapshot> {
    let (mut last, mut equal) = (look(world).await?, 0);
    while equal < QUIET_LOOKS {
        sleep(PAUSE).await;
        let now = look(world).await?;
        equal = if now == last { equal + 1 } else { 0 };
        last = now;
    }
    Ok(last)
}

async fn look(world: &World) -> Result<Snapshot> {
    let mut all = list("hub", &world.hub, HUB).await?;
    all.extend(list("managed cluster", &world.managed, MANAGED).await?);
    Ok(all)
}

async fn list(place: &str, plane: &ControlPlane, kinds: &str) -> Result<Snapshot> {
    let list = eventually("everything can be listed", || async { get(plane, &[kinds, "-A"]).await.map(Some) }).await?;
    let objects = list["items"].as_array().cloned().unwrap_or_default();
    let objects = objects.into_iter().filter(|object| object["metadata"]["namespace"] != OF_KUBERNETES);
    let mut found = Snapshot::new();
    for object in objects.map(plain) {
        let key = format!("{place}: {}", name(&object));
        found.insert(free(key, &found), object);
    }
    Ok(found)
}

fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let (kind, namespace, name) = (text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]));
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

/// Objects whose names are random have the same one here.
fn free(key: String, found: &Snapshot) -> String {
    let numbered = (2..).map(|number| format!("{key} ({number})"));
    std::iter::once(key.clone()).chain(numbered).find(|key| !found.contains_key(key)).unwrap_or(key)
}
