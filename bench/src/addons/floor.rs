//! The same writes by a bare client: what the control plane allows.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, labels, work::v1::ManifestWork};
use serde_json::{Value, json};

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

pub(super) struct Floor<'a> {
    pub(super) client: &'a Client,
    pub(super) clusters: &'a [String],
}

impl Floor<'_> {
    /// Makes the writes for so many clusters, and takes them back; how long the first took.
    pub(super) async fn run(&self, count: usize, writes: Writes) -> Result<Duration> {
        let clusters = &self.clusters[..count];
        let started = Instant::now();
        let all = stream::iter(clusters).map(|cluster| self.write(cluster, writes));
        all.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        let took = started.elapsed();
        let all = stream::iter(clusters).map(|cluster| self.clean(cluster, writes));
        all.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        Ok(took)
    }

    fn api<K>(&self, cluster: &str) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), cluster)
    }

    async fn write(&self, cluster: &str, writes: Writes) -> Result<()> {
        let addons: Api<ManagedClusterAddOn> = self.api(cluster);
        addons.create(&PostParams::default(), &serde_json::from_value(object(&json!({})))?).await?;
        addons.patch_status(NAME, &PatchParams::default(), &Patch::Merge(said_by_hub())).await?;
        if writes == Writes::Deployed {
            let post = PostParams::default();
            self.api::<Role>(cluster).create(&post, &serde_json::from_value(role())?).await?;
            self.api::<RoleBinding>(cluster).create(&post, &serde_json::from_value(role_binding())?).await?;
            self.api::<ManifestWork>(cluster).create(&post, &serde_json::from_value(work())?).await?;
            addons.patch_status(NAME, &PatchParams::default(), &Patch::Merge(said_by_manager(cluster))).await?;
        }
        Ok(())
    }

    async fn clean(&self, cluster: &str, writes: Writes) -> Result<()> {
        let delete = DeleteParams::default();
        self.api::<ManagedClusterAddOn>(cluster).delete(NAME, &delete).await?;
        if writes == Writes::Deployed {
            self.api::<Role>(cluster).delete(NAME, &delete).await?;
            self.api::<RoleBinding>(cluster).delete(NAME, &delete).await?;
            self.api::<ManifestWork>(cluster).delete(NAME, &delete).await?;
        }
        Ok(())
    }
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
