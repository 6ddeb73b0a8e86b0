//! The objects that the decision of a placement depends on, read from a hub that need not be ours.

use jiff::Timestamp;
use kube::{
    Resource,
    api::{DynamicObject, ListParams},
};
use ocm_api::cluster::{
    v1::ManagedCluster,
    v1alpha1::AddOnPlacementScore,
    v1beta1::{Placement, PlacementDecision, ScoreCoordinateType},
    v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
};
use ocm_scheduler::{Objects, Snapshot};
use serde::de::DeserializeOwned;

use crate::{client::Connection, cmd::list, console::Console, failure::Failure};

/// The objects that the decision of a placement depends on.
#[derive(Debug)]
pub(super) struct HubObjects {
    pub(super) placement: Placement,
    pub(super) clusters: Vec<ManagedCluster>,
    pub(super) sets: Vec<ManagedClusterSet>,
    pub(super) bindings: Vec<ManagedClusterSetBinding>,
    pub(super) decisions: Vec<PlacementDecision>,
    pub(super) scores: Vec<AddOnPlacementScore>,
}

impl HubObjects {
    /// What the scheduler reads of them.
    pub(super) fn snapshot(&self, now: Timestamp) -> Snapshot {
        let Self { placement, clusters, sets, bindings, decisions, scores } = self;
        Snapshot::of(placement, &Objects { clusters, sets, bindings, decisions, scores }, now)
    }
}

/// What this command reads, for people without the rights.
const RESOURCES: &str = "placements.cluster.open-cluster-management.io,managedclusters.cluster.open-cluster-management.io,\
                         managedclustersets.cluster.open-cluster-management.io,\
                         managedclustersetbindings.cluster.open-cluster-management.io,\
                         placementdecisions.cluster.open-cluster-management.io,\
                         addonplacementscores.cluster.open-cluster-management.io";

/// Reads a placement and everything it depends on. Malformed objects are left out, with a warning.
pub(super) async fn read(
    hub: &Connection,
    namespace: &str,
    name: &str,
    console: &Console,
) -> Result<HubObjects, Failure> {
    let named = ListParams::default().fields(&format!("metadata.name={name}"));
    let found = objects::<Placement>(hub, Some(namespace), &named).await?.pop();
    let found = found.ok_or_else(|| {
        Failure::new(format!("placement {name} does not exist in namespace {namespace}"))
            .hint("`clusteradm get placements` lists those of all namespaces")
    })?;
    let placement: Placement = found.try_parse().map_err(|error| {
        Failure::new(format!("placement {namespace}/{name} is malformed: {error}"))
            .hint(format!("correct it: kubectl edit placement {name} -n {namespace}"))
    })?;
    let scores = if needs_scores(&placement) { all(hub, None, console).await? } else { Vec::new() };
    Ok(HubObjects {
        clusters: all(hub, None, console).await?,
        sets: all(hub, None, console).await?,
        bindings: all(hub, Some(namespace), console).await?,
        decisions: all(hub, None, console).await?,
        scores,
        placement,
    })
}

/// Whether the placement uses what add-ons say of clusters: scores by a prioritizer, or by an expression.
fn needs_scores(placement: &Placement) -> bool {
    let is_of_addon = |type_: &ScoreCoordinateType| *type_ != ScoreCoordinateType::BuiltIn;
    let spec = &placement.spec;
    spec.prioritizer_policy.configurations.iter().any(|one| is_of_addon(&one.score_coordinate.type_))
        || spec.predicates.iter().any(|one| !one.required_cluster_selector.cel_selector.cel_expressions.is_empty())
}

async fn all<K>(hub: &Connection, namespace: Option<&str>, console: &Console) -> Result<Vec<K>, Failure>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    Ok(list::parse(objects::<K>(hub, namespace, &ListParams::default()).await?, console))
}

async fn objects<K: Resource<DynamicType = ()>>(
    hub: &Connection,
    namespace: Option<&str>,
    params: &ListParams,
) -> Result<Vec<DynamicObject>, Failure> {
    let listed = list::try_of_namespace::<K>(hub, namespace, params).await;
    listed.map_err(|error| explain::<K>(hub, &error))
}

fn explain<K: Resource<DynamicType = ()>>(hub: &Connection, error: &kube::Error) -> Failure {
    let kinds = K::plural(&());
    let failure = hub.explain(&format!("list {kinds}"), error);
    match error {
        kube::Error::Api(status) if status.code == 403 => failure.hint(format!(
            "{} needs to list what the decision depends on; an administrator grants it with: kubectl create clusterrole \
             explain-placements --verb=list --resource={RESOURCES} and kubectl create clusterrolebinding \
             explain-placements --clusterrole=explain-placements --user=USER",
            hub.credentials
        )),
        kube::Error::Api(status) if status.code == 404 => {
            Failure::new(format!("{} does not serve {kinds} of {}", hub.server, K::api_version(&())))
                .hint("install the hub's CRDs: ocm crds --hub | kubectl apply --server-side -f -")
        }
        _ => failure,
    }
}
