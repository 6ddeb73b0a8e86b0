//! Annotation keys.

/// On a ManagedCluster: RFC 3339 time at which the hub accepted it on its own. It does so once in a cluster's life.
pub const AUTOMATICALLY_ACCEPTED_ON: &str = "open-cluster-management.io/automatically-accepted-on";

/// On what is deleted together with a cluster: a number from 0 to 100, lower goes first. Anything else counts as 0.
pub const CLEANUP_PRIORITY: &str = "open-cluster-management.io/cleanup-priority";

/// On a CSR that the gRPC server created for an agent: the user the server authenticated.
pub const CSR_USER: &str = "open-cluster-management.io/csr-user";

/// On an object applied with `ignoreFields`: hash of the manifest without the ignored fields.
pub const CONFIG_SPEC_HASH: &str = "open-cluster-management.io/config-spec-hash";

/// On a ManagedCluster, value `true`: its clock always counts as synced.
pub const SKIP_CLOCK_SYNC_CHECK: &str = "registration.open-cluster-management.io/skip-clock-sync-check";

/// On the cluster sets `default` and `global`, value `false`: the hub does not reset them.
pub const AUTO_UPDATE: &str = "cluster.open-cluster-management.io/autoupdate";

/// Prefix of the annotations that an agent may put on its ManagedCluster.
pub const AGENT_PREFIX: &str = "agent.open-cluster-management.io";

/// Prefix of annotations that are copied into log lines about the object.
pub const LOGGING_PREFIX: &str = "logging.open-cluster-management.io/";
