//! Builders for unit tests.

use ocm_api::addon::v1alpha1::{ClusterManagementAddOn, ManagedClusterAddOn};
use serde_json::{Value, json};

/// An add-on with this spec.
pub(crate) fn management(name: &str, spec: Value) -> ClusterManagementAddOn {
    let metadata = json!({"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1"});
    let mut object = json!({ "metadata": metadata });
    object["spec"] = spec;
    serde_json::from_value(object).unwrap()
}

/// An add-on on a cluster, with this spec.
pub(crate) fn addon(cluster: &str, name: &str, spec: Value) -> ManagedClusterAddOn {
    let metadata = json!({"name": name, "namespace": cluster, "uid": "uid", "resourceVersion": "1"});
    let mut object = json!({ "metadata": metadata });
    object["spec"] = spec;
    serde_json::from_value(object).unwrap()
}
