//! Agents with a client certificate of the API server, which they ask for themselves.

use std::collections::BTreeSet;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::{feature_gates::MANAGED_CLUSTER_AUTO_APPROVAL, signers};

use super::Driver;
use crate::{HubConfig, requester::Requester};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct CsrDriver {
    bootstrap_users: BTreeSet<String>,
}

impl CsrDriver {
    pub(crate) fn new(config: &HubConfig) -> Self {
        let is_on = config.gates.enabled(MANAGED_CLUSTER_AUTO_APPROVAL);
        // A request without a requester must not match an empty name.
        let users = config.auto_approved_csr_users.iter().filter(|user| is_on && !user.is_empty());
        Self { bootstrap_users: users.cloned().collect() }
    }
}

impl Driver for CsrDriver {
    fn signer(&self) -> Option<&'static str> {
        Some(signers::KUBE_API_SERVER_CLIENT)
    }

    /// Whom the API server has authenticated.
    fn requester(&self, request: &CertificateSigningRequest) -> Requester {
        let spec = &request.spec;
        Requester {
            user: spec.username.clone().unwrap_or_default(),
            uid: spec.uid.clone(),
            groups: spec.groups.clone(),
            extra: spec.extra.clone(),
        }
    }
    fn may_bootstrap(&self, user: &str) -> bool {
        self.bootstrap_users.contains(user)
    }
}

#[cfg(test)]
mod tests {
    use ocm_runtime::feature_gates::FeatureGates;

    use super::*;
    use crate::feature_gates;

    fn driver(gates: &str) -> CsrDriver {
        let gates = FeatureGates::parse(&feature_gates::known(), &[gates.into()]).unwrap();
        let auto_approved_csr_users = vec![String::new(), "bootstrap".into()];
        CsrDriver::new(&HubConfig { gates, auto_approved_csr_users, ..HubConfig::default() })
    }

    #[test]
    fn the_listed_users_and_no_others_may_bootstrap() {
        let driver = driver("ManagedClusterAutoApproval=true");
        assert!(driver.may_bootstrap("bootstrap"));
        for user in ["", "bootstrap2", "Bootstrap", "system:open-cluster-management:c1:agent1"] {
            assert!(!driver.may_bootstrap(user), "{user:?}");
        }
    }

    #[test]
    fn without_the_feature_gate_nobody_may() {
        assert!(!driver("").may_bootstrap("bootstrap"));
    }
}
