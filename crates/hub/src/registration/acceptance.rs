//! Accepts clusters without an administrator, once in the life of each.
//!
//! A cluster registers → do all registration drivers agree, and has nobody decided on it before? → one patch sets
//! `spec.hubAcceptsClient` and an annotation with the time, and the hub accepts no cluster that has the annotation. So an
//! administrator can deny the cluster later, and it stays denied.
//!
//! An agent may edit its own ManagedCluster: it can remove the annotation, and from the status the condition
//! `HubAcceptedManagedCluster`. What it cannot remove is the ClusterRole that grants it these edits, which the hub keeps for
//! a denied cluster as well. A cluster whose ClusterRole exists is not joining for the first time.
//!
//! The agent of an accepted cluster gets rights in the namespace of the cluster's name, and agents choose their names. So a
//! namespace that exists and is not a cluster's needs an administrator, who accepts the cluster or labels the namespace.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{core::v1::Namespace, rbac::v1::ClusterRole};
use kube::{Api, ResourceExt as _};
use ocm_api::{
    annotations::AUTOMATICALLY_ACCEPTED_ON, cluster::v1::ManagedCluster, conditions::cluster::HUB_ACCEPTED, labels,
    rbac,
};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, Requeue, ResultExt as _, write};
use tracing::{debug, info};

use crate::{
    caches::{self, cluster_of},
    context::HubContext,
    error::{Error, Result},
    registration::{names, status::condition},
};

/// The time as OCM writes it.
const RFC_3339: &str = "%Y-%m-%dT%H:%M:%SZ";
/// After how long a namespace that is not the cluster's is read again: the hub does not watch namespaces.
const RECHECK: Duration = Duration::from_mins(10);

/// See the module.
#[derive(Debug)]
pub(crate) struct AcceptanceController {
    hub: HubContext,
    clusters: Cache<ManagedCluster>,
    roles: Cache<ClusterRole>,
}

/// A cluster that nothing on it says was decided on.
#[derive(Debug)]
pub(crate) struct Observed {
    cluster: Arc<ManagedCluster>,
    /// Why no cluster of this name gets rights.
    refusal: Option<&'static str>,
    drivers_accept: bool,
    /// Whether it is not accepted and the hub has given it rights.
    had_rights: bool,
    /// Whether it is not accepted and a namespace of its name exists that is not the namespace of this cluster.
    namespace_is_taken: bool,
}

impl AcceptanceController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let (clusters, roles) = (caches::clusters(&hub.informers), caches::cluster_roles(&hub.informers));
        Self { clusters, roles, hub: hub.clone() }
    }

    /// Whether the hub has given rights to a cluster of that name. The API server is asked, since the informers of clusters
    /// and of roles may differ in how recent they are, and it is asked once for each cluster that joins.
    async fn has_role(&self, cluster: &str) -> Result<bool> {
        let (api, name) = (Api::<ClusterRole>::all(self.hub.client.clone()), rbac::cluster_role(cluster));
        let found = api.get_metadata_opt(&name).await;
        Ok(found.while_trying_to("get", || format!("ClusterRole {name}"))?.is_some())
    }

    /// Whether a namespace of that name exists without the label of the cluster.
    async fn namespace_is_taken(&self, cluster: &str) -> Result<bool> {
        let found = Api::<Namespace>::all(self.hub.client.clone()).get_metadata_opt(cluster).await;
        let namespace = found.while_trying_to("get", || format!("Namespace {cluster}"))?;
        Ok(namespace.is_some_and(|namespace| cluster_of(&namespace).as_deref() != Some(cluster)))
    }
}

impl Controller for AcceptanceController {
    const NAME: &'static str = "cluster-auto-acceptance";
    type Key = String;
    type Observed = Observed;
    type Plan = Option<Box<ManagedCluster>>;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.watches(&self.clusters, |change| {
            let is_open = !matches!(change, Change::Deleted(_)) && is_open(change.object());
            is_open.then(|| change.object().name_any())
        });
        // That of a former cluster of the same name.
        builder.watches(&self.roles, |change| match change {
            Change::Deleted(role) => cluster_of(role.as_ref()),
            Change::Added(_) | Change::Updated { .. } => None,
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let Some(cluster) = self.clusters.named(key).filter(|cluster| is_open(cluster)) else { return Ok(None) };
        let refusal = names::refusal(key, &self.hub.config.namespace);
        let drivers_accept = self.hub.drivers.accept(&cluster);
        let is_new = !cluster.spec.hub_accepts_client;
        let had_rights = is_new && self.has_role(key).await?;
        let namespace_is_taken = is_new && self.namespace_is_taken(key).await?;
        Ok(Some(Observed { cluster, refusal, drivers_accept, had_rights, namespace_is_taken }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Option<Box<ManagedCluster>> {
        observed.may_be_accepted().then(|| {
            let mut new = ManagedCluster::clone(&observed.cluster);
            new.annotations_mut().insert(AUTOMATICALLY_ACCEPTED_ON.into(), now.strftime(RFC_3339).to_string());
            new.spec.hub_accepts_client = true;
            Box::new(new)
        })
    }

    async fn apply(&self, observed: &Observed, new: Option<Box<ManagedCluster>>) -> Result<()> {
        let cluster = &observed.cluster;
        let Some(new) = new else {
            observed.log_why_not();
            return Ok(());
        };
        let written = self.hub.writer().patch(cluster, &new).await;
        written.map_err(|error| explain(error, &cluster.name_any()))?;
        if !cluster.spec.hub_accepts_client {
            info!("accepted the cluster automatically");
        }
        Ok(())
    }

    async fn report(&self, observed: &Observed, (): (), _: Timestamp) -> Result<Requeue> {
        Ok(if observed.namespace_is_taken { Requeue::After(RECHECK) } else { Requeue::OnChange })
    }
}

impl Observed {
    fn may_be_accepted(&self) -> bool {
        self.refusal.is_none() && self.drivers_accept && !self.had_rights && !self.namespace_is_taken
    }

    fn log_why_not(&self) {
        let Self { cluster, refusal, drivers_accept, had_rights, namespace_is_taken } = self;
        if *namespace_is_taken {
            let (name, label) = (cluster.name_any(), labels::CLUSTER_NAME);
            info!(
                "cluster {name} is not accepted automatically: namespace {name} exists and is not the cluster's. If it is meant \
                 for the cluster, accept it (clusteradm accept --clusters {name}) or label it: kubectl label namespace {name} \
                 {label}={name}"
            );
        }
        debug!(refusal, drivers_accept, had_rights, namespace_is_taken, "the cluster is not accepted automatically");
    }
}

/// Whether nothing on the cluster says that it was decided on. An accepted cluster only gets the annotation: if an
/// administrator denies it, that is final too.
fn is_open(cluster: &ManagedCluster) -> bool {
    let is_undecided = cluster.spec.hub_accepts_client || condition(cluster, HUB_ACCEPTED).is_none();
    is_undecided && !write::is_deleting(cluster) && !cluster.annotations().contains_key(AUTOMATICALLY_ACCEPTED_ON)
}

/// Names the right that the hub lacks, if it lacks one.
fn explain(error: Error, cluster: &str) -> Error {
    match error {
        Error::Api(source) if source.is_denied() => Error::MayNotAccept { cluster: cluster.into(), source },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::reasons::cluster::{HUB_CLUSTER_ADMIN_ACCEPTED, HUB_CLUSTER_ADMIN_DENIED};
    use ocm_runtime::{Class, Classified as _, error::chain};

    use super::*;
    use crate::testing::{accepted, cluster, deleting, now, refused, with_accepted};

    fn observed(cluster: ManagedCluster) -> Observed {
        let cluster = Arc::new(cluster);
        Observed { cluster, refusal: None, drivers_accept: true, had_rights: false, namespace_is_taken: false }
    }

    fn planned(observed: &Observed) -> Option<ManagedCluster> {
        AcceptanceController::plan(observed, now()).map(|new| *new)
    }

    #[test]
    fn a_new_cluster_is_accepted_with_the_time_and_nothing_else_changes() {
        let old = cluster("c1");
        assert!(is_open(&old));
        let mut new = planned(&observed(old.clone())).unwrap();
        assert_eq!(new.annotations_mut().remove(AUTOMATICALLY_ACCEPTED_ON).as_deref(), Some("2027-01-15T08:00:00Z"));
        assert!(new.spec.hub_accepts_client);
        new.spec.hub_accepts_client = false;
        new.metadata.annotations = None;
        assert_eq!(new, old);
    }

    #[test]
    fn a_cluster_that_had_rights_has_a_taken_name_or_is_declined_by_a_driver_is_left_alone() {
        assert_eq!(planned(&Observed { namespace_is_taken: true, ..observed(cluster("c1")) }), None);
        assert_eq!(planned(&Observed { had_rights: true, ..observed(cluster("c1")) }), None);
        assert_eq!(planned(&Observed { refusal: Some("it is reserved"), ..observed(cluster("c1")) }), None);
        assert_eq!(planned(&Observed { drivers_accept: false, ..observed(cluster("c1")) }), None);
    }

    #[test]
    fn a_cluster_with_the_annotation_is_left_alone_whatever_its_value() {
        for value in ["2027-01-15T08:00:00Z", ""] {
            let mut marked = cluster("c1");
            marked.annotations_mut().insert(AUTOMATICALLY_ACCEPTED_ON.into(), value.into());
            assert!(!is_open(&marked), "{value:?}");
        }
    }

    #[test]
    fn a_cluster_that_was_accepted_or_denied_before_is_left_alone() {
        for (status, reason) in [("True", HUB_CLUSTER_ADMIN_ACCEPTED), ("False", HUB_CLUSTER_ADMIN_DENIED)] {
            assert!(!is_open(&with_accepted(&cluster("c1"), status, reason)), "{status}");
        }
        assert!(!is_open(&deleting(cluster("c1"), &["f"])));
    }

    #[test]
    fn a_cluster_that_an_administrator_accepted_gets_the_annotation_so_that_a_later_no_is_final() {
        let accepted = with_accepted(&accepted("c1"), "True", HUB_CLUSTER_ADMIN_ACCEPTED);
        assert!(is_open(&accepted));
        assert!(!is_open(&planned(&observed(accepted)).unwrap()));
    }

    #[test]
    fn a_missing_right_is_named_with_the_file_that_grants_it_and_retried_as_what_it_is() {
        let explained = explain(refused(403), "c1");
        assert!(chain(&explained).contains("apply --server-side -f deploy/auto-approval.yaml"), "{explained}");
        assert_eq!(explained.class(), Class::Refused);
        assert!(matches!(explain(refused(409), "c1"), Error::Api(_)));
    }
}
