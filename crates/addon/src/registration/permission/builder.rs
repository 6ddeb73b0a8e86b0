//! [`PermissionBuilder`]: Roles and RoleBindings for the agent.

use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::{ResourceExt as _, api::ObjectMeta};
use ocm_api::{labels, rbac};

use super::{
    PermissionConfig, PermissionContext,
    reconcile::{Pair, prune, reconcile},
};
use crate::{Installation, PermissionError, owner};

/// Roles for the agent in its cluster's namespace on the hub. The ManagedClusterAddOn owns them, so they are deleted with it.
///
/// A Role or RoleBinding of the same name that the ManagedClusterAddOn does not own is left alone, and the add-on's
/// condition `RegistrationApplied` names it. What a former version of the add-on granted and this one does not is deleted.
///
/// ```
/// use ocm_addon::{AgentAddonOptions, PermissionBuilder};
///
/// let may_read = PermissionBuilder::rule("", &["configmaps"], &["get", "list", "watch"]);
/// let permissions = PermissionBuilder::new().bind_role("open-cluster-management:hello:agent", vec![may_read]);
/// let options = AgentAddonOptions::new("hello").permissions(permissions);
/// ```
///
/// The manager must itself hold what it grants: give its service account the same rules in all namespaces.
#[doc(alias("RBACPermissionBuilder", "NewRBACPermissionConfigBuilder"))]
#[derive(Clone, Debug, Default)]
pub struct PermissionBuilder {
    bindings: Vec<Binding>,
}

#[derive(Clone, Debug)]
struct Binding {
    name: String,
    /// Of a Role of the binding's name; `None` if an existing ClusterRole is bound.
    rules: Option<Vec<PolicyRule>>,
    role: RoleRef,
}

impl PermissionBuilder {
    /// No permissions.
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
    #[doc(alias("BindKubeClientRole", "BindRoleToUser", "BindRoleToGroup", "WithStaticRole"))]
    #[must_use]
    pub fn bind_role(mut self, name: impl Into<String>, rules: Vec<PolicyRule>) -> Self {
        let name = name.into();
        self.bindings.push(Binding { role: role_ref("Role", &name), rules: Some(rules), name });
        self
    }

    /// Makes a RoleBinding `name` in the cluster's namespace that grants the agent an existing ClusterRole in that namespace
    /// only.
    #[doc(alias("BindKubeClientClusterRole", "BindClusterRoleToUser"))]
    #[must_use]
    pub fn bind_cluster_role(mut self, name: impl Into<String>, cluster_role: &str) -> Self {
        self.bindings.push(Binding { role: role_ref("ClusterRole", cluster_role), rules: None, name: name.into() });
        self
    }

    /// The desired objects.
    fn objects(&self, on: &Installation<'_>, subjects: &[Subject]) -> Vec<Pair> {
        self.bindings.iter().map(|binding| binding.objects(on, subjects)).collect()
    }
}

impl Binding {
    fn objects(&self, on: &Installation<'_>, subjects: &[Subject]) -> Pair {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: on.addon.namespace(),
            labels: Some([(labels::ADDON_NAME.to_owned(), on.addon_name())].into()),
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
    fn apply<'a>(&'a self, grant: &'a PermissionContext<'a>) -> BoxFuture<'a, Result<(), PermissionError>> {
        Box::pin(async move {
            match grant.subjects() {
                Ok(subjects) => reconcile(grant, &self.objects(grant.on, &subjects)).await,
                Err(error) => prune(grant, &self.objects(grant.on, &[])).await.and(Err(error)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::{addon::v1beta1::ManagedClusterAddOn, cluster::v1::ManagedCluster};

    use super::*;

    fn objects(builder: &PermissionBuilder) -> Vec<Pair> {
        let cluster = ManagedCluster::new("c1", Default::default());
        let mut addon = ManagedClusterAddOn::new("c1", "hello", Default::default());
        addon.metadata.uid = Some("u".into());
        let on = Installation::new(&cluster, &addon, "default");
        builder.objects(&on, &[])
    }

    #[test]
    fn a_role_and_its_binding_are_in_the_clusters_namespace_and_owned_by_the_add_on() {
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
        assert_eq!(role.labels()["open-cluster-management.io/addon-name"], "hello");
        assert_eq!((binding.role_ref.kind.as_str(), binding.role_ref.name.as_str()), ("Role", "r"));
    }

    #[test]
    fn a_cluster_role_is_bound_in_the_namespace_only() {
        let objects = objects(&PermissionBuilder::new().bind_cluster_role("r", "view"));
        let (role, binding) = &objects[0];
        assert!(role.is_none());
        assert_eq!((binding.role_ref.kind.as_str(), binding.role_ref.name.as_str()), ("ClusterRole", "view"));
    }
}
