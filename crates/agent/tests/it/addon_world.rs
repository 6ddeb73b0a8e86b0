//! Add-ons of a test's cluster. The tests play their managers, their agents and their signers.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use k8s_openapi::{
    api::{
        authentication::v1::{SelfSubjectReview, UserInfo},
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        core::v1::{Namespace, Secret},
    },
    apimachinery::pkg::apis::meta::v1::{Condition, MicroTime},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use ocm_agent::AgentConfig;
use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, annotations, labels};
use ocm_runtime::{Clock, client::Endpoint, kubeconfig};
use ocm_testing::eventually;
use serde_json::{Value, json};

use crate::{registration_world::World, running::Running};

pub(crate) const KUBE_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
pub(crate) const ROTATED: &str = "ClusterCertificateRotated";
pub(crate) const UPDATED: &str = "ClientCertificateUpdated";
pub(crate) const FAILED: &str = "ClientCertificateUpdateFailed";

impl World {
    /// An agent that checks leases all the time.
    pub(crate) fn attentive(&self) -> AgentConfig {
        AgentConfig { addon_lease_period: std::time::Duration::from_millis(50), ..self.config() }
    }

    pub(crate) fn addons(&self) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.hub_client.clone(), &self.cluster)
    }

    /// Makes a namespace on the managed cluster for the add-ons of this test.
    pub(crate) async fn install_namespace(&self, suffix: &str) -> Result<String> {
        let name = format!("{}-{suffix}", self.cluster);
        create_namespace(&self.managed_client, &name).await?;
        Ok(name)
    }

    /// Annotates an add-on whose agent runs on a hosting cluster.
    pub(crate) async fn host_addon(&self, name: &str, cluster: &str) -> Result<()> {
        let hosted = json!({"metadata": {"annotations": {annotations::ADDON_HOSTING_CLUSTER: cluster}}});
        self.addons().patch(name, &PatchParams::default(), &Patch::Merge(hosted)).await?;
        Ok(())
    }

    pub(crate) async fn create_addon(&self, name: &str, namespace: &str) -> Result<()> {
        let addon = json!({"metadata": {"name": name}, "spec": {"installNamespace": namespace}});
        self.addons().create(&PostParams::default(), &serde_json::from_value(addon)?).await?;
        Ok(())
    }

    /// Writes status, as the add-on's manager.
    pub(crate) async fn manage(&self, name: &str, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({"status": status}));
        self.addons().patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// What a manager writes whose add-on logs in to the hub's API server.
    pub(crate) fn kube_client(&self, addon: &str) -> Value {
        let prefix = "system:open-cluster-management";
        let group = format!("{prefix}:cluster:{}:addon:{addon}", self.cluster);
        let groups = [group.clone(), format!("{prefix}:addon:{addon}")];
        json!({"signerName": KUBE_CLIENT, "subject": {"user": format!("{group}:agent:{addon}"), "groups": groups}})
    }

    /// An add-on that logs in to the hub's API server.
    pub(crate) async fn register_addon(&self, name: &str, namespace: &str) -> Result<()> {
        self.create_addon(name, namespace).await?;
        self.manage(name, json!({"registrations": [self.kube_client(name)]})).await
    }

    pub(crate) async fn addon(&self, name: &str) -> Result<ManagedClusterAddOn> {
        Ok(self.addons().get(name).await?)
    }

    pub(crate) async fn delete_addon(&self, name: &str) -> Result<()> {
        self.addons().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    pub(crate) async fn addon_conditions(&self, name: &str) -> Result<Vec<Condition>> {
        Ok(self.addon(name).await?.status.unwrap_or_default().conditions)
    }

    /// Waits until a condition of an add-on has that status and reason.
    pub(crate) async fn addon_condition(
        &self,
        name: &str,
        type_: &str,
        status: &str,
        reason: &str,
    ) -> Result<Condition> {
        eventually(&format!("{type_} of {name} is {status} with reason {reason}"), || async {
            let conditions = self.addon_conditions(name).await?;
            let of_type = conditions.into_iter().find(|condition| condition.type_ == type_);
            anyhow::Ok(of_type.filter(|condition| condition.status == status && condition.reason == reason))
        })
        .await
    }

    pub(crate) async fn addon_requests(&self, name: &str) -> Result<Vec<CertificateSigningRequest>> {
        let selector = format!("{}={},{}={name}", labels::CLUSTER_NAME, self.cluster, labels::ADDON_NAME);
        let mut requests = self.requests().list(&ListParams::default().labels(&selector)).await?.items;
        requests.sort_by_key(|request| request.metadata.name.clone());
        Ok(requests)
    }

    /// Waits for a request of an add-on that nobody has answered yet.
    pub(crate) async fn open_request(&self, name: &str) -> Result<CertificateSigningRequest> {
        eventually(&format!("there is an open request of {name}"), || async {
            let open = |request: &CertificateSigningRequest| {
                request.status.as_ref().is_none_or(|status| status.conditions.as_ref().is_none_or(Vec::is_empty))
            };
            anyhow::Ok(self.addon_requests(name).await?.into_iter().find(open))
        })
        .await
    }

    /// Approves the open request of an add-on, and waits until the secret holds another certificate than `old`.
    pub(crate) async fn issue(&self, addon: &str, namespace: &str, old: Option<&Secret>) -> Result<Secret> {
        self.approve(&self.open_request(addon).await?).await?;
        let name = format!("{addon}-hub-kubeconfig");
        eventually(&format!("secret {namespace}/{name} holds a new certificate"), || async {
            let secret = self.managed_secret(namespace, &name).await?;
            anyhow::Ok(secret.filter(|secret| old.is_none_or(|old| old.data != secret.data)))
        })
        .await
    }

    /// An add-on with its secret.
    pub(crate) async fn serve_addon(&self, name: &str, namespace: &str) -> Result<Secret> {
        self.register_addon(name, namespace).await?;
        self.issue(name, namespace, None).await
    }

    /// An agent that has saved and reported the credentials of add-on `hello`, and the add-on's namespace.
    pub(crate) async fn join_with_hello(&self) -> Result<(Running, String)> {
        let agent = self.join(self.config(), Clock::System).await?;
        let namespace = self.install_namespace("hello").await?;
        self.serve_addon("hello", &namespace).await?;
        self.addon_condition("hello", ROTATED, "True", UPDATED).await?;
        Ok((agent, namespace))
    }

    pub(crate) async fn managed_secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>> {
        Ok(Api::<Secret>::namespaced(self.managed_client.clone(), namespace).get_opt(name).await?)
    }

    /// Waits until a secret on the managed cluster is gone.
    pub(crate) async fn secret_gone(&self, namespace: &str, name: &str) -> Result<()> {
        eventually(&format!("secret {namespace}/{name} is gone"), || async {
            anyhow::Ok(self.managed_secret(namespace, name).await?.is_none())
        })
        .await
    }

    /// Who the hub takes the holder of a secret for.
    pub(crate) async fn who_is(&self, secret: &Secret) -> Result<UserInfo> {
        let folder = self.dir.path().join("addon");
        std::fs::create_dir_all(&folder)?;
        for (key, value) in secret.data.iter().flatten() {
            std::fs::write(folder.join(key), &value.0)?;
        }
        let config = kubeconfig::load(Some(&folder.join("kubeconfig"))).await?;
        let reviews: Api<SelfSubjectReview> = Api::all(Endpoint::new(&config)?.client("addon-agent")?);
        let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
        review.status.and_then(|status| status.user_info).context("the review has no user")
    }

    /// Renews a lease, as an add-on's agent.
    pub(crate) async fn renew(client: &Client, namespace: &str, name: &str, at: jiff::Timestamp) -> Result<()> {
        let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
        let mut lease = leases.get_opt(name).await?.unwrap_or_default();
        lease.metadata.name = Some(name.into());
        lease.spec.get_or_insert_default().renew_time = Some(MicroTime(at));
        match lease.metadata.resource_version {
            None => leases.create(&PostParams::default(), &lease).await?,
            Some(_) => leases.replace(name, &PostParams::default(), &lease).await?,
        };
        Ok(())
    }
}

pub(crate) async fn create_namespace(client: &Client, name: &str) -> Result<()> {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.into());
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    Ok(())
}

/// What a secret holds, as text.
pub(crate) fn texts(secret: &Secret) -> BTreeMap<&str, String> {
    let data = secret.data.iter().flatten();
    data.map(|(key, value)| (key.as_str(), String::from_utf8_lossy(&value.0).into_owned())).collect()
}
