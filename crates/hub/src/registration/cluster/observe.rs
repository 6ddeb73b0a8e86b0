//! What the hub keeps for a cluster now.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::{
    core::v1::Namespace,
    rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding},
};
use kube::{Api, Resource, api::ObjectMeta};
use ocm_api::{
    cluster::v1::ManagedCluster,
    cluster_names::SHARED_CLUSTER_ROLES,
    conditions::{self, status},
    finalizers::CLUSTER_API_RESOURCE_CLEANUP,
    rbac,
    reasons::cluster as reasons,
};
use ocm_runtime::{ObjectKey, write};

use super::ClusterController;
use crate::{
    caches::cluster_of,
    error::Result,
    registration::{names, status::condition},
};

/// Where a cluster is in its life on this hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The cluster does not exist.
    Gone,
    /// The cluster is being deleted.
    Deleting,
    /// It is accepted.
    Accepted,
    /// It was accepted, and an administrator has withdrawn that.
    Denied,
    /// It has not been accepted yet.
    Pending,
}

/// What a decision about a cluster depends on.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(super) name: String,
    pub(super) phase: Phase,
    /// Why no cluster of this name gets rights, in any phase.
    pub(super) refusal: Option<&'static str>,
    pub(super) cluster: Option<Arc<ManagedCluster>>,
    /// Read for accepted clusters only.
    pub(super) namespace: Option<Namespace>,
    pub(super) rights: ClusterRbac,
    pub(super) shared_roles_exist: bool,
    /// Read where the decision depends on it only.
    pub(super) works_remain: bool,
    /// More labels for what the hub makes.
    pub(super) labels: BTreeMap<String, String>,
}

/// The RBAC objects of a cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterRbac {
    pub(super) role: Option<Arc<ClusterRole>>,
    pub(super) role_binding: Option<Arc<ClusterRoleBinding>>,
    pub(super) registration: Option<Arc<RoleBinding>>,
    pub(super) work: Option<Arc<RoleBinding>>,
}

impl ClusterRbac {
    fn is_empty(&self) -> bool {
        self.role.is_none() && self.role_binding.is_none() && self.registration.is_none() && self.work.is_none()
    }

    /// Whether any of them was created after the cluster.
    fn were_given_to(&self, cluster: &ManagedCluster) -> bool {
        let created = |meta: &ObjectMeta| meta.creation_timestamp.clone();
        let is_younger = |meta: &ObjectMeta| created(meta) >= created(&cluster.metadata);
        let Self { role, role_binding, registration, work } = self;
        role.as_ref().is_some_and(|it| is_younger(&it.metadata))
            || role_binding.as_ref().is_some_and(|it| is_younger(&it.metadata))
            || registration.as_ref().is_some_and(|it| is_younger(&it.metadata))
            || work.as_ref().is_some_and(|it| is_younger(&it.metadata))
    }
}

/// The phase of a cluster. That it was accepted once shows in its condition and in the rights it has had since it was
/// created: its agent may remove the condition, and a backup may lack it. RBAC objects that are older than the cluster are those
/// of another cluster that had its name.
pub(super) fn phase(cluster: Option<&ManagedCluster>, rights: &ClusterRbac) -> Phase {
    let Some(cluster) = cluster else { return Phase::Gone };
    if write::is_deleting(cluster) {
        Phase::Deleting
    } else if cluster.spec.hub_accepts_client {
        Phase::Accepted
    } else if condition(cluster, conditions::cluster::HUB_ACCEPTED).is_some() || rights.were_given_to(cluster) {
        Phase::Denied
    } else {
        Phase::Pending
    }
}

/// Whether the decision depends on works in the cluster's namespace: while there are any, the binding for works stays, a
/// deleted cluster is not released, and a cluster is not reported as denied.
pub(super) fn works_matter(
    phase: Phase,
    is_refused: bool,
    cluster: Option<&ManagedCluster>,
    rights: &ClusterRbac,
) -> bool {
    let work = rights.work.as_deref();
    match phase {
        Phase::Accepted => work.is_some_and(|work| is_refused || write::is_deleting(work)),
        Phase::Denied => work.is_some() || !cluster.is_some_and(is_reported_denied),
        Phase::Deleting => {
            work.is_some() || cluster.is_some_and(|it| write::has_finalizer(it, CLUSTER_API_RESOURCE_CLEANUP))
        }
        Phase::Pending | Phase::Gone => work.is_some(),
    }
}

fn is_reported_denied(cluster: &ManagedCluster) -> bool {
    let accepted = condition(cluster, conditions::cluster::HUB_ACCEPTED);
    accepted.is_some_and(|it| it.status == status::FALSE && it.reason == reasons::HUB_CLUSTER_ADMIN_DENIED)
}

impl ClusterController {
    pub(super) async fn gather(&self, name: &str) -> Result<Option<Observed>> {
        let (cluster, rights) = (self.clusters.named(name), self.rights(name));
        let phase = phase(cluster.as_deref(), &rights);
        if matches!(phase, Phase::Pending | Phase::Gone) && rights.is_empty() {
            return Ok(None);
        }
        if phase == Phase::Gone && self.hub.cluster_exists(name).await? {
            return Ok(None);
        }
        let refusal = names::refusal(name, &self.hub.config.namespace);
        let works_matter = works_matter(phase, refusal.is_some(), cluster.as_deref(), &rights);
        let namespace = if phase == Phase::Accepted { self.namespace(name).await? } else { None };
        Ok(Some(Observed {
            name: name.into(),
            phase,
            refusal,
            cluster,
            namespace,
            rights,
            shared_roles_exist: self.shared_roles_exist(),
            works_remain: works_matter && self.hub.works_remain(name).await?,
            labels: self.hub.config.labels.clone(),
        }))
    }

    /// The RBAC objects that belong to the cluster. Objects of their names that belong to another cluster or to all of
    /// them are left out.
    fn rights(&self, name: &str) -> ClusterRbac {
        let own = rbac::cluster_role(name);
        let is_shared = SHARED_CLUSTER_ROLES.contains(&own.as_str());
        let binding = |binding| owned(self.bindings.get(&ObjectKey::new(name, binding)), name);
        ClusterRbac {
            role: owned(self.roles.named(&own), name).filter(|_| !is_shared),
            role_binding: owned(self.role_bindings.named(&own), name),
            registration: binding(rbac::registration_role_binding(name)),
            work: binding(rbac::work_role_binding(name)),
        }
    }

    fn shared_roles_exist(&self) -> bool {
        [rbac::REGISTRATION_CLUSTER_ROLE, rbac::WORK_CLUSTER_ROLE].iter().all(|name| self.roles.named(name).is_some())
    }

    /// Read each time rather than watched: nothing else here needs namespaces.
    async fn namespace(&self, name: &str) -> Result<Option<Namespace>> {
        Ok(write::get(&Api::all(self.hub.client.clone()), name).await?)
    }
}

fn owned<K: Resource>(object: Option<Arc<K>>, cluster: &str) -> Option<Arc<K>> {
    object.filter(|object| cluster_of(object.as_ref()).as_deref() == Some(cluster))
}
