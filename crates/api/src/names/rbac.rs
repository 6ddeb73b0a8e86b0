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

/// Role and RoleBinding with which the cluster's agent gets tokens for an add-on, in the cluster's namespace on the hub.
pub fn addon_token_role(addon: &str) -> String {
    format!("{addon}-token-role")
}

/// Service account on the hub whose tokens an add-on's agent gets, in the cluster's namespace.
pub fn addon_token_service_account(addon: &str) -> String {
    format!("{addon}-agent")
}

/// RoleBinding of the agent of a template add-on; `role_kind` is `Role` or `ClusterRole`.
pub fn addon_template_role_binding(addon: &str, role_kind: &str) -> String {
    format!("open-cluster-management:{addon}:{}:agent", role_kind.to_lowercase())
}

/// ClusterRole and binding of one of a hub's components. `component` is what follows the ClusterManager's name, such as
/// `registration:controller`.
pub fn hub_cluster_role(cluster_manager: &str, component: &str) -> String {
    format!("open-cluster-management:{cluster_manager}-{component}")
}

/// ClusterRole and binding of a part of the agent, on the managed cluster. `part` is what follows the Klusterlet's name,
/// such as `work:execution`.
pub fn agent_cluster_role(klusterlet: &str, part: &str) -> String {
    format!("open-cluster-management:{klusterlet}-{part}")
}

/// Role and binding of a part of the agent, on the cluster where its pods run.
pub fn agent_management_role(klusterlet: &str, part: &str) -> String {
    format!("open-cluster-management:management:{klusterlet}-{part}")
}

/// Role and binding by which an agent's servers read how API servers authenticate, on the cluster where its pods run.
pub fn agent_extension_apiserver_role(klusterlet: &str) -> String {
    format!("open-cluster-management:management:{klusterlet}:extension-apiserver")
}

/// Service account of the registration agent.
pub fn registration_agent_service_account(klusterlet: &str) -> String {
    format!("{klusterlet}-registration-sa")
}

/// Service account of the work agent.
pub fn work_agent_service_account(klusterlet: &str) -> String {
    format!("{klusterlet}-work-sa")
}
