//! Whom the agent is to be on the hub, as the add-on's status says it to the cluster's agent.

use ocm_api::{
    addon::v1alpha1::{KubeClientDriver, ManagedClusterAddOnStatus, RegistrationConfig, Subject},
    signers,
};

use crate::Identity;

/// What the status says, and whom rights are for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    /// For the status.
    pub(super) registrations: Vec<RegistrationConfig>,
    /// For the rights; `None` while nobody knows.
    pub(super) identity: Option<Identity>,
}

/// The registrations of an agent. An agent that authenticates with the token of a service account has that account's
/// name, which the cluster's agent writes.
pub(super) fn wanted(status: Option<&ManagedClusterAddOnStatus>, own: Identity) -> Wanted {
    let driver = status.and_then(|status| status.kube_client_driver.as_ref());
    let subject = match driver {
        Some(KubeClientDriver::Token) => status.and_then(known_subject),
        _ => Some(Subject { user: own.user, groups: own.groups, organization_units: Vec::new() }),
    };
    let identity = subject.as_ref().filter(|subject| !is_empty(subject)).map(identity);
    let registration = RegistrationConfig { signer_name: signers::KUBE_API_SERVER_CLIENT.into(), subject };
    Wanted { registrations: vec![registration], identity }
}

fn known_subject(status: &ManagedClusterAddOnStatus) -> Option<Subject> {
    let is_kube_client = |known: &&RegistrationConfig| known.signer_name == signers::KUBE_API_SERVER_CLIENT;
    status.registrations.iter().find(is_kube_client)?.subject.clone()
}

fn is_empty(subject: &Subject) -> bool {
    subject.user.is_empty() && subject.groups.is_empty()
}

fn identity(subject: &Subject) -> Identity {
    Identity { user: subject.user.clone(), groups: subject.groups.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Identity {
        Identity::of_agent("c1", "hello", "agent")
    }

    fn status(driver: Option<KubeClientDriver>, subject: Option<Subject>) -> ManagedClusterAddOnStatus {
        let registration = RegistrationConfig { signer_name: signers::KUBE_API_SERVER_CLIENT.into(), subject };
        let other = RegistrationConfig { signer_name: "example.com/other".into(), subject: None };
        ManagedClusterAddOnStatus {
            kube_client_driver: driver,
            registrations: vec![other, registration],
            ..ManagedClusterAddOnStatus::default()
        }
    }

    #[test]
    fn with_a_certificate_the_agent_is_whom_the_add_on_says() {
        let former = Subject { user: "former".into(), ..Subject::default() };
        for status in [None, Some(status(None, None)), Some(status(Some(KubeClientDriver::Csr), Some(former)))] {
            let wanted = wanted(status.as_ref(), own());
            assert_eq!(wanted.identity, Some(own()));
            assert_eq!(wanted.registrations.len(), 1);
            assert_eq!(wanted.registrations[0].signer_name, "kubernetes.io/kube-apiserver-client");
            assert_eq!(wanted.registrations[0].subject.as_ref().unwrap().user, own().user);
        }
    }

    #[test]
    fn with_a_token_the_agent_is_whom_the_clusters_agent_says_and_nobody_until_then() {
        let account = Subject { user: "system:serviceaccount:c1:hello-agent".into(), ..Subject::default() };
        let known = wanted(Some(&status(Some(KubeClientDriver::Token), Some(account.clone()))), own());
        assert_eq!(known.identity.unwrap().user, account.user);
        assert_eq!(known.registrations[0].subject, Some(account));
        for nobody in [None, Some(Subject::default())] {
            let unknown = wanted(Some(&status(Some(KubeClientDriver::Token), nobody.clone())), own());
            assert_eq!(unknown.identity, None);
            assert_eq!(unknown.registrations[0].subject, nobody);
        }
    }
}
