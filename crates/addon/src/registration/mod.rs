//! How an add-on's agent gets identities, and what the one on the hub may do there.

pub(crate) mod approval;
mod csr;
pub(crate) mod permission;

use std::{fmt, sync::Arc};

use ocm_api::{identities, signers};

pub use self::{
    csr::{CertificateRequest, CsrApprover, CsrSigner},
    permission::{PermissionBuilder, PermissionConfig, PermissionContext},
};
use crate::{AddonError, Installation, manager::Undecided};

/// Who an agent is: the subject of its certificate.
#[doc(alias("Subject", "KubeClientSubject", "CustomSignerSubject"))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Identity {
    /// The user: common name of the certificate.
    pub user: String,
    /// The user's groups: organizations of the certificate.
    pub groups: Vec<String>,
    /// Organizational units of the certificate; unused for the hub's API server.
    pub organization_units: Vec<String>,
}

impl Identity {
    /// A user and its groups.
    pub fn new(user: impl Into<String>, groups: Vec<String>) -> Self {
        Self { user: user.into(), groups, organization_units: Vec::new() }
    }

    /// The identity that OCM gives the agent of that name. Agents of one add-on on one cluster share a group, and so do
    /// those on all clusters.
    #[doc(alias("DefaultUser", "DefaultGroups", "KubeClientSignerConfigurations"))]
    #[must_use]
    pub fn of_agent(cluster: &str, addon: &str, agent: &str) -> Self {
        let groups = vec![identities::addon_group(cluster, addon), identities::addon_everywhere_group(addon)];
        Self::new(identities::addon_user(cluster, addon, agent), groups)
    }

    /// The same identity in these organizational units.
    #[must_use]
    pub fn with_organization_units(mut self, units: Vec<String>) -> Self {
        self.organization_units = units;
        self
    }
}

/// An identity for the agent, by a certificate that a signer on the hub issues.
///
/// The manager writes the subject of the certificate into the ManagedClusterAddOn's status. The agent of the cluster asks
/// for the certificate, keeps it in a secret in the add-on's namespace, and renews it. The manager approves requests that
/// ask for exactly this identity and come from an agent of that very cluster; all others are left to an administrator.
#[doc(alias("RegistrationConfig", "RegistrationOption"))]
#[derive(Clone)]
pub struct Registration {
    signer: String,
    subject: Subject,
    is_approved_by_hand: bool,
    approvers: Vec<Arc<dyn CsrApprover>>,
    csr_signer: Option<Arc<dyn CsrSigner>>,
}

#[derive(Clone, Debug)]
enum Subject {
    Agent(String),
    Identity(Identity),
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("signer", &self.signer).finish_non_exhaustive()
    }
}

impl Registration {
    /// An identity at the hub's API server for the agent `agent`, whose secret is
    /// [`Installation::hub_kubeconfig_secret`]. The agent's name should stay the same for the life of the add-on, so that
    /// replicas and restarts of the manager agree on it.
    #[doc(alias("KubeClientRegistration", "KubeClientSignerConfigurations"))]
    pub fn kube_client(agent: impl Into<String>) -> Self {
        Self::new(signers::KUBE_API_SERVER_CLIENT, Subject::Agent(agent.into()))
    }

    /// An identity from another signer, such as `example.com/signer`. Without [`Registration::sign_with`] somebody else
    /// issues its certificates.
    #[doc(alias = "CustomSignerRegistration")]
    pub fn custom_signer(signer: impl Into<String>, identity: Identity) -> Self {
        Self::new(signer, Subject::Identity(identity))
    }

    fn new(signer: impl Into<String>, subject: Subject) -> Self {
        let (approvers, csr_signer) = (Vec::new(), None);
        Self { signer: signer.into(), subject, is_approved_by_hand: false, approvers, csr_signer }
    }

    /// Chooses another identity. It must not be the same on two clusters, or the agent of one could act as that of the
    /// other. An empty user is that of an agent with the add-on's name; without groups, an identity at the hub's API server
    /// is in that of the add-on on the cluster, as the cluster's agent completes it.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.subject = Subject::Identity(identity);
        self
    }

    /// Approves only requests that `approver` approves as well; of several approvers, all must.
    #[doc(alias("CSRApproveCheck", "CSRApproveCheckFunc", "UnionCSRApprover", "DefaultCSRApprover"))]
    #[must_use]
    pub fn approve_if(mut self, approver: impl CsrApprover) -> Self {
        self.approvers.push(Arc::new(approver));
        self
    }

    /// Leaves all requests to an administrator.
    #[must_use]
    pub fn approve_by_hand(mut self) -> Self {
        self.is_approved_by_hand = true;
        self
    }

    /// Issues the certificates of a [custom signer](Registration::custom_signer). The hub's API server signs its own.
    #[doc(alias("CSRSign", "CSRSignerFunc", "DefaultSignerWithExpiry"))]
    #[must_use]
    pub fn sign_with(mut self, signer: impl CsrSigner) -> Self {
        self.csr_signer = Some(Arc::new(signer));
        self
    }

    /// Name of the signer.
    #[doc(alias = "SignerName")]
    #[must_use]
    pub fn signer_name(&self) -> &str {
        &self.signer
    }

    /// Whether this identity is one at the hub's API server.
    pub(crate) fn is_kube_client(&self) -> bool {
        self.signer == signers::KUBE_API_SERVER_CLIENT
    }

    /// Who issues the certificates, if the manager does.
    pub(crate) fn csr_signer(&self) -> Option<&dyn CsrSigner> {
        self.csr_signer.as_deref().filter(|_| !self.is_kube_client())
    }

    /// Who the agent is, with what the author leaves open.
    pub(crate) fn identity_on(&self, on: &Installation<'_>) -> Identity {
        let (cluster, addon) = (on.cluster_name(), on.addon_name());
        let mut identity = match &self.subject {
            Subject::Agent(agent) => Identity::of_agent(&cluster, &addon, agent),
            Subject::Identity(identity) => identity.clone(),
        };
        if identity.user.is_empty() {
            identity.user = identities::addon_user(&cluster, &addon, &addon);
        }
        if identity.groups.is_empty() && self.is_kube_client() {
            identity.groups = vec![identities::addon_group(&cluster, &addon)];
        }
        identity
    }

    /// Whether the author approves this request, which follows the rules.
    pub(crate) async fn check(&self, request: &CertificateRequest<'_>) -> Result<(), Undecided> {
        if self.is_approved_by_hand {
            return Err(Undecided::Rejected("the add-on leaves its requests to an administrator".into()));
        }
        for approver in &self.approvers {
            let failed = |error: AddonError| Undecided::failed("the add-on could not check it", &*error);
            if !approver.approves(request).await.map_err(failed)? {
                return Err(Undecided::Rejected("the add-on does not approve it".into()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
