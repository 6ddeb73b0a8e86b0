//! Names by which components show themselves in events and managed fields.

/// `reportingController` of the hub's registration events.
pub const REGISTRATION_CONTROLLER: &str = "registration-controller";
/// `reportingController` of the agent's events.
pub const KLUSTERLET_AGENT: &str = "klusterlet-agent";

/// Default field manager of server-side apply, and the prefix every other one must have.
pub const WORK_FIELD_MANAGER: &str = "work-agent";
/// Service account that works without an executor are checked as.
pub const DEFAULT_EXECUTOR_NAME: &str = "klusterlet-work-sa";

/// `metadata.generateName` of a cluster's certificate signing requests.
pub fn cluster_csr_generate_name(cluster: &str) -> String {
    format!("{cluster}-")
}

/// Name of the AppliedManifestWork of a work. `hub_hash` is the hex SHA-256 of the host of the hub's API server.
pub fn applied_manifest_work_name(hub_hash: &str, work: &str) -> String {
    format!("{hub_hash}-{work}")
}
