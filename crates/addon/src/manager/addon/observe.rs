//! The snapshot from which an add-on is deployed to a cluster.

use std::{future::Future, sync::Arc};

use kube::ResourceExt as _;
use ocm_api::{
    addon::{
        v1alpha1::{ClusterManagementAddOn, ManagedClusterAddOn},
        v1beta1,
    },
    annotations,
    cluster::v1::ManagedCluster,
    conditions::addon::REGISTRATION_APPLIED,
    finalizers, labels,
    reasons::addon::NIL_REGISTRATION,
    work::v1::{Manifest, ManifestWork},
};
use ocm_runtime::{ObjectKey, conditions, error::chain, write};

use tracing::warn;

use super::AddonController;
use crate::{
    AddonError, Identity, Installation, Registration,
    agent::{namespace_of, view_of},
    author,
    manager::served_addon::ServedAddon,
};

/// An add-on on a cluster.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(super) key: ObjectKey,
    pub(super) served: Arc<ServedAddon>,
    pub(super) addon: Arc<ManagedClusterAddOn>,
    /// The same, as its author sees it.
    pub(super) view: v1beta1::ManagedClusterAddOn,
    pub(super) cluster: Arc<ManagedCluster>,
    /// Namespace of the agent on the managed cluster.
    pub(super) namespace: String,
    /// All works of the add-on in the cluster's namespace.
    pub(super) works: Vec<Arc<ManifestWork>>,
    /// Signers and identities of the agent.
    pub(super) registrations: Answer<Vec<(String, Identity)>>,
    pub(super) manifests: Answer<Vec<Manifest>>,
}

/// What the author's code has answered, or an error in words; `None` where it was not called.
pub(crate) type Answer<T> = Option<Result<T, String>>;

impl AddonController {
    /// `None` if there is nothing to do.
    pub(super) async fn snapshot(&self, key: &ObjectKey) -> Option<Observed> {
        let served = self.served.clone();
        let Some(addon) = served.addons.get(key) else {
            self.grants.remove(key);
            return None;
        };
        let cluster = self.clusters.named(&key.namespace)?;
        let mut works = served.works.in_namespace(&key.namespace);
        works.retain(|work| !is_hosted(work));
        let mut observed = Observed {
            key: key.clone(),
            namespace: namespace_of(&addon),
            view: view_of(&addon).inspect_err(|error| warn!(%error, "cannot read the add-on")).ok()?,
            served,
            addon,
            cluster,
            works,
            registrations: None,
            manifests: None,
        };
        let chosen = observed.choose_namespace().await;
        if observed.is_adopted() && !write::is_deleting(&*observed.addon) {
            observed.registrations = Some(observed.ask_for_registrations().await);
        }
        if let Err(error) = chosen {
            observed.manifests = Some(Err(error));
        } else if observed.wants_manifests() {
            observed.manifests = Some(observed.render().await);
        }
        Some(observed)
    }
}

/// Whether a work of an add-on is for an agent that another cluster hosts.
pub(super) fn is_hosted(work: &ManifestWork) -> bool {
    work.labels().contains_key(labels::ADDON_NAMESPACE)
}

/// Whether a finalizer holds an add-on until its pre-delete hooks have run. This manager sets none, but another one may
/// have. Old versions of OCM had other names.
pub(super) fn is_hook_finalizer(finalizer: &str) -> bool {
    finalizer == finalizers::ADDON_PRE_DELETE || finalizers::ADDON_DEPRECATED.contains(&finalizer)
}

impl Observed {
    /// The installation in the author's view.
    pub(super) fn installation(&self) -> Installation<'_> {
        Installation::new(&self.cluster, &self.view, &self.namespace)
    }

    async fn choose_namespace(&mut self) -> Result<(), String> {
        match ask(async { self.served.agent.dyn_install_namespace(&self.view).await }).await {
            Ok(chosen) => {
                self.namespace = chosen.filter(|name| !name.is_empty()).unwrap_or_else(|| self.namespace.clone());
                Ok(())
            }
            Err(error) => {
                let known = self.addon.status.as_ref().and_then(|status| status.namespace.clone());
                self.namespace = known.unwrap_or_else(|| self.namespace.clone());
                Err(format!("the agent's namespace could not be chosen: {error}"))
            }
        }
    }

    async fn ask_for_registrations(&self) -> Result<Vec<(String, Identity)>, String> {
        let on = self.installation();
        let registrations = ask(async { self.served.agent.dyn_registrations(&on).await }).await?;
        let named = |one: &Registration| (one.signer_name().to_owned(), one.identity_on(&on));
        Ok(registrations.iter().map(named).collect())
    }

    async fn render(&self) -> Result<Vec<Manifest>, String> {
        let on = self.installation();
        ask(async { self.served.agent.dyn_manifests(&on).await }).await
    }

    /// While the add-on is being deleted, manifests matter only if a finalizer waits for hooks among them.
    fn wants_manifests(&self) -> bool {
        let stays = !write::is_deleting(&*self.addon) && !write::is_deleting(&*self.cluster);
        let stays = stays && self.hosting_cluster().is_none() && (self.is_adopted() || self.was_registered());
        stays || self.addon.finalizers().iter().any(|finalizer| is_hook_finalizer(finalizer))
    }

    /// Whether the hub has made its ClusterManagementAddOn the owner of the add-on.
    pub(super) fn is_adopted(&self) -> bool {
        let kind = <ClusterManagementAddOn as k8s_openapi::Resource>::KIND;
        self.addon.owner_references().iter().any(|owner| owner.kind == kind && owner.name == self.key.name)
    }

    /// Whether the add-on has condition `RegistrationApplied`, of whatever status.
    pub(super) fn was_registered(&self) -> bool {
        let conditions = self.addon.status.as_ref().map(|status| &*status.conditions).unwrap_or_default();
        conditions::find(conditions, REGISTRATION_APPLIED).is_some()
    }

    /// Whether the agent had registrations, or might have: only if the last version of the add-on had none is it known
    /// that there is nothing to withdraw.
    pub(super) fn had_registrations(&self) -> bool {
        let conditions = self.addon.status.as_ref().map(|status| &*status.conditions).unwrap_or_default();
        conditions::find(conditions, REGISTRATION_APPLIED).is_some_and(|known| known.reason != NIL_REGISTRATION)
    }

    /// Whether the hub's administrators have accepted the cluster.
    pub(super) fn is_accepted(&self) -> bool {
        self.cluster.spec.hub_accepts_client
    }

    /// The cluster that is to host the agent, in hosted mode.
    pub(super) fn hosting_cluster(&self) -> Option<&str> {
        let asked = self.addon.annotations().get(annotations::ADDON_HOSTING_CLUSTER);
        asked.map(String::as_str).filter(|cluster| !cluster.is_empty())
    }
}

/// What the author's code returns, with errors in words.
async fn ask<T>(answer: impl Future<Output = Result<T, AddonError>>) -> Result<T, String> {
    match author::call(answer).await {
        Ok(answer) => answer.map_err(|error| chain(&*error)),
        Err(no_answer) => Err(no_answer.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{observed, served_by},
        *,
    };
    use crate::{AgentAddon, AgentAddonOptions};

    #[tokio::test(start_paused = true)]
    async fn what_goes_wrong_in_the_authors_code_is_put_in_words() {
        assert_eq!(ask(async { Ok(7) }).await, Ok(7));
        assert_eq!(ask::<()>(async { Err("no licence".into()) }).await, Err("no licence".to_owned()));
        assert!(ask::<()>(async { panic!("a bug") }).await.unwrap_err().contains("panicked"));
    }

    struct Choosing(Result<Option<String>, String>);

    impl AgentAddon for Choosing {
        fn options(&self) -> AgentAddonOptions {
            AgentAddonOptions::new("hello")
        }

        async fn manifests(&self, _: &Installation<'_>) -> Result<Vec<Manifest>, AddonError> {
            Ok(Vec::new())
        }

        async fn install_namespace(&self, _: &v1beta1::ManagedClusterAddOn) -> Result<Option<String>, AddonError> {
            Ok(self.0.clone()?)
        }
    }

    async fn namespace_where(answer: Result<Option<String>, String>) -> (String, Result<(), String>) {
        let mut observed = observed().with_status(|status| status.namespace = Some("known".into()));
        observed.served = served_by(Choosing(answer));
        let outcome = observed.choose_namespace().await;
        (observed.namespace, outcome)
    }

    #[tokio::test]
    async fn the_authors_namespace_counts_then_the_users_and_after_an_error_the_last_one() {
        assert_eq!(namespace_where(Ok(Some("own".into()))).await, ("own".into(), Ok(())));
        for nothing in [None, Some(String::new())] {
            assert_eq!(namespace_where(Ok(nothing)).await, ("default".into(), Ok(())));
        }
        let (namespace, outcome) = namespace_where(Err("no answer".into())).await;
        assert_eq!(namespace, "known");
        assert!(outcome.unwrap_err().contains("namespace could not be chosen: no answer"));
    }
}
