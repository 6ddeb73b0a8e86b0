//! Names that exist only in RBAC rules and access reviews: no API serves these resources.

/// API group of [`ACCEPT`] and [`CLIENT_CERTIFICATES`].
pub const REGISTER_GROUP: &str = "register.open-cluster-management.io";

/// Resource of [`ACCEPT`] and [`CLIENT_CERTIFICATES`].
pub const MANAGED_CLUSTERS: &str = "managedclusters";
/// Subresource: the right to `update` it is the right to accept the cluster of that name.
pub const ACCEPT: &str = "accept";
/// Subresource: an agent that may `renew` it gets its certificate renewals approved without an administrator.
pub const CLIENT_CERTIFICATES: &str = "clientcertificates";
/// Verb for [`CLIENT_CERTIFICATES`].
pub const RENEW: &str = "renew";

/// Resource, in group `cluster.open-cluster-management.io`, of [`JOIN`] and [`BIND`].
pub const MANAGED_CLUSTER_SETS: &str = "managedclustersets";
/// Subresource: the right to `create` it is the right to move clusters into and out of the set of that name.
pub const JOIN: &str = "join";
/// Subresource: the right to `create` it is the right to bind the set of that name to a namespace.
pub const BIND: &str = "bind";

/// Verb on `manifestworks`: the right to run works as the executor of that name.
pub const EXECUTE_AS: &str = "execute-as";
