//! The agent's identities, as the add-on's status gives them to the cluster's agent.

use ocm_api::{
    addon::v1alpha1::{KubeClientDriver, ManagedClusterAddOnStatus, RegistrationConfig, Subject},
    identities, signers,
};
use ocm_runtime::ObjectKey;

use crate::Identity;

/// The registrations of an agent on a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Registrations {
    /// For the status.
    pub(super) configs: Vec<RegistrationConfig>,
    /// Who the agent is at the hub's API server, for permissions; `None` if it has no identity there, or none is known yet.
    pub(super) identity: Option<Identity>,
    /// Why the identity that the status names is not that of this agent.
    pub(super) fault: Option<String>,
}

/// The registrations for these signers and identities.
///
/// An agent that authenticates with a token is the service account that the hub keeps for it; the cluster's agent writes
/// that into the status once the account exists. Any other identity that the status names gets no permissions: the cluster
/// could otherwise choose who may read its namespace on the hub.
pub(super) fn desired(
    status: Option<&ManagedClusterAddOnStatus>,
    key: &ObjectKey,
    own: &[(String, Identity)],
) -> Registrations {
    let mut desired = Registrations::default();
    for (signer_name, identity) in own {
        let subject = if signer_name == signers::KUBE_API_SERVER_CLIENT {
            let (subject, known) = kube_client(status, key, identity);
            (desired.identity, desired.fault) = known.map_or_else(|fault| (None, Some(fault)), |known| (known, None));
            subject
        } else {
            Some(subject_of(identity))
        };
        desired.configs.push(RegistrationConfig { signer_name: signer_name.clone(), subject });
    }
    desired
}

type Known = Result<Option<Identity>, String>;

/// The subject for the status, and who the agent is.
fn kube_client(
    status: Option<&ManagedClusterAddOnStatus>,
    key: &ObjectKey,
    own: &Identity,
) -> (Option<Subject>, Known) {
    match status.and_then(|status| status.kube_client_driver.as_ref()) {
        Some(KubeClientDriver::Token) => {
            let subject = status.and_then(known_subject);
            let identity = subject.as_ref().map_or(Ok(None), |subject| account(subject, key));
            (subject, identity)
        }
        _ => (Some(subject_of(own)), Ok(Some(own.clone()))),
    }
}

fn subject_of(own: &Identity) -> Subject {
    Subject { user: own.user.clone(), groups: own.groups.clone(), organization_units: own.organization_units.clone() }
}

/// The agent's service account, if the subject is that; `None` if there is none yet.
fn account(subject: &Subject, key: &ObjectKey) -> Result<Option<Identity>, String> {
    let user = identities::addon_account_user(&key.namespace, &key.name);
    if *subject == Subject::default() {
        return Ok(None);
    }
    if *subject == (Subject { user: user.clone(), ..Subject::default() }) {
        return Ok(Some(Identity::new(user, Vec::new())));
    }
    Err(format!(
        "status.registrations names user {:?} with groups {:?}, and an agent with a token is user {user}, \
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

    fn registrations(status: Option<&ManagedClusterAddOnStatus>) -> Registrations {
        desired(status, &key(), &[(signers::KUBE_API_SERVER_CLIENT.into(), own())])
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
    fn with_a_certificate_the_agent_is_who_the_add_on_says() {
        let former = Subject { user: "former".into(), ..Subject::default() };
        for status in [None, Some(status(None, None)), Some(status(Some(KubeClientDriver::Csr), Some(former)))] {
            let desired = registrations(status.as_ref());
            assert_eq!(desired.identity, Some(own()));
            assert_eq!(desired.configs.len(), 1);
            assert_eq!(desired.configs[0].signer_name, "kubernetes.io/kube-apiserver-client");
            assert_eq!(desired.configs[0].subject.as_ref().unwrap().user, own().user);
        }
    }

    #[test]
    fn with_a_token_the_agent_is_its_service_account_once_the_clusters_agent_says_so_and_nobody_until_then() {
        let account = Subject { user: "system:serviceaccount:c1:hello-agent".into(), ..Subject::default() };
        let known = registrations(Some(&status(Some(KubeClientDriver::Token), Some(account.clone()))));
        assert_eq!(known.identity.unwrap().user, account.user);
        assert_eq!(known.configs[0].subject, Some(account));
        for nobody in [None, Some(Subject::default())] {
            let unknown = registrations(Some(&status(Some(KubeClientDriver::Token), nobody.clone())));
            assert_eq!((unknown.identity, unknown.fault), (None, None));
            assert_eq!(unknown.configs[0].subject, nobody);
        }
    }

    #[test]
    fn with_a_token_nobody_else_gets_permissions_and_the_fault_names_them() {
        let user = |user: &str| Subject { user: user.into(), ..Subject::default() };
        let groups = |groups: &[&str]| groups.iter().map(|group| (*group).to_owned()).collect();
        for (foreign, name) in [
            (Subject { groups: groups(&["system:unauthenticated"]), ..user("") }, "system:unauthenticated"),
            (Subject { groups: groups(&["b"]), ..user("system:serviceaccount:c1:hello-agent") }, "\"b\""),
            (user("system:serviceaccount:c2:hello-agent"), "c2"),
            (user(&own().user), "agent:agent"),
        ] {
            let desired = registrations(Some(&status(Some(KubeClientDriver::Token), Some(foreign.clone()))));
            assert_eq!(desired.identity, None);
            assert!(desired.fault.unwrap().contains(name), "{foreign:?}");
            assert_eq!(desired.configs[0].subject, Some(foreign), "the cluster's agent writes it");
        }
    }

    #[test]
    fn a_custom_signer_is_beside_the_hubs_own_and_no_token_changes_it() {
        let custom = Identity::new("u", vec!["g".into()]).with_organization_units(vec!["o".into()]);
        let all = [(signers::KUBE_API_SERVER_CLIENT.into(), own()), ("example.com/s".into(), custom.clone())];
        let desired = desired(Some(&status(Some(KubeClientDriver::Token), None)), &key(), &all);
        assert_eq!((desired.configs.len(), desired.identity), (2, None));
        assert_eq!(desired.configs[1].signer_name, "example.com/s");
        let subject = desired.configs[1].subject.clone().unwrap();
        assert_eq!((subject.user, subject.groups), (custom.user, custom.groups));
        assert_eq!(subject.organization_units, custom.organization_units);
    }
}
