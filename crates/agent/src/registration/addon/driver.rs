//! What the status of an add-on must say before its agent gets credentials: how the agent authenticates to the hub's API
//! server, and with a token that it is the service account which the hub keeps for it. Pure.

use ocm_api::{
    addon::v1alpha1::{KubeClientDriver, ManagedClusterAddOn, ManagedClusterAddOnStatus, RegistrationConfig, Subject},
    conditions::{addon::TOKEN_REFRESHED, cluster::CERTIFICATE_ROTATED},
    identities, signers,
};

use super::Settings;

impl Settings {
    /// Whether agents of add-ons authenticate with tokens.
    pub(super) fn uses_tokens(&self) -> bool {
        self.driver == KubeClientDriver::Token
    }

    /// The user that the agent of an add-on is with a token.
    pub(super) fn account_user(&self, addon: &str) -> String {
        identities::addon_account_user(&self.cluster, addon)
    }

    /// Whether the status says how the add-on's agent authenticates, or does not have to.
    pub(super) fn has_driver(&self, addon: &ManagedClusterAddOn) -> bool {
        let Some(status) = &addon.status else { return true };
        let Some(first) = status.registrations.iter().find(|one| is_kube_client(one)) else { return true };
        status.kube_client_driver.as_ref() == Some(&self.driver)
            && (!self.uses_tokens() || first.subject.as_ref() == Some(&self.account_subject(addon)))
    }

    /// Whether a condition is about the credentials of another driver.
    pub(super) fn has_stale_condition(&self, addon: &ManagedClusterAddOn) -> bool {
        let stale = |status: &ManagedClusterAddOnStatus| {
            let former = self.former_condition(status);
            status.conditions.iter().any(|condition| Some(condition.type_.as_str()) == former)
        };
        addon.status.as_ref().is_some_and(stale)
    }

    /// The add-on with the driver of this agent, and without the condition of another driver.
    pub(super) fn with_driver(&self, addon: &ManagedClusterAddOn) -> ManagedClusterAddOn {
        let mut new = addon.clone();
        let status = new.status.get_or_insert_default();
        let former = status.kube_client_driver.replace(self.driver.clone());
        if let Some(first) = status.registrations.iter_mut().find(|one| is_kube_client(one)) {
            self.set_subject(first, former.as_ref(), self.account_subject(addon));
        }
        let former = self.former_condition(status);
        status.conditions.retain(|condition| Some(condition.type_.as_str()) != former);
        new
    }

    /// The condition that nothing writes any more, if the agent logs in to the hub's API server: with tokens, that of
    /// certificates stays if other signers issue some.
    fn former_condition(&self, status: &ManagedClusterAddOnStatus) -> Option<&'static str> {
        let kube_clients = status.registrations.iter().filter(|one| is_kube_client(one)).count();
        let others = status.registrations.iter().filter(|one| !is_kube_client(one) && !one.signer_name.is_empty());
        match (kube_clients, self.uses_tokens()) {
            (0, _) => None,
            (_, false) => Some(TOKEN_REFRESHED),
            (_, true) => others.count().eq(&0).then_some(CERTIFICATE_ROTATED),
        }
    }

    /// With tokens, the agent is the service account. An agent that stops using tokens removes that subject again, since an
    /// agent wrote it: until the manager writes another, the default of certificates applies.
    fn set_subject(&self, first: &mut RegistrationConfig, former: Option<&KubeClientDriver>, account: Subject) {
        if self.uses_tokens() {
            first.subject = Some(account);
        } else if former == Some(&KubeClientDriver::Token) && first.subject.as_ref() == Some(&account) {
            first.subject = None;
        }
    }

    fn account_subject(&self, addon: &ManagedClusterAddOn) -> Subject {
        let name = addon.metadata.name.as_deref().unwrap_or_default();
        Subject { user: self.account_user(name), ..Subject::default() }
    }
}

/// Whether a registration is for the hub's API server.
pub(super) fn is_kube_client(registration: &RegistrationConfig) -> bool {
    registration.signer_name == signers::KUBE_API_SERVER_CLIENT
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::registration::addon::target::tests::{addon, settings, token_settings};

    const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
    const ACCOUNT: &str = "system:serviceaccount:cluster1:hello-agent";

    fn condition(type_: &str) -> Value {
        json!({"type": type_, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    fn types(addon: &ManagedClusterAddOn) -> Vec<&str> {
        addon.status.iter().flat_map(|status| &status.conditions).map(|condition| condition.type_.as_str()).collect()
    }

    #[test]
    fn with_tokens_the_first_identity_at_the_hub_is_the_service_account_without_groups() {
        let subject = json!({"user": "u", "groups": ["g"], "organizationUnit": ["o"]});
        let other = json!({"signerName": "example.com/a", "subject": subject});
        let own = json!({"signerName": SIGNER, "subject": subject});
        let before = addon(&json!({"kubeClientDriver": "csr", "registrations": [other, own, own]}));
        assert!(!token_settings().has_driver(&before));
        let after = token_settings().with_driver(&before);
        assert!(token_settings().has_driver(&after));
        let status = serde_json::to_value(after.status.unwrap()).unwrap();
        let account = json!({"signerName": SIGNER, "subject": {"user": ACCOUNT}});
        assert_eq!(status["kubeClientDriver"], json!("token"));
        assert_eq!(status["registrations"], json!([other, account, own]));
    }

    #[test]
    fn with_certificates_the_identity_is_the_managers_and_that_of_former_tokens_is_removed_once() {
        let with = |driver: &str, subject: Value| {
            let own = json!({"signerName": SIGNER, "subject": subject});
            addon(&json!({"kubeClientDriver": driver, "registrations": [own]}))
        };
        let subject_of = |addon: &ManagedClusterAddOn| addon.status.as_ref().unwrap().registrations[0].subject.clone();
        let account = with("token", json!({"user": ACCOUNT}));
        assert!(!settings().has_driver(&account));
        let after = settings().with_driver(&account);
        assert!(settings().has_driver(&after));
        assert_eq!(subject_of(&after), None);
        let managers = with("token", json!({"user": "u", "groups": ["g"]}));
        assert_eq!(subject_of(&settings().with_driver(&managers)), subject_of(&managers));
        let later = with("csr", json!({"user": ACCOUNT}));
        assert!(settings().has_driver(&later), "what a manager writes afterwards is not removed again and again");
        assert_eq!(subject_of(&settings().with_driver(&later)), subject_of(&later));
    }

    #[test]
    fn the_condition_of_the_former_driver_goes_and_that_of_other_certificates_stays() {
        let all = json!([condition("TokenRefreshed"), condition("ClusterCertificateRotated"), condition("Available")]);
        let own = json!({"signerName": SIGNER, "subject": {"user": ACCOUNT}});
        let other = json!({"signerName": "example.com/a"});
        let with = |registrations: Value, driver: &str| {
            addon(&json!({"kubeClientDriver": driver, "registrations": registrations, "conditions": all}))
        };
        let csr = with(json!([own]), "csr");
        assert!(settings().has_driver(&csr) && settings().has_stale_condition(&csr));
        assert_eq!(types(&settings().with_driver(&csr)), ["ClusterCertificateRotated", "Available"]);
        assert!(!settings().has_stale_condition(&settings().with_driver(&csr)));
        assert_eq!(types(&token_settings().with_driver(&csr)), ["TokenRefreshed", "Available"]);
        let both = with(json!([own, other]), "token");
        assert!(token_settings().has_driver(&both) && !token_settings().has_stale_condition(&both));
        let none = with(json!([other]), "csr");
        assert!(!settings().has_stale_condition(&none) && !token_settings().has_stale_condition(&none));
    }
}
