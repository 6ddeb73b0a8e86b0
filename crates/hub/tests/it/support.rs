//! One hub for all tests of this binary, and what an admin or an agent does to it.

use std::{fs, net::SocketAddr, path::Path, sync::OnceLock, thread, time::Duration};

use anyhow::{Context as _, Result};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use ocm_api::{
    cluster::v1::{ManagedCluster, ManagedClusterSpec},
    crds,
    webhooks::CONVERT_PATH,
};
use ocm_apimachinery::yaml;
use ocm_hub::{
    Hub, HubConfig,
    webhook::{self, WebhookConfig, admission::Admission},
};
use ocm_runtime::{
    Backoff, Clock, Context, RetryDelays,
    admin::{Tls, TlsOptions},
    conditions,
    feature_gates::FeatureGates,
};
use ocm_testing::{ControlPlane, Seen, TempDir, client_for, eventually, fixture};
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "open-cluster-management-hub";
pub(crate) const ACCOUNT: &str = "hub-controller-sa";
pub(crate) const CLEANUP: &str = "cluster.open-cluster-management.io/resource-cleanup";
pub(crate) const API_CLEANUP: &str = "cluster.open-cluster-management.io/api-resource-cleanup";
pub(crate) const WORK_CLEANUP: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

/// The control plane that the hub runs on, and a client of its admin for the calling test.
pub(crate) struct World {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) client: Client,
}

/// Starts the hub, once, and returns when its watches are complete.
pub(crate) async fn world() -> Result<World> {
    static HUB: OnceLock<Result<&'static ControlPlane, String>> = OnceLock::new();
    World::of(started(&HUB, start)?).await
}

async fn start() -> Result<&'static ControlPlane> {
    let plane = fixture::hub();
    let context = context();
    install(plane, &context).await?;
    start_hub(plane, &context, HubConfig::default()).await?;
    Ok(plane)
}

/// Runs `start` on the fixture's runtime, if no test has done so; returns its control plane.
pub(crate) fn started<F>(
    plane: &OnceLock<Result<&'static ControlPlane, String>>,
    start: impl FnOnce() -> F + Send,
) -> Result<&'static ControlPlane>
where
    F: Future<Output = Result<&'static ControlPlane>>,
{
    let start = || thread::scope(|scope| scope.spawn(|| fixture::runtime().block_on(start())).join());
    let started = plane.get_or_init(|| match start() {
        Ok(result) => result.map_err(|error| format!("{error:#}")),
        Err(_) => Err("the start of the hub panicked".into()),
    });
    started.clone().map_err(anyhow::Error::msg)
}

/// A context in which what is refused is retried after seconds; elsewhere it is after minutes.
pub(crate) fn context() -> Context {
    let refused = Backoff::new(Duration::from_secs(2), Duration::from_secs(4));
    Context::new().with_retries(RetryDelays { refused, ..RetryDelays::default() })
}

/// Starts a hub under its account, and returns when its watches are complete.
pub(crate) async fn start_hub(plane: &ControlPlane, context: &Context, config: HubConfig) -> Result<()> {
    let kubeconfig = plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT).await?;
    let config = HubConfig { host: "test".into(), ..config };
    Hub::start(context, client_for(&kubeconfig).await?, config)?;
    eventually("the hub's watches are complete", || async {
        let awaited = context.health().awaited();
        if awaited.is_empty() { Seen::Settled(()) } else { Seen::NotYet(awaited.join(", ")) }
    })
    .await
}

/// Installs CRDs and rights. Add-ons are converted by a webhook in the calling runtime, until `context` ends.
pub(crate) async fn install(plane: &ControlPlane, context: &Context) -> Result<()> {
    let url = format!("https://{}{CONVERT_PATH}", start_webhook(plane, context).await?);
    let mut definitions = Vec::new();
    for mut crd in crds::all()? {
        crd.convert_at(&url);
        crd.trust_converter(plane.certificate_authority().as_bytes());
        definitions.push(yaml::to_string(&crd.definition)?);
    }
    plane.install(&definitions.join("---\n"), &deploy("hub.yaml")?).await
}

/// A file of `deploy/`.
pub(crate) fn deploy(file: &str) -> Result<String> {
    Ok(fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file))?)
}

async fn start_webhook(plane: &ControlPlane, context: &Context) -> Result<SocketAddr> {
    let folder = TempDir::new("webhook")?;
    let (certificate, key) = plane.serving_certificate(&["127.0.0.1"])?;
    let files = [folder.path().join("tls.crt"), folder.path().join("tls.key")];
    fs::write(&files[0], certificate)?;
    fs::write(&files[1], key)?;
    let [cert_file, key_file] = files.map(Some);
    let tls = Tls::new(&TlsOptions { cert_file, key_file, ..TlsOptions::default() }, &Clock::System)?;
    let admission = Admission::new(None, FeatureGates::default());
    let config = WebhookConfig { address: "127.0.0.1:0".into(), tls, probes: None, metrics: None, admission };
    let address = webhook::serve(context, &config).await?;
    // The files are read again as long as it serves.
    context.spawn(async move {
        std::future::pending::<()>().await;
        drop(folder);
    });
    Ok(address)
}

impl World {
    pub(crate) async fn of(plane: &'static ControlPlane) -> Result<Self> {
        Ok(Self { plane, client: plane.client().await? })
    }

    pub(crate) fn clusters(&self) -> Api<ManagedCluster> {
        Api::all(self.client.clone())
    }

    /// What an agent does first.
    pub(crate) async fn register(&self, name: &str) -> Result<()> {
        self.create(name, false, 60).await
    }

    /// A cluster that an admin brings in himself.
    pub(crate) async fn create(&self, name: &str, hub_accepts_client: bool, lease: i32) -> Result<()> {
        let spec = ManagedClusterSpec {
            hub_accepts_client,
            lease_duration_seconds: Some(lease),
            ..ManagedClusterSpec::default()
        };
        self.clusters().create(&PostParams::default(), &ManagedCluster::new(name, spec)).await?;
        Ok(())
    }

    /// A cluster that is accepted, with everything in place.
    pub(crate) async fn accepted(&self, name: &str) -> Result<()> {
        self.create(name, true, 60).await?;
        self.wait_for_accepted(name).await
    }

    pub(crate) async fn wait_for_accepted(&self, name: &str) -> Result<()> {
        self.wait_for_condition(name, "HubAcceptedManagedCluster", "True").await?;
        eventually("the cluster has its lease", || async { self.get("leases", name, "managed-cluster-lease").await })
            .await?;
        eventually("the cluster has its taint and both finalizers", || async {
            let cluster = self.clusters().get(name).await?;
            Ok::<_, kube::Error>(cluster.spec.taints.len() == 1 && cluster.finalizers().len() == 2)
        })
        .await
    }

    pub(crate) async fn set_accepted(&self, name: &str, accepted: bool) -> Result<()> {
        self.patch(name, json!({"spec": {"hubAcceptsClient": accepted}})).await
    }

    pub(crate) async fn patch(&self, name: &str, patch: Value) -> Result<()> {
        self.clusters().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// What an agent says about its cluster's health.
    pub(crate) async fn say_available(&self, name: &str) -> Result<()> {
        self.report_condition(name, "ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable").await
    }

    /// Sets a condition as the cluster's agent does.
    pub(crate) async fn report_condition(
        &self,
        name: &str,
        type_: &'static str,
        status: &'static str,
        reason: &'static str,
    ) -> Result<()> {
        let mut new = self.clusters().get(name).await?.status.unwrap_or_default();
        let condition = conditions::NewCondition { type_, status, reason, message: "as a test wants it".into() };
        conditions::set(&mut new.conditions, condition, None, now());
        let patch = Patch::Merge(json!({"status": {"conditions": new.conditions}}));
        self.clusters().patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until a condition has that status; returns its reason and message.
    pub(crate) async fn wait_for_condition(&self, name: &str, type_: &str, status: &str) -> Result<(String, String)> {
        eventually(&format!("{type_} of {name} is {status}"), || async {
            let found = self.clusters().get(name).await?.status.unwrap_or_default();
            Ok::<_, kube::Error>(match conditions::find(&found.conditions, type_) {
                Some(found) if found.status == status => Seen::Settled((found.reason.clone(), found.message.clone())),
                other => Seen::NotYet(format!("{other:?}")),
            })
        })
        .await
    }

    /// An object as kubectl shows it, or `None`; cluster-scoped ones with an empty namespace.
    pub(crate) async fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let mut args = vec!["get", resource, name, "-o", "json"];
        if !namespace.is_empty() {
            args.extend(["-n", namespace]);
        }
        serde_json::from_str(&self.plane.kubectl(&args).await.ok()?).ok()
    }

    /// Waits until an object is gone.
    pub(crate) async fn wait_until_gone(&self, resource: &str, namespace: &str, name: &str) -> Result<()> {
        let what = format!("{resource} {name} is gone");
        eventually(&what, || async { self.get(resource, namespace, name).await.is_none() }).await
    }

    /// A work in a cluster's namespace, with a finalizer as an agent puts it there.
    pub(crate) async fn create_work(&self, cluster: &str, name: &str, annotations: Value) -> Result<()> {
        let work = json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": name, "namespace": cluster, "finalizers": [WORK_CLEANUP], "annotations": annotations},
            "spec": {"workload": {"manifests": []}},
        });
        self.plane.kubectl_with_input(&["create", "-f", "-"], &work.to_string()).await.map(|_| ())
    }

    /// What an agent does when it has cleaned up.
    pub(crate) async fn finish_work(&self, cluster: &str, name: &str) -> Result<()> {
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        self.plane.kubectl(&["patch", "manifestwork", name, "-n", cluster, "--type=merge", "-p", patch]).await?;
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "tests play the agent, with the machine's clock")]
pub(crate) fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Labels, finalizers and content of an object, without what the API server adds.
pub(crate) fn content(object: &Value) -> Value {
    let mut object = object.clone();
    let all = object["metadata"].as_object().cloned().unwrap_or_default();
    let kept = ["name", "namespace", "labels", "annotations", "finalizers"];
    object["metadata"] = all.into_iter().filter(|(key, _)| kept.contains(&key.as_str())).collect();
    object
}

/// The object must be there.
pub(crate) fn there(object: Option<Value>) -> Result<Value> {
    object.context("the object is not there")
}
