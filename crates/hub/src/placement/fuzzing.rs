//! What fuzz targets reach of placement. Only builds by cargo-fuzz have it.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use kube::ResourceExt as _;
use ocm_api::cluster::{
    v1::ManagedCluster,
    v1alpha1::AddOnPlacementScore,
    v1beta1::{Placement, PlacementStatus},
    v1beta2::{ManagedClusterSet, ManagedClusterSetBinding, ManagedClusterSetBindingSpec, ManagedClusterSetSpec},
};
use ocm_runtime::{Change, ObjectKey};
use ocm_scheduler::Rules;
use serde_json::json;

use super::{
    index::Index,
    plan::{Observed, plan},
};

/// The moment at which decisions are made, in seconds since 1970.
const NOW: i64 = 1_800_000_000;

/// All that is wrong with a placement.
pub fn problems(placement: &Placement) -> Vec<String> {
    Rules::of(placement).problems()
}

/// The status of a placement in a namespace to which `set` is bound; `None` if it must not be changed.
pub fn decide(
    placement: Placement,
    set: ManagedClusterSetSpec,
    clusters: Vec<ManagedCluster>,
    scores: Vec<AddOnPlacementScore>,
) -> Option<PlacementStatus> {
    let json: HashMap<_, Arc<[u8]>> =
        clusters.iter().map(|cluster| (cluster.name_any(), json!(cluster).to_string().into_bytes().into())).collect();
    let index = Index::new(move |name| json.get(name).cloned());
    let (key, placement) = (ObjectKey::of(&placement), Arc::new(placement));
    let now = Timestamp::from_second(NOW).unwrap_or_default();
    index.set(Change::Added(&Arc::new(ManagedClusterSet::new("set", set))));
    let binding = ManagedClusterSetBinding::new(&key.namespace, "set", ManagedClusterSetBindingSpec::default());
    index.binding(Change::Added(&Arc::new(binding)));
    for cluster in clusters {
        index.cluster(Change::Added(&Arc::new(cluster)), now);
    }
    for score in scores {
        index.scores(Change::Added(&Arc::new(score)));
    }
    index.placement(Change::Added(&placement));
    let snapshot = index.snapshot(&key).filter(|snapshot| !snapshot.inputs.rules.is_ignored)?;
    Some(plan(&Observed { placement, snapshot }, now, &mut |_| {}).status)
}
