//! What must change of what the hub keeps for a cluster.

use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::Namespace,
    rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding},
};
use kube::ResourceExt as _;
use ocm_api::{cluster::v1::ManagedCluster, finalizers::CLUSTER_API_RESOURCE_CLEANUP};
use ocm_runtime::write;

use super::{
    observe::{Observed, Phase},
    rbac::{Step, add_missing, objects, removal, upsert},
};

/// What to write, in the order of its fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    pub(super) waits: Waits,
    pub(super) namespace: Option<NamespaceStep>,
    /// The cluster with its finalizer, before it gets any rights.
    pub(super) claim: Option<Box<ManagedCluster>>,
    pub(super) role: Option<Step<ClusterRole>>,
    pub(super) role_binding: Option<Step<ClusterRoleBinding>>,
    pub(super) registration: Option<Step<RoleBinding>>,
    pub(super) work: Option<Step<RoleBinding>>,
    /// The cluster without its finalizer, when nothing is left to do.
    pub(super) release: Option<Box<ManagedCluster>>,
}

/// What the hub waits for before it can do the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Waits {
    /// Nothing.
    #[default]
    No,
    /// The roles that bindings refer to: nothing is written before they are there.
    ForSharedRoles,
    /// The works in the cluster's namespace, which its agent may still clean up.
    ForWorks,
    /// The namespace, which somebody deletes: nothing can be made in it before it is gone.
    ForNamespace,
}

impl Waits {
    fn for_works(remain: bool) -> Self {
        if remain { Self::ForWorks } else { Self::No }
    }
}

/// What to do with the cluster's namespace. It is never deleted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NamespaceStep {
    Create(Box<Namespace>),
    Label { old: Box<Namespace>, new: Box<Namespace> },
}

/// A name that is refused comes before anything else: nothing may be written under the names of others.
pub(super) fn plan(observed: &Observed) -> Plan {
    if observed.refusal.is_some() {
        return withdraw(observed);
    }
    match observed.phase {
        Phase::Accepted if namespace_is_leaving(observed) => wait_for_namespace(observed),
        Phase::Accepted if observed.shared_roles_exist => accept(observed),
        Phase::Accepted => Plan { waits: Waits::ForSharedRoles, ..Plan::default() },
        Phase::Denied => deny(observed),
        Phase::Pending | Phase::Deleting | Phase::Gone => withdraw(observed),
    }
}

fn namespace_is_leaving(observed: &Observed) -> bool {
    observed.namespace.as_ref().is_some_and(write::is_deleting)
}

/// The binding for works goes last, when the agent no longer needs it; until then it keeps the namespace.
fn wait_for_namespace(observed: &Observed) -> Plan {
    let is_free = |binding: &&Arc<RoleBinding>| write::is_deleting(binding.as_ref()) && !observed.works_remain;
    let work = removal(observed.rights.work.as_ref().filter(is_free), true);
    Plan { waits: Waits::ForNamespace, work, ..Plan::default() }
}

fn accept(observed: &Observed) -> Plan {
    let Observed { name, rights, labels, works_remain, .. } = observed;
    // A binding on its way out goes on granting, and cannot come back before it is gone.
    let is_leaving = rights.work.as_ref().is_some_and(|work| write::is_deleting(work.as_ref()));
    let keep = is_leaving && *works_remain;
    Plan {
        waits: Waits::for_works(keep),
        namespace: namespace_step(observed),
        claim: observed.cluster.as_deref().and_then(claimed).map(Box::new),
        role: upsert(rights.role.as_ref(), objects::cluster_role(name, true, labels)),
        role_binding: upsert(rights.role_binding.as_ref(), objects::cluster_role_binding(name, labels)),
        registration: upsert(rights.registration.as_ref(), objects::registration_binding(name, labels)),
        work: upsert(rights.work.as_ref(), objects::work_binding(name, labels)).filter(|_| !keep),
        ..Plan::default()
    }
}

/// A denied cluster may still look at itself, so that its agent can tell.
fn deny(observed: &Observed) -> Plan {
    let Observed { name, rights, labels, works_remain, .. } = observed;
    Plan {
        waits: Waits::for_works(*works_remain),
        role: upsert(rights.role.as_ref(), objects::cluster_role(name, false, labels)),
        role_binding: upsert(rights.role_binding.as_ref(), objects::cluster_role_binding(name, labels)),
        registration: removal(rights.registration.as_ref(), false),
        work: removal(rights.work.as_ref(), !works_remain),
        ..Plan::default()
    }
}

/// Removes all rights, and releases the cluster if it is being deleted.
fn withdraw(observed: &Observed) -> Plan {
    let Observed { rights, works_remain, .. } = observed;
    let deleting = observed.cluster.as_deref().filter(|_| observed.phase == Phase::Deleting);
    let is_held = deleting.is_some() || rights.work.is_some();
    Plan {
        waits: Waits::for_works(*works_remain && is_held),
        role: removal(rights.role.as_ref(), false),
        role_binding: removal(rights.role_binding.as_ref(), false),
        registration: removal(rights.registration.as_ref(), false),
        work: removal(rights.work.as_ref(), !works_remain),
        release: deleting.filter(|_| !works_remain).and_then(released).map(Box::new),
        ..Plan::default()
    }
}

fn namespace_step(observed: &Observed) -> Option<NamespaceStep> {
    let desired = objects::namespace(&observed.name, &observed.labels);
    let Some(old) = &observed.namespace else { return Some(NamespaceStep::Create(Box::new(desired))) };
    let mut new = old.clone();
    let changed = add_missing(new.metadata.labels.get_or_insert_default(), desired.labels());
    changed.then(|| NamespaceStep::Label { old: Box::new(old.clone()), new: Box::new(new) })
}

fn claimed(cluster: &ManagedCluster) -> Option<ManagedCluster> {
    if write::has_finalizer(cluster, CLUSTER_API_RESOURCE_CLEANUP) {
        return None;
    }
    let mut new = cluster.clone();
    new.finalizers_mut().push(CLUSTER_API_RESOURCE_CLEANUP.into());
    Some(new)
}

fn released(cluster: &ManagedCluster) -> Option<ManagedCluster> {
    if !write::has_finalizer(cluster, CLUSTER_API_RESOURCE_CLEANUP) {
        return None;
    }
    let mut new = cluster.clone();
    new.finalizers_mut().retain(|finalizer| finalizer != CLUSTER_API_RESOURCE_CLEANUP);
    Some(new)
}
