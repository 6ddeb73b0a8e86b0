//! Names of roles and bindings.

/// ClusterRole on the hub that every cluster's registration binding refers to.
pub const REGISTRATION_CLUSTER_ROLE: &str = "open-cluster-management:managedcluster:registration";

/// ClusterRole on the hub that every cluster's work binding refers to.
pub const WORK_CLUSTER_ROLE: &str = "open-cluster-management:managedcluster:work";

/// ClusterRole on the hub for those who may ask to join.
pub const BOOTSTRAP_CLUSTER_ROLE: &str = "open-cluster-management:bootstrap";

/// ClusterRoleBinding on the hub that gives [`BOOTSTRAP_CLUSTER_ROLE`] to bootstrap tokens.
pub const BOOTSTRAP_CLUSTER_ROLE_BINDING: &str = "open-cluster-management:bootstrap:managedcluster";

/// ClusterRoleBinding on the hub that gives [`BOOTSTRAP_CLUSTER_ROLE`] to the bootstrap service account.
pub const BOOTSTRAP_AGENT_CLUSTER_ROLE_BINDING: &str = "open-cluster-management:bootstrap:agent-registration";

/// Service account whose token lets an agent ask to join, in [`OPERATOR`](crate::namespaces::OPERATOR).
pub const BOOTSTRAP_SERVICE_ACCOUNT: &str = "agent-registration-bootstrap";

/// API group of roles, bindings and their subjects.
pub const API_GROUP: &str = "rbac.authorization.k8s.io";

/// A cluster's own ClusterRole on the hub, and the ClusterRoleBinding of the same name.
pub fn cluster_role(cluster: &str) -> String {
    format!("open-cluster-management:managedcluster:{cluster}")
}

/// RoleBinding to [`REGISTRATION_CLUSTER_ROLE`] in the cluster's namespace on the hub.
pub fn registration_role_binding(cluster: &str) -> String {
    format!("open-cluster-management:managedcluster:{cluster}:registration")
}

/// RoleBinding to [`WORK_CLUSTER_ROLE`] in the cluster's namespace on the hub.
pub fn work_role_binding(cluster: &str) -> String {
    format!("open-cluster-management:managedcluster:{cluster}:work")
}
