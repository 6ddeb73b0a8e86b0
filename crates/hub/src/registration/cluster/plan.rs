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
    pub(super) waits_for: WaitReason,
    pub(super) namespace: Option<NamespaceStep>,
    /// The cluster with the finalizer, which is written before any rights.
    pub(super) with_finalizer: Option<Box<ManagedCluster>>,
    pub(super) role: Option<Step<ClusterRole>>,
    pub(super) role_binding: Option<Step<ClusterRoleBinding>>,
    pub(super) registration: Option<Step<RoleBinding>>,
    pub(super) work: Option<Step<RoleBinding>>,
    /// The cluster without the finalizer, once nothing is left to clean up.
    pub(super) without_finalizer: Option<Box<ManagedCluster>>,
}

/// What the hub waits for before it can do the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WaitReason {
    /// Nothing.
    #[default]
    None,
    /// The roles that bindings refer to: nothing is written before they exist.
    SharedRoles,
    /// The works in the cluster's namespace: its agent still has to clean up.
    Works,
    /// The namespace, which is being deleted: nothing can be created in it until it is gone.
    Namespace,
}

impl WaitReason {
    fn for_works(remain: bool) -> Self {
        if remain { Self::Works } else { Self::None }
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
        Phase::Accepted if namespace_is_deleting(observed) => wait_for_namespace(observed),
        Phase::Accepted if observed.shared_roles_exist => accept(observed),
        Phase::Accepted => Plan { waits_for: WaitReason::SharedRoles, ..Plan::default() },
        Phase::Denied => deny(observed),
        Phase::Pending | Phase::Deleting | Phase::Gone => withdraw(observed),
    }
}

fn namespace_is_deleting(observed: &Observed) -> bool {
    observed.namespace.as_ref().is_some_and(write::is_deleting)
}

/// The binding for works goes last, when the agent no longer needs it; until then it keeps the namespace.
fn wait_for_namespace(observed: &Observed) -> Plan {
    let is_free = |binding: &&Arc<RoleBinding>| write::is_deleting(binding.as_ref()) && !observed.works_remain;
    let work = removal(observed.rights.work.as_ref().filter(is_free), true);
    Plan { waits_for: WaitReason::Namespace, work, ..Plan::default() }
}

fn accept(observed: &Observed) -> Plan {
    let Observed { name, rights, labels, works_remain, .. } = observed;
    // A binding that is being deleted grants until it is gone, and can be created again only then.
    let is_deleting = rights.work.as_ref().is_some_and(|work| write::is_deleting(work.as_ref()));
    let keep = is_deleting && *works_remain;
    Plan {
        waits_for: WaitReason::for_works(keep),
        namespace: namespace_step(observed),
        with_finalizer: observed.cluster.as_deref().and_then(add_finalizer).map(Box::new),
        role: upsert(rights.role.as_ref(), objects::cluster_role(name, true, labels)),
        role_binding: upsert(rights.role_binding.as_ref(), objects::cluster_role_binding(name, labels)),
        registration: upsert(rights.registration.as_ref(), objects::registration_binding(name, labels)),
        work: upsert(rights.work.as_ref(), objects::work_binding(name, labels)).filter(|_| !keep),
        ..Plan::default()
    }
}

/// The agent of a denied cluster may still read its ManagedCluster, to learn that it is denied.
fn deny(observed: &Observed) -> Plan {
    let Observed { name, rights, labels, works_remain, .. } = observed;
    Plan {
        waits_for: WaitReason::for_works(*works_remain),
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
        waits_for: WaitReason::for_works(*works_remain && is_held),
        role: removal(rights.role.as_ref(), false),
        role_binding: removal(rights.role_binding.as_ref(), false),
        registration: removal(rights.registration.as_ref(), false),
        work: removal(rights.work.as_ref(), !works_remain),
        without_finalizer: deleting.filter(|_| !works_remain).and_then(remove_finalizer).map(Box::new),
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

fn add_finalizer(cluster: &ManagedCluster) -> Option<ManagedCluster> {
    write::with_finalizer(cluster, CLUSTER_API_RESOURCE_CLEANUP)
}

fn remove_finalizer(cluster: &ManagedCluster) -> Option<ManagedCluster> {
    write::without_finalizer(cluster, CLUSTER_API_RESOURCE_CLEANUP)
}
