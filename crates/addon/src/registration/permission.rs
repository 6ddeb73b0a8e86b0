//! What an agent's identity may do on the hub: [`PermissionConfig`], and [`PermissionBuilder`] for the usual case.

use std::fmt::{self, Debug};

use futures::future::BoxFuture;
use k8s_openapi::{
    NamespaceResourceScope,
    api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
};
use kube::{Api, Client, Resource, ResourceExt as _, api::ObjectMeta};
use ocm_api::{identities, rbac};
use ocm_runtime::{
    error::found,
    write::{self, Writable},
};

use super::Identity;
use crate::{Installation, PermissionError, owner};

/// Sets up what an agent's identity may do on the hub.
///
/// Called when the identity changes and then every ten minutes, so that what somebody took away comes back. What it makes
/// should be owned by the ManagedClusterAddOn, so that it goes with it.
pub trait PermissionConfig: Send + Sync + 'static {
    /// Sets the rights up, or finds that they are.
    fn apply<'a>(&'a self, grant: &'a Grant<'a>) -> BoxFuture<'a, Result<(), PermissionError>>;
}

/// Whom to give rights to, and where.
#[derive(Clone, Copy)]
pub struct Grant<'a> {
    /// A client of the manager for the hub. It can only grant what the manager itself may do.
    pub client: &'a Client,
    /// The add-on on the cluster.
    pub on: &'a Installation<'a>,
    /// The agent's identity; `None` while nobody knows it.
    pub identity: Option<&'a Identity>,
    /// Whether nothing is there yet, so that looking for it can be spared.
    pub(crate) is_first: bool,
}

impl Debug for Grant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Grant<'_> {
    /// The identity as subjects of a binding in the cluster's namespace: the user, and the groups that this cluster's
    /// agents alone are in. The group of the add-on's agents on all clusters is left out, or an agent could read what is
    /// in the namespaces of other clusters.
    ///
    /// # Errors
    /// [`PermissionError::SubjectNotReady`].
    pub fn subjects(&self) -> Result<Vec<Subject>, PermissionError> {
        let identity = self.identity.ok_or(PermissionError::SubjectNotReady)?;
        Ok(subjects(identity, &self.on.addon_name()))
    }
}

fn subjects(identity: &Identity, addon: &str) -> Vec<Subject> {
    let subject = |kind: &str, name: &String| Subject {
        api_group: Some(rbac::API_GROUP.into()),
        kind: kind.into(),
        name: name.clone(),
        namespace: None,
    };
    let shared = ["system:authenticated".to_owned(), identities::addon_everywhere_group(addon)];
    let own = identity.groups.iter().filter(|group| !shared.contains(group));
    let user = (!identity.user.is_empty()).then(|| subject("User", &identity.user));
    user.into_iter().chain(own.map(|group| subject("Group", group))).collect()
}

/// Roles for the agent in its cluster's namespace on the hub. They go with the add-on.
///
/// ```
/// use ocm_addon::{PermissionBuilder, Registration};
///
/// let may_read = PermissionBuilder::rule("", &["configmaps"], &["get", "list", "watch"]);
/// let permissions = PermissionBuilder::new().bind_role("open-cluster-management:hello:agent", vec![may_read]);
/// let registration = Registration::kube_client("hello-agent").permissions(permissions);
/// ```
///
/// The manager must itself hold what it grants: give its service account the same rules in all namespaces.
#[derive(Clone, Debug, Default)]
pub struct PermissionBuilder {
    bindings: Vec<Binding>,
}

#[derive(Clone, Debug)]
struct Binding {
    name: String,
    /// Of a Role of the binding's name; without, it is somebody else's ClusterRole that is bound.
    rules: Option<Vec<PolicyRule>>,
    role: RoleRef,
}

impl PermissionBuilder {
    /// No rights.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A rule about resources of an API group; the core group's name is empty.
    #[must_use]
    pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        PolicyRule {
            api_groups: Some(vec![group.into()]),
            resources: Some(owned(resources)),
            verbs: owned(verbs),
            ..PolicyRule::default()
        }
    }

    /// Makes a Role with these rules in the cluster's namespace, and a RoleBinding of the same name that gives it to the
    /// agent.
    #[must_use]
    pub fn bind_role(mut self, name: impl Into<String>, rules: Vec<PolicyRule>) -> Self {
        let name = name.into();
        self.bindings.push(Binding { role: role_ref("Role", &name), rules: Some(rules), name });
        self
    }

    /// Makes a RoleBinding `name` in the cluster's namespace that gives the agent what a ClusterRole, which is there,
    /// grants; only in that namespace.
    #[must_use]
    pub fn bind_cluster_role(mut self, name: impl Into<String>, cluster_role: &str) -> Self {
        self.bindings.push(Binding { role: role_ref("ClusterRole", cluster_role), rules: None, name: name.into() });
        self
    }

    /// What there must be.
    fn objects(&self, on: &Installation<'_>, subjects: &[Subject]) -> Vec<(Option<Role>, RoleBinding)> {
        self.bindings.iter().map(|binding| binding.objects(on, subjects)).collect()
    }
}

impl Binding {
    fn objects(&self, on: &Installation<'_>, subjects: &[Subject]) -> (Option<Role>, RoleBinding) {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: on.addon.namespace(),
            owner_references: Some(vec![owner::reference(on.addon, false)]),
            ..ObjectMeta::default()
        };
        let role = self.rules.clone().map(|rules| Role { metadata: metadata.clone(), rules: Some(rules) });
        (role, RoleBinding { metadata, role_ref: self.role.clone(), subjects: Some(subjects.to_vec()) })
    }
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: rbac::API_GROUP.into(), kind: kind.into(), name: name.into() }
}

impl PermissionConfig for PermissionBuilder {
    fn apply<'a>(&'a self, grant: &'a Grant<'a>) -> BoxFuture<'a, Result<(), PermissionError>> {
        Box::pin(async move {
            for (role, binding) in self.objects(grant.on, &grant.subjects()?) {
                if let Some(role) = role {
                    ensure(grant, &role).await?;
                }
                ensure(grant, &binding).await?;
            }
            Ok(())
        })
    }
}

/// A kind of RBAC object in a namespace.
trait Granting: Writable + Resource<Scope = NamespaceResourceScope> + PartialEq {
    /// Makes it grant the same as `desired`; `None` when it must be made anew for that.
    fn granting_as(&self, desired: &Self) -> Option<Self>;
}

impl Granting for Role {
    fn granting_as(&self, desired: &Self) -> Option<Self> {
        Some(Self { rules: desired.rules.clone(), ..self.clone() })
    }
}

impl Granting for RoleBinding {
    fn granting_as(&self, desired: &Self) -> Option<Self> {
        let same = self.role_ref == desired.role_ref;
        same.then(|| Self { subjects: desired.subjects.clone(), ..self.clone() })
    }
}

/// Makes an object, or makes the one that is there grant the same. What else stands in it stays.
async fn ensure<K: Granting>(grant: &Grant<'_>, desired: &K) -> Result<(), ocm_runtime::Error> {
    let namespace = desired.namespace().unwrap_or_default();
    let api: Api<K> = Api::namespaced(grant.client.clone(), &namespace);
    if grant.is_first && create(&api, desired).await? {
        return Ok(());
    }
    let Some(old) = write::get(&api, &desired.name_any()).await? else {
        return write::create(&api, desired).await.map(|_| ());
    };
    match old.granting_as(desired) {
        Some(mut new) => {
            owner::adopt(new.meta_mut(), desired.owner_references());
            write::patch(&api, &old, &new).await.map(|_| ())
        }
        None => {
            found(write::delete(&api, &old).await)?;
            write::create(&api, desired).await.map(|_| ())
        }
    }
}

/// Whether it was made; not when there is one already.
async fn create<K: Granting>(api: &Api<K>, desired: &K) -> Result<bool, ocm_runtime::Error> {
    match write::create(api, desired).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_conflict() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, cluster::v1::ManagedCluster};

    use super::*;

    fn objects(builder: &PermissionBuilder) -> Vec<(Option<Role>, RoleBinding)> {
        let cluster = ManagedCluster::new("c1", Default::default());
        let mut addon = ManagedClusterAddOn::new("c1", "hello", Default::default());
        addon.metadata.uid = Some("u".into());
        let on = Installation { cluster: &cluster, addon: &addon, namespace: "default" };
        builder.objects(&on, &subjects(&Identity::of_agent("c1", "hello", "agent"), "hello"))
    }

    #[test]
    fn a_role_and_its_binding_are_in_the_clusters_namespace_and_go_with_the_add_on() {
        let rule = PermissionBuilder::rule("", &["configmaps"], &["get"]);
        let objects = objects(&PermissionBuilder::new().bind_role("r", vec![rule.clone()]));
        let (Some(role), binding) = &objects[0] else { panic!("no role") };
        assert_eq!(role.rules, Some(vec![rule]));
        assert_eq!(role.metadata, binding.metadata);
        assert_eq!((role.name_any().as_str(), role.namespace().as_deref()), ("r", Some("c1")));
        let owner = &role.owner_references()[0];
        assert_eq!(
            (owner.api_version.as_str(), owner.kind.as_str()),
            ("addon.open-cluster-management.io/v1beta1", "ManagedClusterAddOn")
        );
        assert_eq!((owner.controller, owner.block_owner_deletion), (None, Some(true)));
        assert!(role.labels().is_empty());
        assert_eq!((binding.role_ref.kind.as_str(), binding.role_ref.name.as_str()), ("Role", "r"));
    }

    #[test]
    fn the_user_and_the_group_of_this_cluster_are_bound_and_the_group_of_all_clusters_is_not() {
        let subjects = subjects(&Identity::of_agent("c1", "hello", "agent"), "hello");
        let named: Vec<_> = subjects.iter().map(|subject| (subject.kind.as_str(), subject.name.as_str())).collect();
        assert_eq!(
            named,
            [
                ("User", "system:open-cluster-management:cluster:c1:addon:hello:agent:agent"),
                ("Group", "system:open-cluster-management:cluster:c1:addon:hello"),
            ]
        );
    }

    #[test]
    fn a_cluster_role_is_bound_in_the_namespace_only() {
        let objects = objects(&PermissionBuilder::new().bind_cluster_role("r", "view"));
        let (role, binding) = &objects[0];
        assert!(role.is_none());
        assert_eq!((binding.role_ref.kind.as_str(), binding.role_ref.name.as_str()), ("ClusterRole", "view"));
    }

    #[test]
    fn a_binding_to_another_role_must_be_made_anew_and_one_to_the_same_gets_its_subjects() {
        let one = objects(&PermissionBuilder::new().bind_cluster_role("r", "view")).remove(0).1;
        let other = objects(&PermissionBuilder::new().bind_cluster_role("r", "edit")).remove(0).1;
        assert_eq!(one.granting_as(&other), None);
        let wider = RoleBinding { subjects: None, ..one.clone() };
        assert_eq!(wider.granting_as(&one), Some(one));
    }
}
