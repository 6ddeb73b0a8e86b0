//! What an agent's identity may do on the hub: [`PermissionConfig`], and [`PermissionBuilder`] for the usual case.

mod builder;
mod reconcile;

use std::fmt::{self, Debug};

use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::Subject;
use kube::Client;
use ocm_api::{identities, rbac};

pub use self::builder::PermissionBuilder;
use super::Identity;
use crate::{Installation, PermissionError};

/// Sets up what an agent's identity may do on the hub.
///
/// Called when the identity changes and about every ten minutes, so that what somebody took away is restored. The objects
/// that it makes should be owned by the ManagedClusterAddOn, so that they are deleted with it. The rules for calls of
/// [`AgentAddon`](crate::AgentAddon) apply.
///
/// The agent of a cluster that the hub does not accept, or no longer accepts, gets no permissions: then it is called without
/// an identity, and must delete what it granted earlier.
#[doc(alias = "PermissionConfigFunc")]
pub trait PermissionConfig: Send + Sync + 'static {
    /// Sets the permissions up, unless they are.
    fn apply<'a>(&'a self, grant: &'a PermissionContext<'a>) -> BoxFuture<'a, Result<(), PermissionError>>;
}

/// Who gets permissions, and where.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PermissionContext<'a> {
    /// The manager's client of the hub. It can only grant permissions that the manager has itself.
    pub client: &'a Client,
    /// The add-on on the cluster.
    pub on: &'a Installation<'a>,
    /// The agent's identity at the hub's API server; `None` while it is not known, if the agent has none, or if the hub does
    /// not accept the cluster.
    pub identity: Option<&'a Identity>,
    /// Whether nothing was applied yet, so that existing objects need not be read.
    pub(crate) is_first: bool,
}

impl Debug for PermissionContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermissionContext").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl<'a> PermissionContext<'a> {
    /// Permissions for `identity`, for tests of an add-on's own code.
    #[must_use]
    pub fn new(client: &'a Client, on: &'a Installation<'a>, identity: Option<&'a Identity>) -> Self {
        Self { client, on, identity, is_first: false }
    }

    /// The identity as subjects of a binding in the cluster's namespace: the user, and the groups of which only agents of
    /// this cluster are members. The group of the add-on's agents on all clusters is left out, or an agent could read the
    /// namespaces of other clusters.
    ///
    /// # Errors
    /// [`PermissionError::SubjectNotReady`].
    pub fn subjects(&self) -> Result<Vec<Subject>, PermissionError> {
        let identity = self.identity.ok_or(PermissionError::SubjectNotReady)?;
        Ok(subjects(identity, &self.on.addon_name()))
    }
}

fn subjects(identity: &Identity, addon: &str) -> Vec<Subject> {
    let subject = |kind: &str, name: &String| Subject {
        api_group: Some(rbac::API_GROUP.into()),
        kind: kind.into(),
        name: name.clone(),
        namespace: None,
    };
    let shared = ["system:authenticated".to_owned(), identities::addon_everywhere_group(addon)];
    let own = identity.groups.iter().filter(|group| !shared.contains(group));
    let user = (!identity.user.is_empty()).then(|| subject("User", &identity.user));
    user.into_iter().chain(own.map(|group| subject("Group", group))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_and_the_group_of_this_cluster_are_bound_and_the_group_of_all_clusters_is_not() {
        let subjects = subjects(&Identity::of_agent("c1", "hello", "agent"), "hello");
        let named: Vec<_> = subjects.iter().map(|subject| (subject.kind.as_str(), subject.name.as_str())).collect();
        assert_eq!(
            named,
            [
                ("User", "system:open-cluster-management:cluster:c1:addon:hello:agent:agent"),
                ("Group", "system:open-cluster-management:cluster:c1:addon:hello"),
            ]
        );
    }
}
