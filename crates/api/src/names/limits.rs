//! Intervals and limits that are part of the contract between hub, agent and users.

use std::time::Duration;

/// How often an agent renews its lease when `spec.leaseDurationSeconds` is absent or 0, in seconds.
pub const LEASE_DURATION_SECONDS: i32 = 60;
/// A cluster is unreachable, or its clock out of sync, after this many lease durations.
pub const LEASE_GRACE_FACTOR: u32 = 5;
/// Largest random addition to the pause between two renewals, as a share of it.
pub const LEASE_JITTER: f64 = 0.25;

/// How often the agent checks the health of its cluster's API server.
pub const CLUSTER_HEALTH_CHECK_PERIOD: Duration = Duration::from_secs(60);
/// How long the API server must fail before the cluster is reported unavailable.
pub const CLUSTER_HEALTH_FAILURE_THRESHOLD: Duration = Duration::from_secs(20);
/// How soon a failed health check is repeated until then.
pub const CLUSTER_HEALTH_RECHECK: Duration = Duration::from_secs(5);

/// How often the hub looks again while resources of a deleted cluster remain.
pub const CLUSTER_DELETION_RECHECK: Duration = Duration::from_secs(5);
/// How often the hub restores the sets `default` and `global`.
pub const CLUSTER_SET_ENFORCEMENT: Duration = Duration::from_secs(10);

/// Most ClusterClaims reported to the hub, reserved ones not counted.
pub const MAX_CUSTOM_CLUSTER_CLAIMS: usize = 20;
/// Longest value of a claim in the status of a ManagedCluster, in characters.
pub const MAX_CLAIM_VALUE_CHARACTERS: usize = 1024;
/// An agent with this many requests on the hub makes no more.
pub const MAX_CLUSTER_CSRS: usize = 10;
/// Shortest life time of a certificate an agent may ask for, in seconds.
pub const MIN_CERTIFICATE_SECONDS: i32 = 3600;
/// A certificate is renewed when this share of its life time is left; agents add up to a quarter of it at random.
pub const CERTIFICATE_RENEWAL_SHARE: f64 = 0.2;

/// Life time that agents ask for in tokens of add-ons, in seconds: a year.
pub const TOKEN_SECONDS: i64 = 31_536_000;
/// Shortest life time of a token that API servers issue, in seconds.
pub const MIN_TOKEN_SECONDS: i64 = 600;
/// Longest life time of a token that API servers take a request for, in seconds.
pub const MAX_TOKEN_SECONDS: i64 = 1 << 32;
/// A token is renewed when this share of its life time is left.
pub const TOKEN_RENEWAL_SHARE: f64 = 0.2;

/// How long an agent with several hubs goes without contact before it selects again.
pub const HUB_CONNECTION_TIMEOUT: Duration = Duration::from_secs(600);
/// How often it checks that.
pub const HUB_CONNECTION_CHECK_PERIOD: Duration = Duration::from_secs(60);
/// How long after its start it does not.
pub const HUB_CONNECTION_CHECK_GRACE: Duration = Duration::from_secs(10);

/// How often the cluster's agent reads the leases of add-ons.
pub const ADDON_LEASE_CHECK_PERIOD: Duration = Duration::from_secs(30);

/// Shortest pause until a work is applied again without a change.
pub const WORK_REAPPLY_MIN: Duration = Duration::from_secs(4 * 60);
/// Longest pause until a work is applied again without a change.
pub const WORK_REAPPLY_MAX: Duration = Duration::from_secs(6 * 60);
/// How often the agent reads the status of applied objects, plus up to 90 % at random.
pub const WORK_STATUS_SYNC: Duration = Duration::from_secs(10);
/// How long a record of applied objects stays after its work is gone or its hub has changed.
pub const EVICTION_GRACE: Duration = Duration::from_secs(60 * 60);
/// Ours alone: when more than this share of an agent's works is missing on the hub, in percent, nothing is deleted until somebody
/// confirms.
pub const IMPLICIT_DELETION_SHARE: u8 = 50;
/// Ours alone: so many works must be missing at least.
pub const IMPLICIT_DELETION_MINIMUM: usize = 3;
/// How soon a work is tried again when its executor lacks rights.
pub const EXECUTOR_DENIAL_RETRY: Duration = Duration::from_secs(60);
/// Largest feedback value of type `JsonRaw`, in bytes.
pub const MAX_RAW_FEEDBACK_BYTES: usize = 1024;
/// Largest sum of the manifests of a work, in bytes.
pub const MAX_MANIFEST_BYTES: usize = 512_000;

/// Most clusters in one PlacementDecision.
pub const MAX_DECISIONS: usize = 100;
/// Most characters of an event with scores, before what says that there are more.
pub const MAX_SCORE_NOTE: usize = 1000;
