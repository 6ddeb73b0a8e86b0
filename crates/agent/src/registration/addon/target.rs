//! The desired certificates of an add-on, and where they are kept. Pure.

use ocm_api::{
    addon::v1alpha1::{KubeClientDriver, ManagedClusterAddOn, ManagedClusterAddOnStatus, RegistrationConfig, Subject},
    annotations, identities, namespaces,
    secrets::{self, KEY_CLUSTER_NAME, KEY_KUBECONFIG},
    signers,
};
use ocm_apimachinery::labels::{is_dns_name, is_value};
use ocm_runtime::{ObjectKey, pki, write};

use super::Settings;
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

/// A certificate and the cluster on which it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Host,
    pub(super) certificate: DesiredCertificate,
}

/// The desired state of an add-on's certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Desired {
    /// The add-on is being deleted: nothing changes, so that it can clean up.
    Unchanged {
        /// The certificates that it had when the deletion began, unless its manager has changed them since.
        targets: Vec<Target>,
    },
    /// The registration driver must be set in its status first.
    Driver,
    /// These certificates, and no others.
    Certificates {
        targets: Vec<Target>,
        /// Why one of its registrations gets no certificate.
        refused: Option<String>,
    },
}

impl Settings {
    /// The desired state of an add-on's certificates.
    pub(super) fn desired(&self, addon: &ManagedClusterAddOn) -> Desired {
        let status = addon.status.as_ref();
        if status.is_some_and(lacks_driver) {
            return if write::is_deleting(addon) {
                Desired::Unchanged { targets: Vec::new() }
            } else {
                Desired::Driver
            };
        }
        let registrations = status.map(|status| status.registrations.as_slice()).unwrap_or_default();
        let (targets, refused) = self.certificates(addon, registrations);
        if write::is_deleting(addon) {
            Desired::Unchanged { targets }
        } else {
            Desired::Certificates { targets, refused }
        }
    }

    /// The desired certificates, and why a registration gets none.
    fn certificates(
        &self,
        addon: &ManagedClusterAddOn,
        registrations: &[RegistrationConfig],
    ) -> (Vec<Target>, Option<String>) {
        let location = InstallLocation::of(addon);
        let (mut targets, mut refused) = (Vec::new(), None);
        for registration in registrations.iter().filter(|registration| !registration.signer_name.is_empty()) {
            let target = self.target(addon, &location, registration);
            match self.refusal(&location, &targets, &target) {
                Some(cause) => refused = refused.or(Some(cause)),
                None => targets.push(target),
            }
        }
        (targets, refused)
    }

    fn target(
        &self,
        addon: &ManagedClusterAddOn,
        location: &InstallLocation<'_>,
        registration: &RegistrationConfig,
    ) -> Target {
        let name = addon.metadata.name.clone().unwrap_or_default();
        let signer = registration.signer_name.clone();
        let secret = match is_kube_client(registration) {
            true => secrets::addon_hub_kubeconfig(&name),
            false => secrets::addon_client_certificate(&name, &signer),
        };
        let kubeconfig = is_kube_client(registration).then(|| (KEY_KUBECONFIG, self.kubeconfig.clone()));
        let certificate = DesiredCertificate {
            cluster: self.cluster.clone(),
            subject: self.subject(&name, registration),
            addon: Some(name),
            signer,
            expiration_seconds: self.certificate_seconds,
            secret: ObjectKey::new(location.namespace, secret),
            additional_data: [(KEY_CLUSTER_NAME, self.cluster.clone())].into_iter().chain(kubeconfig).collect(),
        };
        Target { host: location.host(), certificate }
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

    /// Why a registration gets no certificate.
    fn refusal(&self, location: &InstallLocation<'_>, others: &[Target], target: &Target) -> Option<String> {
        let DesiredCertificate { secret, signer, addon, .. } = &target.certificate;
        if let Some(fault) = location.fault() {
            return Some(format!("The add-on gets no certificate: its namespace {:?} {fault}", location.namespace));
        }
        if !addon.as_deref().is_some_and(is_value) {
            return Some(
                "The add-on gets no certificate: requests for it are labelled with its name, which is too long for a \
                 label; install it under a name of at most 63 characters"
                    .into(),
            );
        }
        if !is_dns_name(&secret.name) {
            return Some(format!(
                "The add-on gets no certificate of signer {signer}: no secret can be called {:?}, which is what would \
                 hold it; let its manager ask another signer",
                secret.name
            ));
        }
        if self.own_secrets.contains(secret) {
            return Some(format!(
                "The add-on gets no certificate of signer {signer}: secret {secret}, which would hold it, is the cluster \
                 agent's own; install the add-on in another namespace"
            ));
        }
        let taken = others.iter().any(|other| other.certificate.secret == *secret);
        taken.then(|| {
            format!(
                "status.registrations asks for signer {signer} more than once: only the first one gets a certificate, \
                 since both would be kept in secret {secret}"
            )
        })
    }
}

fn is_kube_client(registration: &RegistrationConfig) -> bool {
    registration.signer_name == signers::KUBE_API_SERVER_CLIENT
}

fn lacks_driver(status: &ManagedClusterAddOnStatus) -> bool {
    status.registrations.iter().any(is_kube_client) && status.kube_client_driver != Some(KubeClientDriver::Csr)
}

#[cfg(test)]
pub(super) mod tests;
