//! What fuzz targets reach of reading the registrations of add-ons. Only builds by cargo-fuzz have it.

use std::time::Duration;

use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, secrets};
use ocm_runtime::{ObjectKey, pki::Subject};

use super::{Settings, target::Desired};

/// The namespace of the agent whose add-ons are read.
pub const NAMESPACE: &str = "agent";

/// The secrets of an add-on and whom their certificates are for; and why a registration gets none.
pub fn certificates(addon: &ManagedClusterAddOn) -> (Vec<(ObjectKey, Subject)>, Option<String>) {
    let settings = Settings {
        cluster: "c1".into(),
        own_secrets: [secrets::HUB_KUBECONFIG, secrets::BOOTSTRAP_HUB_KUBECONFIG]
            .map(|name| ObjectKey::new(NAMESPACE, name))
            .into(),
        kubeconfig: String::new(),
        certificate_seconds: None,
        lease_period: Duration::from_secs(30),
    };
    let (targets, refused) = match settings.desired(addon) {
        Desired::Driver => (Vec::new(), None),
        Desired::Unchanged { targets } => (targets, None),
        Desired::Certificates { targets, refused } => (targets, refused),
    };
    (targets.into_iter().map(|target| (target.certificate.secret, target.certificate.subject)).collect(), refused)
}
