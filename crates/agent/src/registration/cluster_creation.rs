//! Creates the ManagedCluster during the bootstrap.
//!
//! `hubAcceptsClient` is left to the hub's administrators. An existing ManagedCluster is updated only to add addresses of the
//! cluster's API server.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::{Api, Client};
use ocm_api::{
    annotations,
    cluster::v1::{ClientConfig, ManagedCluster, ManagedClusterSpec},
    conditions,
};
use ocm_runtime::{
    Class, Classified, Controller, ControllerBuilder, Error, Requeue, client::Endpoint, conditions::find, write,
};
use tracing::{info, warn};

use super::{join_problem::JoinProblem, lease::is_accepted};

/// The longest back-off while the hub does not answer or rights are missing. What its admission refuses is retried slowly.
const LONGEST_RETRY: Duration = Duration::from_secs(10);
/// The resync period. Up to the same time is added at random.
const RESYNC: Duration = Duration::from_secs(3600);

/// What the ManagedCluster should be.
#[derive(Clone, Debug, Default)]
pub(crate) struct DesiredCluster {
    pub(crate) cluster: String,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) urls: Vec<String>,
    pub(crate) ca_bundle: Option<Vec<u8>>,
    /// Whether this agent has joined this hub as this cluster before.
    pub(crate) has_joined: bool,
}

impl DesiredCluster {
    fn client_configs(&self) -> impl Iterator<Item = ClientConfig> {
        let ca_bundle = self.ca_bundle.clone().map(ByteString);
        self.urls.iter().map(move |url| ClientConfig { url: url.clone(), ca_bundle: ca_bundle.clone() })
    }

    fn annotations(&self) -> BTreeMap<String, String> {
        let ours = self.annotations.iter().filter(|(key, _)| key.starts_with(annotations::AGENT_PREFIX));
        ours.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn managed_cluster(&self) -> ManagedCluster {
        let configs = self.client_configs().collect();
        let spec = ManagedClusterSpec { managed_cluster_client_configs: configs, ..ManagedClusterSpec::default() };
        let mut cluster = ManagedCluster::new(&self.cluster, spec);
        cluster.metadata.annotations = Some(self.annotations()).filter(|annotations| !annotations.is_empty());
        cluster
    }
}

/// Creates the ManagedCluster.
pub(crate) struct ClusterCreation {
    desired: DesiredCluster,
    hub: Endpoint,
    clusters: Api<ManagedCluster>,
    /// The last problem that was logged.
    logged: Mutex<Option<String>>,
}

/// The ManagedCluster on the hub, if it could be read.
pub(crate) enum Found {
    Nothing,
    Cluster(Box<ManagedCluster>),
    /// The request failed.
    Failed(Error),
}

pub(crate) struct Observed {
    desired: DesiredCluster,
    found: Found,
}

/// What to write.
#[derive(Debug, PartialEq)]
pub(crate) enum Plan {
    Create(Box<ManagedCluster>),
    Update(Box<ManagedCluster>),
    Nothing,
}

impl ClusterCreation {
    pub(crate) fn new(hub: &Endpoint, client: &Client, desired: DesiredCluster) -> Self {
        Self { desired, hub: hub.clone(), clusters: Api::all(client.clone()), logged: Mutex::default() }
    }

    /// Logs once what somebody should do: rights may be missing, or a hub be out of reach, for hours.
    fn log_failure(&self, error: &Error) {
        let problem = JoinProblem::of(&self.hub, error);
        if self.is_new(Some(problem.to_string())) || !problem.is_lasting() {
            warn!("cannot create the ManagedCluster on the hub: {problem}; the agent retries");
        }
    }

    /// Whether this problem is another one than the last.
    fn is_new(&self, problem: Option<String>) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *logged != problem;
        *logged = problem;
        is_new
    }

    /// Logs once that the name may belong to another cluster.
    fn log_taken(&self, observed: &Observed) {
        let taken = taken(observed);
        if self.is_new(taken.clone())
            && let Some(taken) = taken
        {
            warn!("{taken}");
        }
    }

    fn log_created(&self) {
        let cluster = &self.desired.cluster;
        info!(
            cluster,
            "created the ManagedCluster on the hub; an administrator of the hub accepts it with: clusteradm accept --clusters {cluster}"
        );
    }
}

impl Controller for ClusterCreation {
    const NAME: &'static str = "cluster-creation";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Result<(), Error>;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.queue().add(self.desired.cluster.clone());
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>, Error> {
        let found = match write::get(&self.clusters, key).await {
            Ok(Some(cluster)) => Found::Cluster(Box::new(cluster)),
            Ok(None) => Found::Nothing,
            Err(error) => Found::Failed(error),
        };
        Ok(Some(Observed { desired: self.desired.clone(), found }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        let desired = &observed.desired;
        match &observed.found {
            Found::Nothing => Plan::Create(Box::new(desired.managed_cluster())),
            Found::Cluster(cluster) => with_new_urls(cluster, desired),
            Found::Failed(_) => Plan::Nothing,
        }
    }

    async fn apply(&self, _: &Observed, plan: Plan) -> Result<Result<(), Error>, Error> {
        Ok(match plan {
            Plan::Create(cluster) => match write::create(&self.clusters, &cluster).await {
                Ok(_) => {
                    self.log_created();
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Plan::Update(cluster) => write::replace(&self.clusters, &cluster).await.map(|_| ()),
            Plan::Nothing => Ok(()),
        })
    }

    async fn report(&self, observed: &Observed, applied: Result<(), Error>, _: Timestamp) -> Result<Requeue, Error> {
        let failure = match (&observed.found, &applied) {
            (Found::Failed(error), _) | (_, Err(error)) => error,
            _ => {
                self.log_taken(observed);
                return Ok(Requeue::After(RESYNC.mul_f64(1.0 + rand::random::<f64>())));
            }
        };
        if failure.class() != Class::Conflict {
            self.log_failure(failure);
        }
        Ok(retry(failure))
    }
}

fn retry(failure: &Error) -> Requeue {
    match failure.class() {
        Class::Refused => Requeue::BackOffSlowly,
        _ => Requeue::BackOffWithin(LONGEST_RETRY),
    }
}

/// What to do if an agent is connected as this cluster, and this agent never was. It may be this cluster's former agent.
fn taken(observed: &Observed) -> Option<String> {
    let Found::Cluster(cluster) = &observed.found else { return None };
    let DesiredCluster { cluster: name, has_joined, .. } = &observed.desired;
    (!has_joined && is_connected(cluster)).then(|| {
        format!(
            "an agent is connected to the hub as cluster {name}, and this agent has never been: if that is another cluster, \
             choose another name with --spoke-cluster-name, since only one of them can use it"
        )
    })
}

/// Whether the hub has accepted the cluster, and an agent renews its lease: the hub changes the condition to Unknown otherwise.
fn is_connected(cluster: &ManagedCluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let available = find(conditions, conditions::cluster::AVAILABLE);
    is_accepted(cluster) && available.is_some_and(|condition| condition.status != conditions::status::UNKNOWN)
}

/// Adds missing addresses. Existing ones are not changed.
fn with_new_urls(cluster: &ManagedCluster, desired: &DesiredCluster) -> Plan {
    let known = &cluster.spec.managed_cluster_client_configs;
    let is_new = |config: &ClientConfig| known.iter().all(|known| known.url != config.url);
    let new: Vec<_> = desired.client_configs().filter(is_new).collect();
    if new.is_empty() {
        return Plan::Nothing;
    }
    let mut cluster = cluster.clone();
    cluster.spec.managed_cluster_client_configs.extend(new);
    Plan::Update(Box::new(cluster))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desired() -> DesiredCluster {
        DesiredCluster {
            cluster: "cluster1".into(),
            annotations: [("agent.open-cluster-management.io/a".into(), "1".into()), ("b".into(), "2".into())].into(),
            urls: vec!["https://a".into()],
            ca_bundle: Some(b"ca".to_vec()),
            has_joined: false,
        }
    }

    fn plan(found: Found) -> Plan {
        ClusterCreation::plan(&Observed { desired: desired(), found }, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_new_cluster_carries_its_annotations_and_addresses_and_leaves_acceptance_to_the_hub() {
        let Plan::Create(cluster) = plan(Found::Nothing) else { panic!("it is not created") };
        assert_eq!(
            serde_json::to_value(cluster).unwrap(),
            serde_json::json!({
                "apiVersion": "cluster.open-cluster-management.io/v1",
                "kind": "ManagedCluster",
                "metadata": {"name": "cluster1", "annotations": {"agent.open-cluster-management.io/a": "1"}},
                "spec": {
                    "hubAcceptsClient": false,
                    "managedClusterClientConfigs": [{"url": "https://a", "caBundle": "Y2E="}],
                },
            })
        );
    }

    #[test]
    fn an_existing_cluster_only_gets_addresses_it_lacks() {
        let mut cluster = desired().managed_cluster();
        cluster.spec.managed_cluster_client_configs[0].ca_bundle = None;
        assert_eq!(plan(Found::Cluster(Box::new(cluster.clone()))), Plan::Nothing, "another CA is no reason");
        cluster.spec.managed_cluster_client_configs[0].url = "https://b".into();
        let Plan::Update(updated) = plan(Found::Cluster(Box::new(cluster))) else { panic!("no update") };
        let urls = updated.spec.managed_cluster_client_configs.iter().map(|config| &*config.url);
        assert_eq!(urls.collect::<Vec<_>>(), ["https://b", "https://a"]);
    }

    #[test]
    fn what_admission_denies_is_retried_slowly_and_missing_rights_are_retried_soon() {
        let answer = |code: u16, message: &str| {
            let status = kube::core::Status::failure(message, "Forbidden").with_code(code).boxed();
            Error::Request { verb: "create", noun: "c".into(), source: Box::new(kube::Error::Api(status)) }
        };
        let policy =
            "managedclusters \"c\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
        let missing = "managedclusters is forbidden: User \"u\" cannot create resource \"managedclusters\"";
        let (denied, missing, down) = (answer(403, policy), answer(403, missing), answer(503, "no"));
        assert_eq!(retry(&denied), Requeue::BackOffSlowly);
        assert_eq!([&missing, &down].map(retry), [Requeue::BackOffWithin(LONGEST_RETRY); 2]);
    }

    #[test]
    fn an_agent_that_finds_another_one_connected_under_its_name_says_so_unless_it_has_joined_before() {
        let found = |accepted: &str, available: &str| {
            let condition = |type_: &str, status: &str| {
                serde_json::json!({"type": type_, "status": status, "reason": "R", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            };
            let conditions = [
                condition("HubAcceptedManagedCluster", accepted),
                condition("ManagedClusterConditionAvailable", available),
            ];
            let cluster =
                serde_json::json!({"metadata": {"name": "cluster1"}, "spec": {}, "status": {"conditions": conditions}});
            Found::Cluster(serde_json::from_value(cluster).unwrap())
        };
        let said = |found: Found, has_joined: bool| {
            taken(&Observed { desired: DesiredCluster { has_joined, ..desired() }, found })
        };
        for status in ["True", "False"] {
            let text = said(found("True", status), false).unwrap();
            assert!(text.contains("connected to the hub as cluster cluster1") && text.contains("--spoke-cluster-name"));
        }
        assert_eq!(said(found("True", "True"), true), None);
        assert_eq!(said(found("True", "Unknown"), false), None);
        assert_eq!(said(found("False", "True"), false), None);
        assert_eq!(said(Found::Nothing, false), None);
    }

    #[test]
    fn without_an_answer_nothing_is_written() {
        let error = Error::Incomplete { noun: "x".into(), field: "y" };
        assert_eq!(plan(Found::Failed(error)), Plan::Nothing);
    }
}
