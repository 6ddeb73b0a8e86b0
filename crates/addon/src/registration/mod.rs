//! How an add-on's agent gets an identity on the hub, and what that identity may do there.

pub(crate) mod approval;
pub(crate) mod permission;

use std::{fmt, sync::Arc};

use ocm_api::identities;

pub use self::{
    approval::Request,
    permission::{Grant, PermissionBuilder, PermissionConfig},
};
use crate::Installation;

/// Whom an agent is on the hub: the subject of its certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Identity {
    /// The user: common name of the certificate.
    pub user: String,
    /// The user's groups: organizations of the certificate.
    pub groups: Vec<String>,
}

impl Identity {
    /// A user and its groups.
    pub fn new(user: impl Into<String>, groups: Vec<String>) -> Self {
        Self { user: user.into(), groups }
    }

    /// The identity that OCM gives the agent of that name. Agents of one add-on on one cluster share a group, and so do
    /// those on all clusters.
    #[must_use]
    pub fn of_agent(cluster: &str, addon: &str, agent: &str) -> Self {
        Self {
            user: identities::addon_user(cluster, addon, agent),
            groups: vec![identities::addon_group(cluster, addon), identities::addon_everywhere_group(addon)],
        }
    }
}

type ChooseIdentity = Arc<dyn Fn(&Installation<'_>) -> Identity + Send + Sync>;
type Check = Arc<dyn Fn(&Request<'_>) -> bool + Send + Sync>;

/// An identity for the agent at the hub's API server, by signer `kubernetes.io/kube-apiserver-client`.
///
/// The manager writes whom the certificate is for into the ManagedClusterAddOn's status. The agent of the cluster asks
/// for it, keeps it in the secret [`Installation::hub_kubeconfig_secret`](crate::Installation::hub_kubeconfig_secret),
/// and renews it. The manager approves requests that ask for exactly this identity and come from an agent of that very
/// cluster; everything else is left for an admin.
#[derive(Clone)]
pub struct Registration {
    identity: ChooseIdentity,
    by_hand: bool,
    checks: Vec<Check>,
    permissions: Option<Arc<dyn PermissionConfig>>,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").finish_non_exhaustive()
    }
}

impl Registration {
    /// An identity for the agent `agent`; it stays the same for the life of the add-on, so that replicas and restarts of
    /// the manager agree on it.
    pub fn kube_client(agent: impl Into<String>) -> Self {
        let agent = agent.into();
        Self {
            identity: Arc::new(move |on| Identity::of_agent(&on.cluster_name(), &on.addon_name(), &agent)),
            by_hand: false,
            checks: Vec::new(),
            permissions: None,
        }
    }

    /// Chooses another identity. It must not be the same on two clusters: who has one of them could do on the hub what the
    /// other may. Without a user it is that of an agent with the add-on's name, without groups it is in that of the add-on
    /// on the cluster, as the cluster's agent takes it.
    #[must_use]
    pub fn identity(mut self, choose: impl Fn(&Installation<'_>) -> Identity + Send + Sync + 'static) -> Self {
        self.identity = Arc::new(choose);
        self
    }

    /// Approves only requests that pass `check` as well; of several checks, all.
    #[must_use]
    pub fn approve_if(mut self, check: impl Fn(&Request<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.checks.push(Arc::new(check));
        self
    }

    /// Approves nothing, whatever else is asked for: an admin does.
    #[must_use]
    pub fn approve_by_hand(mut self) -> Self {
        self.by_hand = true;
        self
    }

    /// Gives the identity rights on the hub. Without, it may do nothing there.
    #[must_use]
    pub fn permissions(mut self, permissions: impl PermissionConfig) -> Self {
        self.permissions = Some(Arc::new(permissions));
        self
    }

    /// Whom the agent is, with what the author leaves open.
    pub(crate) fn identity_of(&self, on: &Installation<'_>) -> Identity {
        let (cluster, addon) = (on.cluster_name(), on.addon_name());
        let mut identity = (self.identity)(on);
        if identity.user.is_empty() {
            identity.user = identities::addon_user(&cluster, &addon, &addon);
        }
        if identity.groups.is_empty() {
            identity.groups = vec![identities::addon_group(&cluster, &addon)];
        }
        identity
    }

    pub(crate) fn permission_config(&self) -> Option<&dyn PermissionConfig> {
        self.permissions.as_deref()
    }

    /// Whether the author lets the manager approve this request, which follows the rules.
    pub(crate) fn approves(&self, request: &Request<'_>) -> bool {
        !self.by_hand && self.checks.iter().all(|check| check(request))
    }
}

#[cfg(test)]
mod tests;
