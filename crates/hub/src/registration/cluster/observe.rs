//! What the hub keeps for a cluster now.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::{
    core::v1::Namespace,
    rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding},
};
use kube::{Api, Resource};
use ocm_api::{cluster::v1::ManagedCluster, conditions, rbac};
use ocm_runtime::{ObjectKey, write};

use super::ClusterController;
use crate::{
    caches::cluster_of,
    error::Result,
    registration::{names, status::condition},
};

/// How the hub stands to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The cluster does not exist.
    Gone,
    /// Somebody has deleted it.
    Leaving,
    /// An admin has let it in.
    Accepted,
    /// An admin has let it in, but its name is somebody else's, or no namespace can have it.
    Refused(&'static str),
    /// An admin has let it in and taken that back.
    Denied,
    /// No admin has let it in yet.
    Unknown,
}

/// What a decision about a cluster depends on.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(super) name: String,
    pub(super) standing: Standing,
    pub(super) cluster: Option<Arc<ManagedCluster>>,
    /// Looked up for accepted clusters only.
    pub(super) namespace: Option<Namespace>,
    pub(super) rights: Rights,
    pub(super) shared_roles_exist: bool,
    pub(super) works_remain: bool,
    /// More labels for what the hub makes.
    pub(super) labels: BTreeMap<String, String>,
}

/// The RBAC objects of a cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Rights {
    pub(super) role: Option<Arc<ClusterRole>>,
    pub(super) role_binding: Option<Arc<ClusterRoleBinding>>,
    pub(super) registration: Option<Arc<RoleBinding>>,
    pub(super) work: Option<Arc<RoleBinding>>,
}

impl Rights {
    fn is_empty(&self) -> bool {
        self.role.is_none() && self.role_binding.is_none() && self.registration.is_none() && self.work.is_none()
    }
}

/// How the hub stands to a cluster. The condition remembers that it was let in once; without it, nothing was made.
pub(super) fn standing(name: &str, cluster: Option<&ManagedCluster>, hub_namespace: &str) -> Standing {
    let Some(cluster) = cluster else { return Standing::Gone };
    if write::is_deleting(cluster) {
        Standing::Leaving
    } else if cluster.spec.hub_accepts_client {
        names::refusal(name, hub_namespace).map_or(Standing::Accepted, Standing::Refused)
    } else if condition(cluster, conditions::cluster::HUB_ACCEPTED).is_some() {
        Standing::Denied
    } else {
        Standing::Unknown
    }
}

impl ClusterController {
    pub(super) async fn gather(&self, name: &str) -> Result<Option<Observed>> {
        let cluster = self.clusters.named(name);
        let standing = standing(name, cluster.as_deref(), &self.hub.config.namespace);
        let rights = self.rights(name);
        if standing == Standing::Unknown {
            return Ok(None);
        }
        if standing == Standing::Gone && (rights.is_empty() || self.hub.cluster_exists(name).await?) {
            return Ok(None);
        }
        let namespace = if standing == Standing::Accepted { self.namespace(name).await? } else { None };
        Ok(Some(Observed {
            name: name.into(),
            standing,
            cluster,
            namespace,
            rights,
            shared_roles_exist: self.shared_roles_exist(),
            works_remain: !self.works.in_namespace(name).is_empty(),
            labels: self.hub.config.labels.clone(),
        }))
    }

    fn rights(&self, name: &str) -> Rights {
        Rights {
            role: self.roles.named(&rbac::cluster_role(name)).filter(|role| belongs_to(role.as_ref(), name)),
            role_binding: self
                .role_bindings
                .named(&rbac::cluster_role(name))
                .filter(|it| belongs_to(it.as_ref(), name)),
            registration: self.bindings.get(&ObjectKey::new(name, rbac::registration_role_binding(name))),
            work: self.bindings.get(&ObjectKey::new(name, rbac::work_role_binding(name))),
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

/// A cluster could be named so that a role of that name is one that all clusters share.
fn belongs_to<K: Resource>(object: &K, cluster: &str) -> bool {
    cluster_of(object).as_deref() == Some(cluster)
}
