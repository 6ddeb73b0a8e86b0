//! Whom the agent is to be on the hub, as the add-on's status says it to the cluster's agent.

use ocm_api::{
    addon::v1alpha1::{KubeClientDriver, ManagedClusterAddOnStatus, RegistrationConfig, Subject},
    identities, signers,
};
use ocm_runtime::ObjectKey;

use crate::Identity;

/// What the status says, and whom rights are for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    /// For the status.
    pub(super) registrations: Vec<RegistrationConfig>,
    /// For the rights; `None` while nobody knows.
    pub(super) identity: Option<Identity>,
    /// Why the identity that the status names is none for this agent.
    pub(super) fault: Option<String>,
}

/// The registrations of an agent. One that authenticates with a token is the service account that the hub keeps for it;
/// the cluster's agent writes so into the status once it is. Whatever else stands there gets no rights: it would be for
/// the cluster to choose who may read its namespace.
pub(super) fn wanted(status: Option<&ManagedClusterAddOnStatus>, key: &ObjectKey, own: Identity) -> Wanted {
    let driver = status.and_then(|status| status.kube_client_driver.as_ref());
    let (subject, identity) = match driver {
        Some(KubeClientDriver::Token) => {
            let subject = status.and_then(known_subject);
            let identity = subject.as_ref().map_or(Ok(None), |subject| account(subject, key));
            (subject, identity)
        }
        _ => (Some(subject_of(&own)), Ok(Some(own))),
    };
    let registration = RegistrationConfig { signer_name: signers::KUBE_API_SERVER_CLIENT.into(), subject };
    let (identity, fault) = identity.map_or_else(|fault| (None, Some(fault)), |identity| (identity, None));
    Wanted { registrations: vec![registration], identity, fault }
}

fn subject_of(own: &Identity) -> Subject {
    Subject { user: own.user.clone(), groups: own.groups.clone(), organization_units: Vec::new() }
}

/// The agent's service account, if the subject is that; `None` if it is nobody yet.
fn account(subject: &Subject, key: &ObjectKey) -> Result<Option<Identity>, String> {
    let user = identities::addon_account_user(&key.namespace, &key.name);
    if *subject == Subject::default() {
        return Ok(None);
    }
    if *subject == (Subject { user: user.clone(), ..Subject::default() }) {
        return Ok(Some(Identity::new(user, Vec::new())));
    }
    Err(format!(
        "status.registrations says that the agent is user {:?} with groups {:?}, and an agent with a token is user {user}, \
         without groups; the cluster's agent has to write that",
        subject.user, subject.groups
    ))
}

fn known_subject(status: &ManagedClusterAddOnStatus) -> Option<Subject> {
    let is_kube_client = |known: &&RegistrationConfig| known.signer_name == signers::KUBE_API_SERVER_CLIENT;
    status.registrations.iter().find(is_kube_client)?.subject.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ObjectKey {
        ObjectKey::new("c1", "hello")
    }

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
            let wanted = wanted(status.as_ref(), &key(), own());
            assert_eq!(wanted.identity, Some(own()));
            assert_eq!(wanted.registrations.len(), 1);
            assert_eq!(wanted.registrations[0].signer_name, "kubernetes.io/kube-apiserver-client");
            assert_eq!(wanted.registrations[0].subject.as_ref().unwrap().user, own().user);
        }
    }

    #[test]
    fn with_a_token_the_agent_is_its_service_account_once_the_clusters_agent_says_so_and_nobody_until_then() {
        let account = Subject { user: "system:serviceaccount:c1:hello-agent".into(), ..Subject::default() };
        let known = wanted(Some(&status(Some(KubeClientDriver::Token), Some(account.clone()))), &key(), own());
        assert_eq!(known.identity.unwrap().user, account.user);
        assert_eq!(known.registrations[0].subject, Some(account));
        for nobody in [None, Some(Subject::default())] {
            let unknown = wanted(Some(&status(Some(KubeClientDriver::Token), nobody.clone())), &key(), own());
            assert_eq!((unknown.identity, unknown.fault), (None, None));
            assert_eq!(unknown.registrations[0].subject, nobody);
        }
    }

    #[test]
    fn with_a_token_nobody_else_gets_rights_and_the_fault_names_him() {
        let user = |user: &str| Subject { user: user.into(), ..Subject::default() };
        let groups = |groups: &[&str]| groups.iter().map(|group| (*group).to_owned()).collect();
        for (foreign, name) in [
            (Subject { groups: groups(&["system:unauthenticated"]), ..user("") }, "system:unauthenticated"),
            (Subject { groups: groups(&["b"]), ..user("system:serviceaccount:c1:hello-agent") }, "\"b\""),
            (user("system:serviceaccount:c2:hello-agent"), "c2"),
            (user(&own().user), "agent:agent"),
        ] {
            let wanted = wanted(Some(&status(Some(KubeClientDriver::Token), Some(foreign.clone()))), &key(), own());
            assert_eq!(wanted.identity, None);
            assert!(wanted.fault.unwrap().contains(name), "{foreign:?}");
            assert_eq!(wanted.registrations[0].subject, Some(foreign), "it is not ours to change");
        }
    }
}
