//! A manager with a few add-ons that all tests share, and what a hub and clusters' agents do to it.

use std::{collections::BTreeMap, fs, path::Path, sync::OnceLock, thread};

use anyhow::{Context as _, Result};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use ocm_addon::{AddonManager, AgentAddon, Trigger};
use ocm_api::{
    addon::{
        v1alpha1::{ClusterManagementAddOn, ManagedClusterAddOn},
        v1beta1,
    },
    cluster::v1::ManagedCluster,
    identities,
    work::v1::ManifestWork,
};
use ocm_apimachinery::yaml;
use ocm_runtime::{Context as Surroundings, conditions};
use ocm_testing::{AuditLog, ControlPlane, Seen, client_for, eventually, fixture, unique};
use serde_json::{Value, json};

use crate::{
    logs,
    scripted::{FRAGILE, GREEDY, PLAIN, READER, SCRIPT, Scripted, TUNED},
};

const NAMESPACE: &str = "open-cluster-management";
const ACCOUNT: &str = "helloworld-manager";

/// The hub, and a client of its admin for the calling test.
pub(crate) struct World {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) client: Client,
    /// Of the manager that all tests share.
    pub(crate) trigger: Trigger,
}

/// Starts the manager, once, and returns when its watches are complete.
pub(crate) async fn world() -> Result<World> {
    static MANAGER: OnceLock<Result<Trigger, String>> = OnceLock::new();
    let start = || thread::scope(|scope| scope.spawn(|| fixture::runtime().block_on(start())).join());
    let started = MANAGER.get_or_init(|| match start() {
        Ok(result) => result.map_err(|error| format!("{error:#}")),
        Err(_) => Err("the start of the manager panicked".into()),
    });
    let trigger = started.clone().map_err(anyhow::Error::msg)?;
    let plane = fixture::hub();
    Ok(World { plane, client: plane.client().await?, trigger })
}

async fn start() -> Result<Trigger> {
    logs::record();
    let plane = fixture::hub();
    install(plane).await?;
    let manager = manager(plane).await?;
    let trigger = manager.trigger();
    run(manager, &Surroundings::new()).await?;
    Ok(trigger)
}

async fn manager(plane: &ControlPlane) -> Result<AddonManager> {
    let manager = empty_manager(plane)
        .await?
        .add_agent(Scripted::granting(READER, "configmaps"))?
        .add_agent(Scripted::granting(GREEDY, "secrets"))?
        .add_agent(Scripted::tuned(TUNED))?
        .add_agent(Scripted::fragile(FRAGILE))?
        .add_agent(Scripted::new(PLAIN))?;
    Ok(manager)
}

async fn empty_manager(plane: &ControlPlane) -> Result<AddonManager> {
    let client = client_for(&plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT).await?).await?;
    Ok(AddonManager::new(client))
}

/// Runs a manager, and returns when its watches are complete.
async fn run(manager: AddonManager, context: &Surroundings) -> Result<()> {
    let running = context.clone();
    tokio::spawn(async move { manager.run(&running).await });
    eventually("the manager's watches are complete", || async {
        let awaited = context.health().awaited();
        if awaited.is_empty() { Seen::Settled(()) } else { Seen::NotYet(awaited.join(", ")) }
    })
    .await
}

/// Whether the queue of a controller is empty.
fn is_idle(context: &Surroundings, controller: &str) -> bool {
    let depth = format!("ocm_controller_queue_depth{{controller=\"{controller}\"}} 0");
    context.metrics().encode().lines().any(|line| line == depth)
}

async fn install(plane: &ControlPlane) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for entry in fs::read_dir(root.join("crds"))? {
        plane.apply_yaml(&without_conversion(&fs::read_to_string(entry?.path())?)?).await?;
    }
    plane.apply_yaml(&fs::read_to_string(root.join("examples/helloworld/deploy/hub.yaml"))?).await?;
    for addon in [READER, GREEDY, TUNED, FRAGILE, PLAIN] {
        let client = plane.client().await?;
        let addon = ClusterManagementAddOn::new(addon, Default::default());
        Api::all(client).create(&PostParams::default(), &addon).await?;
    }
    plane.apply_yaml(AGENTS_MAY_ASK).await
}

/// The hub's webhook does not run here. Nobody reads more of version v1beta1 than metadata.
fn without_conversion(crd: &str) -> Result<String> {
    let mut crd: Value = yaml::from_str(crd)?;
    crd["spec"].as_object_mut().context("a CRD without spec")?.remove("conversion");
    Ok(crd.to_string())
}

/// Permissions of the agents of accepted clusters.
const AGENTS_MAY_ASK: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: test-agents}
rules: [{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create, get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-agents}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: test-agents}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:open-cluster-management:managed-clusters'}]
";

impl World {
    /// Returns when a manager has reconciled everything that exists now. It is another one than that of the tests, which
    /// has no end.
    pub(crate) async fn everything_is_reconciled(&self) -> Result<()> {
        let context = Surroundings::new();
        run(manager(self.plane).await?, &context).await?;
        for controller in ["addon-deploy", "addon-csr-approval"] {
            eventually(&format!("the queue of {controller} is empty"), || async { is_idle(&context, controller) })
                .await?;
        }
        context.stop().await;
        Ok(())
    }

    /// Starts another manager for these add-ons alone, which the hub did not know before.
    pub(crate) async fn start_manager_of(
        &self,
        addons: impl IntoIterator<Item = impl AgentAddon>,
    ) -> Result<Surroundings> {
        let addons: Vec<_> = addons.into_iter().collect();
        for addon in &addons {
            let management = ClusterManagementAddOn::new(addon.options().name(), Default::default());
            Api::all(self.client.clone()).create(&PostParams::default(), &management).await?;
        }
        self.restart_manager_of(addons).await
    }

    /// Starts another manager for these add-ons alone.
    pub(crate) async fn restart_manager_of(
        &self,
        addons: impl IntoIterator<Item = impl AgentAddon>,
    ) -> Result<Surroundings> {
        let mut manager = empty_manager(self.plane).await?;
        for addon in addons {
            manager = manager.add_agent(addon)?;
        }
        let context = Surroundings::new();
        run(manager, &context).await?;
        Ok(context)
    }

    /// What the manager has written in a cluster's namespace, such as `patch manifestworks`.
    pub(crate) fn writes(&self, cluster: &str) -> Result<Vec<String>> {
        let manager = identities::service_account_user(NAMESPACE, ACCOUNT);
        let writes = AuditLog::of(self.plane)?.all()?;
        let own = writes.iter().filter(|write| write.user == manager && write.namespace == cluster);
        Ok(own.map(ToString::to_string).collect())
    }

    /// A cluster with its namespace, and the manifests of add-ons there.
    pub(crate) async fn cluster(&self, prefix: &str, script: Option<&str>) -> Result<String> {
        let name = unique(prefix);
        self.cluster_named(&name, script).await?;
        Ok(name)
    }

    pub(crate) async fn cluster_named(&self, name: &str, script: Option<&str>) -> Result<()> {
        let mut cluster = ManagedCluster::new(name, Default::default());
        cluster.spec.hub_accepts_client = true;
        let script = script.map(|script| (SCRIPT.to_owned(), script.to_owned()));
        cluster.metadata.annotations = Some(script.into_iter().collect::<BTreeMap<_, _>>());
        Api::all(self.client.clone()).create(&PostParams::default(), &cluster).await?;
        self.plane.kubectl(&["create", "namespace", name]).await.map(|_| ())
    }

    /// Accepts a cluster, or denies it.
    pub(crate) async fn accept(&self, cluster: &str, is_accepted: bool) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"hubAcceptsClient": is_accepted}}));
        let clusters: Api<ManagedCluster> = Api::all(self.client.clone());
        clusters.patch(cluster, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Changes the manifests of add-ons on a cluster.
    pub(crate) async fn script(&self, cluster: &str, script: &str) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {(SCRIPT): script}}}));
        let clusters: Api<ManagedCluster> = Api::all(self.client.clone());
        clusters.patch(cluster, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    pub(crate) fn addons(&self, cluster: &str) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.client.clone(), cluster)
    }

    /// The add-on as its author sees it.
    pub(crate) async fn addon_view(&self, cluster: &str, addon: &str) -> Result<v1beta1::ManagedClusterAddOn> {
        let metadata = self.addons(cluster).get(addon).await?.metadata;
        Ok(v1beta1::ManagedClusterAddOn { metadata, ..v1beta1::ManagedClusterAddOn::default() })
    }

    pub(crate) fn works(&self, cluster: &str) -> Api<ManifestWork> {
        Api::namespaced(self.client.clone(), cluster)
    }

    /// An add-on on a cluster, as a user makes it and the hub then takes it on.
    pub(crate) async fn enable(&self, cluster: &str, addon: &str) -> Result<()> {
        let object =
            json!({"metadata": {"name": addon, "namespace": cluster}, "spec": {"installNamespace": "default"}});
        self.enable_as(cluster, addon, object).await
    }

    pub(crate) async fn enable_as(&self, cluster: &str, addon: &str, object: Value) -> Result<()> {
        let mut object: ManagedClusterAddOn = serde_json::from_value(object)?;
        let management: ClusterManagementAddOn = Api::all(self.client.clone()).get(addon).await?;
        let owner = json!([{"apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ClusterManagementAddOn",
            "name": addon, "uid": management.uid(), "controller": true, "blockOwnerDeletion": true}]);
        object.metadata.owner_references = serde_json::from_value(owner)?;
        self.addons(cluster).create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Waits until a condition of an add-on has that status and reason; returns its message.
    pub(crate) async fn condition(&self, cluster: &str, addon: &str, expected: [&str; 3]) -> Result<String> {
        let [type_, status, reason] = expected;
        let what = format!("{type_} of {cluster}/{addon} is {status}, {reason}");
        let reached = eventually(&what, || async {
            let found = self.addons(cluster).get(addon).await?.status.unwrap_or_default();
            Ok::<_, kube::Error>(match conditions::find(&found.conditions, type_) {
                Some(found) if found.status == status && found.reason == reason => Seen::Settled(found.message.clone()),
                other => Seen::NotYet(format!("{other:?}")),
            })
        });
        reached.await.with_context(|| format!("the managers' log:\n{}", logs::about(cluster)))
    }

    /// Waits until the work of that number is as a test wants it.
    pub(crate) async fn work(
        &self,
        cluster: &str,
        addon: &str,
        what: &str,
        is_so: impl Fn(&ManifestWork) -> bool,
    ) -> Result<ManifestWork> {
        let name = format!("addon-{addon}-deploy-0");
        eventually(&format!("work {cluster}/{name} {what}"), || async {
            let work = self.works(cluster).get_opt(&name).await?;
            Ok::<_, kube::Error>(work.filter(|work| is_so(work)))
        })
        .await
    }

    /// Reports on a work as the cluster's agent does.
    pub(crate) async fn report(&self, cluster: &str, work: &str, status: &'static str) -> Result<()> {
        let work = self.works(cluster).get(work).await?;
        let condition =
            conditions::NewCondition { type_: "Applied", status, reason: "Test", message: "so it is".into() };
        let condition = condition.at(now(), work.metadata.generation);
        let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        self.works(cluster).patch_status(&work.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Whether an object exists, by kubectl's names.
    pub(crate) async fn exists(&self, resource: &str, namespace: &str, name: &str) -> Result<bool> {
        let args = ["get", resource, name, "-n", namespace, "--ignore-not-found", "-o", "name"];
        Ok(!self.plane.kubectl(&args).await?.trim().is_empty())
    }
}

/// The names of the objects in a work.
pub(crate) fn contents(work: &ManifestWork) -> Vec<String> {
    let manifests = work.spec.workload.manifests.iter();
    manifests.filter_map(|manifest| manifest.value()["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

#[expect(clippy::disallowed_methods, reason = "tests play the agent, with the machine's clock")]
pub(crate) fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
