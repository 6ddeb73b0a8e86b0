//! The RBAC objects of a cluster, and the two cluster roles that all clusters share.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    core::v1::Namespace,
    rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleBinding, RoleRef, Subject},
};
use kube::api::ObjectMeta;
use ocm_api::{authorization, cluster, finalizers, identities, labels, rbac, work};

/// API group of add-ons.
const ADDON_GROUP: &str = "addon.open-cluster-management.io";

/// Labels of everything kept for a cluster, or with an empty name for all clusters.
pub(crate) fn labels_for(cluster: &str, more: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut labels = more.clone();
    labels.insert(labels::CLUSTER_NAME.into(), cluster.into());
    labels
}

/// The cluster's namespace.
pub(crate) fn namespace(cluster: &str, more: &BTreeMap<String, String>) -> Namespace {
    Namespace { metadata: meta(cluster.into(), cluster, more), ..Namespace::default() }
}

/// What the agents of a cluster may do everywhere on the hub. One that was denied may look at its own cluster, no more.
pub(crate) fn cluster_role(cluster: &str, accepted: bool, more: &BTreeMap<String, String>) -> ClusterRole {
    let own = |resource: &str, verbs: &[&str]| PolicyRule {
        resource_names: Some(vec![cluster.into()]),
        ..rule(&[cluster::GROUP], &[resource], verbs)
    };
    let rules = if accepted {
        vec![
            rule(&["certificates.k8s.io"], &["certificatesigningrequests"], &["create", "get", "list", "watch"]),
            renewal(),
            own("managedclusters", &["get", "list", "update", "watch"]),
            own("managedclusters/status", &["patch", "update"]),
        ]
    } else {
        vec![own("managedclusters", &["get", "list", "watch"])]
    };
    ClusterRole {
        metadata: meta(rbac::cluster_role(cluster), cluster, more),
        rules: Some(rules),
        aggregation_rule: None,
    }
}

fn renewal() -> PolicyRule {
    let resource = format!("{}/{}", authorization::MANAGED_CLUSTERS, authorization::CLIENT_CERTIFICATES);
    rule(&[authorization::REGISTER_GROUP], &[&resource], &[authorization::RENEW])
}

/// Gives a cluster's agents its cluster role.
pub(crate) fn cluster_role_binding(cluster: &str, more: &BTreeMap<String, String>) -> ClusterRoleBinding {
    let name = rbac::cluster_role(cluster);
    ClusterRoleBinding {
        role_ref: to_cluster_role(&name),
        metadata: meta(name, cluster, more),
        subjects: Some(subjects(cluster)),
    }
}

/// Gives a cluster's agents what they need for registration, in the cluster's namespace.
pub(crate) fn registration_binding(cluster: &str, more: &BTreeMap<String, String>) -> RoleBinding {
    role_binding(cluster, rbac::registration_role_binding(cluster), rbac::REGISTRATION_CLUSTER_ROLE, more)
}

/// Gives a cluster's agents what they need for works. Its finalizer keeps it while there are works, so that the agent
/// can still clean up while the namespace is deleted.
pub(crate) fn work_binding(cluster: &str, more: &BTreeMap<String, String>) -> RoleBinding {
    let mut binding = role_binding(cluster, rbac::work_role_binding(cluster), rbac::WORK_CLUSTER_ROLE, more);
    binding.metadata.finalizers = Some(vec![finalizers::MANIFEST_WORK.into()]);
    binding
}

fn role_binding(cluster: &str, name: String, role: &str, more: &BTreeMap<String, String>) -> RoleBinding {
    RoleBinding {
        metadata: ObjectMeta { namespace: Some(cluster.into()), ..meta(name, cluster, more) },
        role_ref: to_cluster_role(role),
        subjects: Some(subjects(cluster)),
    }
}

/// The roles that the bindings of all clusters refer to.
pub(crate) fn shared_roles(more: &BTreeMap<String, String>) -> [ClusterRole; 2] {
    let role = |name: &str, rules| ClusterRole {
        metadata: meta(name.into(), "", more),
        rules: Some(rules),
        aggregation_rule: None,
    };
    [role(rbac::REGISTRATION_CLUSTER_ROLE, registration_rules()), role(rbac::WORK_CLUSTER_ROLE, work_rules())]
}

fn registration_rules() -> Vec<PolicyRule> {
    vec![
        rule(&["coordination.k8s.io"], &["leases"], &["get", "list", "watch", "update"]),
        rule(&[ADDON_GROUP], &["managedclusteraddons"], &["get", "list", "watch"]),
        rule(&[ADDON_GROUP], &["managedclusteraddons/status"], &["patch", "update"]),
        rule(&["events.k8s.io"], &["events"], &["create"]),
    ]
}

fn work_rules() -> Vec<PolicyRule> {
    vec![
        rule(&["", "events.k8s.io"], &["events"], &["create", "patch", "update"]),
        rule(&[work::GROUP], &["manifestworks"], &["get", "list", "watch", "update", "patch"]),
        rule(&[work::GROUP], &["manifestworks/status"], &["patch", "update"]),
    ]
}

fn meta(name: String, cluster: &str, more: &BTreeMap<String, String>) -> ObjectMeta {
    ObjectMeta { name: Some(name), labels: Some(labels_for(cluster, more)), ..ObjectMeta::default() }
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(owned(groups)),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

fn to_cluster_role(name: &str) -> RoleRef {
    RoleRef { api_group: rbac::API_GROUP.into(), kind: "ClusterRole".into(), name: name.into() }
}

fn subjects(cluster: &str) -> Vec<Subject> {
    let group =
        |name| Subject { api_group: Some(rbac::API_GROUP.into()), kind: "Group".into(), name, ..Subject::default() };
    vec![group(identities::cluster_group(cluster)), group(identities::cluster_aws_group(cluster))]
}
