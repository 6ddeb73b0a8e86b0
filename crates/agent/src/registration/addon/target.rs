//! The desired credentials of an add-on, and where they are kept. Pure.

use ocm_api::{
    addon::v1alpha1::{ManagedClusterAddOn, RegistrationConfig, Subject},
    annotations, identities, namespaces,
    secrets::{self, KEY_CLUSTER_NAME, KEY_KUBECONFIG},
};
use ocm_apimachinery::labels::{is_dns_name, is_value};
use ocm_runtime::{ObjectKey, pki, write};

use super::{Settings, driver::is_kube_client, token::DesiredToken};
use crate::{agent::names::label_fault, registration::certificate::DesiredCertificate};

/// A cluster on which agents of add-ons run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Managed,
    /// The cluster that this agent runs on.
    Management,
}

/// Where the agent of an add-on runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InstallLocation<'a> {
    pub(super) namespace: &'a str,
    /// The hosting cluster, if it is not the managed one.
    pub(super) hosting: Option<&'a str>,
}

impl<'a> InstallLocation<'a> {
    /// From the status, else from the spec or annotation, else the default.
    pub(super) fn of(addon: &'a ManagedClusterAddOn) -> Self {
        let status = addon.status.as_ref().and_then(|status| status.namespace.as_deref());
        let spec = addon.spec.install_namespace.as_deref();
        let candidates = [status, spec, annotation(addon, annotations::ADDON_INSTALL_NAMESPACE)];
        let namespace = candidates.into_iter().flatten().find(|namespace| !namespace.is_empty());
        Self {
            namespace: namespace.unwrap_or(namespaces::AGENT_ADDON),
            hosting: annotation(addon, annotations::ADDON_HOSTING_CLUSTER).filter(|cluster| !cluster.is_empty()),
        }
    }

    pub(super) fn host(&self) -> Host {
        if self.hosting.is_some() { Host::Management } else { Host::Managed }
    }

    /// Why the namespace's name is invalid. It comes from the add-on's status, and becomes part of request paths.
    pub(super) fn fault(&self) -> Option<&'static str> {
        label_fault(self.namespace)
    }
}

fn annotation<'a>(addon: &'a ManagedClusterAddOn, key: &str) -> Option<&'a str> {
    addon.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// What an agent of an add-on authenticates with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Credential {
    Certificate(DesiredCertificate),
    Token(DesiredToken),
}

/// A credential and the cluster on which it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Host,
    pub(super) credential: Credential,
}

impl Target {
    /// The secret that holds it.
    pub(super) fn secret(&self) -> &ObjectKey {
        match &self.credential {
            Credential::Certificate(certificate) => &certificate.secret,
            Credential::Token(token) => &token.secret,
        }
    }

    /// The credential in messages.
    fn noun(&self) -> &'static str {
        match &self.credential {
            Credential::Certificate(_) => "certificate",
            Credential::Token(_) => "token",
        }
    }
}

/// Why registrations get no credentials, the first cause for each condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Refusals {
    pub(super) certificate: Option<String>,
    pub(super) token: Option<String>,
}

impl Refusals {
    fn add(&mut self, target: &Target, cause: String) {
        let known = match &target.credential {
            Credential::Certificate(_) => &mut self.certificate,
            Credential::Token(_) => &mut self.token,
        };
        known.get_or_insert(cause);
    }
}

/// The desired state of an add-on's credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Desired {
    /// The add-on is being deleted: nothing changes, so that it can clean up.
    Unchanged {
        /// The credentials that it had when the deletion began, unless its manager has changed them since.
        targets: Vec<Target>,
    },
    /// The registration driver must be set in its status first.
    Driver,
    /// These credentials, and no others.
    Credentials { targets: Vec<Target>, refused: Refusals },
}

impl Settings {
    /// The desired state of an add-on's credentials.
    pub(super) fn desired(&self, addon: &ManagedClusterAddOn) -> Desired {
        match (self.has_driver(addon), write::is_deleting(addon)) {
            (false, true) => Desired::Unchanged { targets: Vec::new() },
            (true, true) => Desired::Unchanged { targets: self.credentials(addon).0 },
            (false, false) => Desired::Driver,
            (true, false) if self.has_stale_condition(addon) => Desired::Driver,
            (true, false) => {
                let (targets, refused) = self.credentials(addon);
                Desired::Credentials { targets, refused }
            }
        }
    }

    /// The desired credentials, and why registrations get none.
    fn credentials(&self, addon: &ManagedClusterAddOn) -> (Vec<Target>, Refusals) {
        let registrations = addon.status.as_ref().map(|status| status.registrations.as_slice()).unwrap_or_default();
        let location = InstallLocation::of(addon);
        let name = addon.metadata.name.as_deref().unwrap_or_default();
        let (mut targets, mut refused) = (Vec::new(), Refusals::default());
        for registration in registrations.iter().filter(|registration| !registration.signer_name.is_empty()) {
            let target = self.target(name, &location, registration);
            let fault = self.refusal(name, &location, &targets, &target).or_else(|| self.fault(name, registration));
            match fault {
                Some(cause) => refused.add(&target, cause),
                None => targets.push(target),
            }
        }
        (targets, refused)
    }

    fn target(&self, name: &str, location: &InstallLocation<'_>, registration: &RegistrationConfig) -> Target {
        let secret = match is_kube_client(registration) {
            true => secrets::addon_hub_kubeconfig(name),
            false => secrets::addon_client_certificate(name, &registration.signer_name),
        };
        let secret = ObjectKey::new(location.namespace, secret);
        let credential = match is_kube_client(registration) && self.uses_tokens() {
            true => Credential::Token(self.token(name, secret)),
            false => Credential::Certificate(self.certificate(name, secret, registration)),
        };
        Target { host: location.host(), credential }
    }

    fn token(&self, name: &str, secret: ObjectKey) -> DesiredToken {
        DesiredToken {
            cluster: self.cluster.clone(),
            addon: name.into(),
            expiration_seconds: self.token_seconds,
            secret,
            kubeconfig: self.kubeconfig.clone(),
        }
    }

    fn certificate(&self, name: &str, secret: ObjectKey, registration: &RegistrationConfig) -> DesiredCertificate {
        let kubeconfig = is_kube_client(registration).then(|| (KEY_KUBECONFIG, self.kubeconfig.clone()));
        DesiredCertificate {
            cluster: self.cluster.clone(),
            subject: self.subject(name, registration),
            addon: Some(name.into()),
            signer: registration.signer_name.clone(),
            expiration_seconds: self.certificate_seconds,
            secret,
            hub: None,
            is_recovery: false,
            additional_data: [(KEY_CLUSTER_NAME, self.cluster.clone())].into_iter().chain(kubeconfig).collect(),
        }
    }

    /// The user defaults to the add-on's own, and for the hub's API server the group does.
    fn subject(&self, addon: &str, registration: &RegistrationConfig) -> pki::Subject {
        let Subject { user, groups, organization_units } = registration.subject.clone().unwrap_or_default();
        let group = || vec![identities::addon_group(&self.cluster, addon)];
        pki::Subject {
            common_name: match user.is_empty() {
                true => identities::addon_user(&self.cluster, addon, addon),
                false => user,
            },
            organizations: if groups.is_empty() && is_kube_client(registration) { group() } else { groups },
            organizational_units: if is_kube_client(registration) { Vec::new() } else { organization_units },
        }
    }

    /// Why a registration gets no credential.
    fn refusal(
        &self,
        name: &str,
        location: &InstallLocation<'_>,
        others: &[Target],
        target: &Target,
    ) -> Option<String> {
        let (noun, secret) = (target.noun(), target.secret());
        if let Some(fault) = location.fault() {
            return Some(format!("The add-on gets no {noun}: its namespace {:?} {fault}", location.namespace));
        }
        if !is_value(name) {
            return Some(format!(
                "The add-on gets no {noun}: objects on the hub are labelled with its name, which is too long for a label; \
                 install it under a name of at most 63 characters"
            ));
        }
        if !is_dns_name(&secret.name) {
            return Some(format!(
                "The add-on gets no {noun}{}: no secret can be called {:?}, which is what would hold it; let its manager ask \
                 another signer",
                signer_of(target),
                secret.name
            ));
        }
        if self.own_secrets.contains(secret) {
            return Some(format!(
                "The add-on gets no {noun}{}: secret {secret}, which would hold it, is the cluster agent's own; install the \
                 add-on in another namespace",
                signer_of(target)
            ));
        }
        let taken = others.iter().any(|other| other.secret() == secret);
        taken.then(|| {
            format!(
                "status.registrations asks for a {noun}{} more than once: only the first one gets it, since both would be \
                 kept in secret {secret}",
                signer_of(target)
            )
        })
    }

    /// Why no certificate is requested for the identity of a registration: it is that of the service account, which the
    /// add-on's manager has kept since the add-on's agent authenticated with tokens.
    fn fault(&self, name: &str, registration: &RegistrationConfig) -> Option<String> {
        let user = self.account_user(name);
        let is_account = registration.subject.as_ref().is_some_and(|subject| subject.user == user);
        (is_account && is_kube_client(registration) && !self.uses_tokens()).then(|| {
            format!(
                "The add-on gets no certificate yet: status.registrations names user {user}, with which its agent had a \
                 token; the add-on's manager has to write the user of the certificate"
            )
        })
    }
}

/// The signer of a certificate, in messages.
fn signer_of(target: &Target) -> String {
    match &target.credential {
        Credential::Certificate(certificate) => format!(" of signer {}", certificate.signer),
        Credential::Token(_) => String::new(),
    }
}

#[cfg(test)]
pub(super) mod tests;
