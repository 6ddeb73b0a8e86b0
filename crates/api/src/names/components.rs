//! Names by which components show themselves in events and managed fields.

/// `reportingController` of the hub's registration events.
pub const REGISTRATION_CONTROLLER: &str = "registration-controller";
/// `reportingController` of the agent's events.
pub const KLUSTERLET_AGENT: &str = "klusterlet-agent";

/// `reportingController` of the hub's placement events.
pub const PLACEMENT_CONTROLLER: &str = "placement-controller";

/// Service account of the hub's registration controllers.
pub const REGISTRATION_CONTROLLER_ACCOUNT: &str = "registration-controller-sa";
/// Service account of the hub's registration webhooks.
pub const REGISTRATION_WEBHOOK_ACCOUNT: &str = "registration-webhook-sa";
/// Service account of the hub's work controllers.
pub const WORK_CONTROLLER_ACCOUNT: &str = "work-controller-sa";
/// Service account of the hub's work webhooks.
pub const WORK_WEBHOOK_ACCOUNT: &str = "work-webhook-sa";
/// Service account of the hub's placement controllers.
pub const PLACEMENT_CONTROLLER_ACCOUNT: &str = "placement-controller-sa";
/// Service account of the hub's add-on controllers.
pub const ADDON_MANAGER_ACCOUNT: &str = "addon-manager-controller-sa";
/// Service account of the add-on conversion webhook.
pub const ADDON_WEBHOOK_ACCOUNT: &str = "addon-webhook-sa";
/// Service account of the hub's gRPC server.
pub const GRPC_SERVER_ACCOUNT: &str = "grpc-server-sa";

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

/// `metadata.generateName` of an add-on's certificate signing requests.
pub fn addon_csr_generate_name(cluster: &str, addon: &str) -> String {
    format!("addon-{cluster}-{addon}-")
}

/// Name of the nth PlacementDecision of a placement, from 1.
pub fn placement_decision_name(placement: &str, number: usize) -> String {
    format!("{placement}-decision-{number}")
}

/// Begins the names of the works that bring an add-on to the managed cluster; `-` and a number from 0 follow.
pub fn addon_work_prefix(addon: &str) -> String {
    format!("addon-{addon}-deploy")
}

/// Begins the names of the works that bring an add-on to its hosting cluster; `-` and a number from 0 follow. `namespace`
/// is that of the ManagedClusterAddOn.
pub fn addon_hosting_work_prefix(addon: &str, namespace: &str) -> String {
    format!("addon-{addon}-deploy-hosting-{namespace}")
}

/// Name of the work with an add-on's pre-delete hooks.
pub fn addon_pre_delete_work(addon: &str) -> String {
    format!("addon-{addon}-pre-delete")
}

/// Name of the work with an add-on's pre-delete hooks on its hosting cluster.
pub fn addon_hosting_pre_delete_work(addon: &str, namespace: &str) -> String {
    format!("addon-{addon}-pre-delete-hosting-{namespace}")
}

/// Name of a Deployment of the hub: `component` is `registration-controller`, `registration-webhook`, `work-controller`,
/// `work-webhook`, `placement-controller`, `addon-manager-controller`, `addon-webhook` or `grpc-server`.
pub fn hub_deployment(cluster_manager: &str, component: &str) -> String {
    format!("{cluster_manager}-{component}")
}

/// Name of a Deployment of the agent: `part` is `registration-agent`, `work-agent` or `agent`.
pub fn agent_deployment(klusterlet: &str, part: &str) -> String {
    format!("{klusterlet}-{part}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_addons_are_told_apart_by_prefix() {
        assert_eq!(addon_csr_generate_name("c1", "hello"), "addon-c1-hello-");
        assert_eq!(addon_work_prefix("hello"), "addon-hello-deploy");
        assert_eq!(addon_hosting_work_prefix("hello", "c1"), "addon-hello-deploy-hosting-c1");
        assert_eq!(addon_hosting_pre_delete_work("hello", "c1"), "addon-hello-pre-delete-hosting-c1");
        assert_eq!(placement_decision_name("prod", 1), "prod-decision-1");
    }
}
