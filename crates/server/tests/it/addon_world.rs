//! Add-ons of a test's cluster. The tests act as their managers; their agents do not run.

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, conditions, secrets, signers};
use ocm_runtime::conditions::is_true;
use ocm_testing::{Seen, eventually, unique};
use serde_json::{Value, json};

use crate::world::World;

impl World {
    pub(crate) fn addons(&self, cluster: &str) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.hub.clone(), cluster)
    }

    /// Creates an add-on that logs in to the hub, in a namespace of its own on the managed cluster; returns that.
    pub(crate) async fn create_addon(&self, cluster: &str, name: &str) -> Result<String> {
        let namespace = self.addon_namespace().await?;
        let addon = json!({"metadata": {"name": name}, "spec": {"installNamespace": namespace}});
        self.addons(cluster).create(&PostParams::default(), &serde_json::from_value(addon)?).await?;
        let registrations = json!([{"signerName": signers::KUBE_API_SERVER_CLIENT}]);
        self.manage_addon(cluster, name, json!({"registrations": registrations})).await?;
        Ok(namespace)
    }

    pub(crate) async fn addon_namespace(&self) -> Result<String> {
        let namespace = unique("addon");
        self.managed_plane.kubectl(&["create", "namespace", &namespace]).await?;
        Ok(namespace)
    }

    /// Writes status, as the add-on's manager.
    pub(crate) async fn manage_addon(&self, cluster: &str, name: &str, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({"status": status}));
        self.addons(cluster).patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Approves certificate requests until an add-on has its secret and reports it.
    pub(crate) async fn addon_is_served(&self, cluster: &str, name: &str, namespace: &str) -> Result<()> {
        eventually(&format!("add-on {name} has its secret, and its condition is True"), || async {
            self.approve_all(cluster).await?;
            let secret = self.addon_secret(namespace, name).await?.is_some();
            let status = self.addons(cluster).get(name).await?.status.unwrap_or_default();
            let is_reported = is_true(&status.conditions, conditions::cluster::CERTIFICATE_ROTATED);
            anyhow::Ok(if secret && is_reported {
                Seen::Settled(())
            } else {
                Seen::NotYet(format!("{:?}", status.conditions))
            })
        })
        .await
    }

    pub(crate) async fn addon_secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>> {
        let secrets = Api::<Secret>::namespaced(self.managed.clone(), namespace);
        Ok(secrets.get_opt(&secrets::addon_hub_kubeconfig(name)).await?)
    }

    pub(crate) async fn addon_secret_is_gone(&self, namespace: &str, name: &str) -> Result<()> {
        eventually(&format!("the secret of add-on {name} in {namespace} is gone"), || async {
            anyhow::Ok(self.addon_secret(namespace, name).await?.is_none())
        })
        .await
    }
}
