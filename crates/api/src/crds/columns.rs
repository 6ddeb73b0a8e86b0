//! Columns that `kubectl get` prints.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceColumnDefinition as Column;

use crate::conditions;

pub(super) fn managed_cluster() -> Vec<Column> {
    vec![
        column("Hub Accepted", "boolean", ".spec.hubAcceptsClient"),
        column("Managed Cluster URLs", "string", ".spec.managedClusterClientConfigs[*].url"),
        status("Joined", conditions::cluster::JOINED),
        status("Available", conditions::cluster::AVAILABLE),
        column("Age", "date", ".metadata.creationTimestamp"),
    ]
}

pub(super) fn managed_cluster_set() -> Vec<Column> {
    vec![status("Empty", conditions::set::EMPTY), column("Age", "date", ".metadata.creationTimestamp")]
}

pub(super) fn placement() -> Vec<Column> {
    vec![
        status("Succeeded", conditions::placement::SATISFIED),
        reason("Reason", conditions::placement::SATISFIED),
        column("SelectedClusters", "integer", ".status.numberOfSelectedClusters"),
    ]
}

pub(super) fn manifest_work_replica_set() -> Vec<Column> {
    vec![
        reason("Placement", conditions::replica_set::PLACEMENT_VERIFIED),
        status("Found", conditions::replica_set::PLACEMENT_VERIFIED),
        reason("ManifestWorks", conditions::replica_set::MANIFEST_WORK_APPLIED),
        status("Applied", conditions::replica_set::MANIFEST_WORK_APPLIED),
    ]
}

pub(super) fn cluster_management_addon() -> Vec<Column> {
    vec![column("DISPLAY NAME", "string", ".spec.addOnMeta.displayName")]
}

/// Version v1alpha1 has a column for a field that v1beta1 dropped.
pub(super) fn cluster_management_addon_v1alpha1() -> Vec<Column> {
    let mut columns = cluster_management_addon();
    columns.push(column("CRD NAME", "string", ".spec.addOnConfiguration.crdName"));
    columns
}

pub(super) fn managed_cluster_addon() -> Vec<Column> {
    vec![
        status("Available", conditions::addon::AVAILABLE),
        status("Degraded", conditions::addon::DEGRADED),
        status("Progressing", conditions::addon::PROGRESSING),
    ]
}

pub(super) fn addon_template() -> Vec<Column> {
    vec![column("ADDON NAME", "string", ".spec.addonName")]
}

pub(super) fn cluster_property() -> Vec<Column> {
    vec![column("value", "string", ".spec.value"), column("age", "date", ".metadata.creationTimestamp")]
}

fn status(name: &str, condition: &str) -> Column {
    column(name, "string", &format!(r#".status.conditions[?(@.type=="{condition}")].status"#))
}

fn reason(name: &str, condition: &str) -> Column {
    column(name, "string", &format!(r#".status.conditions[?(@.type=="{condition}")].reason"#))
}

fn column(name: &str, type_: &str, json_path: &str) -> Column {
    Column { name: name.to_owned(), type_: type_.to_owned(), json_path: json_path.to_owned(), ..Column::default() }
}
