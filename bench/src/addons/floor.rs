//! The same writes by bare clients: what the control plane allows.
//!
//! Each write is made under the account of the process that makes it in the product. For each role and binding the API
//! server checks that its author holds the rights that it grants, and for each owner reference that blocks deletion that
//! its author may set it. An administrator is exempt from both checks, so writes as administrator would be cheaper.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::{
    NamespaceResourceScope,
    api::rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use ocm_api::{
    addon::v1alpha1::{ClusterManagementAddOn, ManagedClusterAddOn},
    labels,
    work::v1::ManifestWork,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::objects::create;
use crate::AT_A_TIME;

/// Name of everything that is written.
const NAME: &str = "floor";

/// What an add-on costs on one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    /// The ManagedClusterAddOn and what the hub says of it.
    Configured,
    /// That, and what helloworld's manager writes: a role and a binding, the work, what it says of them.
    Deployed,
}

/// Who writes, and where.
pub(super) struct Floor<'a> {
    pub(super) hub: Client,
    pub(super) manager: Client,
    pub(super) admin: &'a Client,
    pub(super) clusters: &'a [String],
}

impl Floor<'_> {
    /// Makes the writes for so many clusters, and takes them back; how long the first took.
    pub(super) async fn run(&self, count: usize, writes: Writes) -> Result<Duration> {
        let managements: Api<ClusterManagementAddOn> = Api::all(self.admin.clone());
        create(&managements, NAME, json!({"installStrategy": {"type": "Manual"}})).await?;
        let clusters = &self.clusters[..count];
        let owner = owner(&managements.get(NAME).await?);
        let started = Instant::now();
        let all = stream::iter(clusters).map(|cluster| self.write(cluster, &owner, writes));
        all.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        let took = started.elapsed();
        let all = stream::iter(clusters).map(|cluster| self.clean(cluster, writes));
        all.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        managements.delete(NAME, &DeleteParams::default()).await?;
        Ok(took)
    }

    async fn write(&self, cluster: &str, owner: &Value, writes: Writes) -> Result<()> {
        let addon = self.write_as_hub(cluster, owner).await?;
        if writes == Writes::Deployed {
            self.write_as_manager(cluster, &self::owner(&addon)).await?;
        }
        Ok(())
    }

    async fn write_as_hub(&self, cluster: &str, owner: &Value) -> Result<ManagedClusterAddOn> {
        let addons: Api<ManagedClusterAddOn> = namespaced(&self.hub, cluster);
        let addon = addons.create(&PostParams::default(), &read(owned(object(&json!({})), owner))?).await?;
        addons.patch_status(NAME, &PatchParams::default(), &Patch::Merge(said_by_hub())).await?;
        Ok(addon)
    }

    async fn write_as_manager(&self, cluster: &str, owner: &Value) -> Result<()> {
        let (client, post) = (&self.manager, PostParams::default());
        namespaced::<Role>(client, cluster).create(&post, &read(owned(role(), owner))?).await?;
        namespaced::<RoleBinding>(client, cluster).create(&post, &read(owned(role_binding(), owner))?).await?;
        namespaced::<ManifestWork>(client, cluster).create(&post, &read(owned(work(), owner))?).await?;
        let said = Patch::Merge(said_by_manager(cluster));
        namespaced::<ManagedClusterAddOn>(client, cluster).patch_status(NAME, &PatchParams::default(), &said).await?;
        Ok(())
    }

    async fn clean(&self, cluster: &str, writes: Writes) -> Result<()> {
        self.delete::<ManagedClusterAddOn>(cluster).await?;
        if writes == Writes::Deployed {
            self.delete::<Role>(cluster).await?;
            self.delete::<RoleBinding>(cluster).await?;
            self.delete::<ManifestWork>(cluster).await?;
        }
        Ok(())
    }

    /// Garbage collection may have been there first.
    async fn delete<K>(&self, cluster: &str) -> Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        match namespaced::<K>(self.admin, cluster).delete(NAME, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            answer => Ok(answer.map(|_| ())?),
        }
    }
}

fn namespaced<K>(client: &Client, cluster: &str) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), cluster)
}

fn read<K: DeserializeOwned>(object: Value) -> Result<K> {
    Ok(serde_json::from_value(object)?)
}

fn owner<K: Resource<DynamicType = ()>>(object: &K) -> Value {
    json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "name": object.name_any(), "uid": object.uid(),
        "blockOwnerDeletion": true})
}

fn owned(mut object: Value, owner: &Value) -> Value {
    object["metadata"]["ownerReferences"] = json!([owner]);
    object
}

fn object(spec: &Value) -> Value {
    json!({"metadata": {"name": NAME, "labels": { labels::ADDON_NAME: NAME }}, "spec": spec})
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": "As much as is said",
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn said_by_hub() -> Value {
    let configured = condition("Configured", "True", "ConfigurationsConfigured");
    let progressing = condition("Progressing", "False", "WaitingForManifestApplied");
    json!({"status": {"conditions": [configured, progressing]}})
}

fn said_by_manager(cluster: &str) -> Value {
    let mut said = said_by_hub();
    if let Some(conditions) = said["status"]["conditions"].as_array_mut() {
        conditions.push(condition("RegistrationApplied", "True", "SetPermissionApplied"));
    }
    let of_addon = format!("system:open-cluster-management:cluster:{cluster}:addon:{NAME}");
    let groups = [of_addon.clone(), format!("system:open-cluster-management:addon:{NAME}")];
    let subject = json!({"user": format!("{of_addon}:agent:{NAME}"), "groups": groups});
    said["status"]["registrations"] =
        json!([{"signerName": "kubernetes.io/kube-apiserver-client", "subject": subject}]);
    said["status"]["namespace"] = json!("open-cluster-management-agent-addon");
    said
}

fn role() -> Value {
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]});
    json!({"metadata": {"name": NAME}, "rules": [rule]})
}

fn role_binding() -> Value {
    let group = "rbac.authorization.k8s.io";
    let subject = json!({"apiGroup": group, "kind": "User", "name": NAME});
    json!({"metadata": {"name": NAME}, "roleRef": {"apiGroup": group, "kind": "Role", "name": NAME},
        "subjects": [subject]})
}

/// As many objects as helloworld has.
fn work() -> Value {
    let labels = json!({ "app": NAME });
    let container = json!({"name": NAME, "image": "example.com/floor:v1", "args": ["agent", "--cluster-name=floor"],
        "volumeMounts": [{"name": "hub-config", "mountPath": "/var/run/hub"}]});
    let volume = json!({"name": "hub-config", "secret": {"secretName": NAME}});
    let pod = json!({"serviceAccountName": NAME, "containers": [container], "volumes": [volume]});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
    let metadata = json!({"name": NAME, "namespace": "default"});
    let group = "rbac.authorization.k8s.io/v1";
    let manifests = json!([
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": group, "kind": "Role", "metadata": metadata, "rules": role()["rules"]},
        {"apiVersion": group, "kind": "RoleBinding", "metadata": metadata, "roleRef": role_binding()["roleRef"],
            "subjects": role_binding()["subjects"]},
    ]);
    object(&json!({"workload": { "manifests": manifests }}))
}
