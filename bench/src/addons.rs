//! Add-ons that a placement enables on many clusters: one without a manager until it is configured on each, and
//! helloworld with its manager until each has the work that deploys it.
//!
//! One real hub, and clusters without agents: what is measured is the hub and the manager, as processes under their own
//! service accounts. The same writes are first made by bare clients under the same
//! accounts ([`floor`]).

mod floor;
mod objects;

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api, Client, Config, Resource, ResourceExt as _,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig},
    core::PartialObjectMeta,
    runtime::{WatchStreamExt as _, watcher},
};
use ocm_api::{
    addon::v1alpha1::{ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::{v1::ManagedCluster, v1beta1::Placement, v1beta2::ManagedClusterSetBinding},
    components, conditions, labels, taints,
    work::v1::ManifestWork,
};
use ocm_runtime::conditions::is_true;
use ocm_testing::{AuditLog, ControlPlane, Process, TempDir, eventually_within};
use serde_json::json;

use self::{
    floor::{Floor, Writes},
    objects::{create, create_cluster, create_namespace},
};
use crate::{AT_A_TIME, figures::print, megabytes, product};

/// Namespace and name of the placement.
const PLACEMENT: [&str; 2] = ["bench", "all"];
/// The add-on with a manager.
const HELLOWORLD: &str = "helloworld";
const HELLOWORLD_MANIFESTS: &str = include_str!("../../examples/helloworld/deploy/hub.yaml");
/// The service accounts of hub and manager.
const OURS: [&str; 2] = [":hub-controller-sa", ":helloworld-manager"];
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// A control plane with everything installed, and clusters that are registered.
struct Bench {
    client: Client,
    clusters: Vec<String>,
    plane: ControlPlane,
    folder: TempDir,
}

/// Enables both add-ons on so many clusters.
pub(crate) async fn measure(count: usize) -> Result<()> {
    let bench = Bench::prepare(count).await?;
    let floor = bench.floor().await?;
    // The first writes of a kind wait until the API server has set itself up for it.
    floor.run(AT_A_TIME.min(count), Writes::Deployed).await?;
    let configured = floor.run(count, Writes::Configured).await?;
    let deployed = floor.run(count, Writes::Deployed).await?;
    let hub = product::start_hub(&bench.plane, &product::ocm_binary()?, &bench.folder).await?;
    bench.until_known().await?;
    bench.place().await?;
    settle().await;
    print_memory(&hub, &format!("with {count} clusters"))?;
    bench.measure_configured(&hub, configured).await?;
    let manager = bench.start_manager().await?;
    bench.measure_deployed(&hub, &manager, deployed).await?;
    for process in [&hub, &manager] {
        print_memory(process, &format!("with 2 add-ons on {count} clusters"))?;
    }
    Ok(())
}

async fn connect(login: Kubeconfig) -> Result<Client> {
    let config = Config::from_custom_kubeconfig(login, &KubeConfigOptions::default()).await?;
    Ok(ocm_runtime::client::connect(&config, "ocm-bench")?)
}

fn print_figures(figure: &str, product: Duration, floor: Duration) {
    print(figure, product.as_secs_f64(), "s");
    print(&format!("{figure}, the same writes by a bare client"), floor.as_secs_f64(), "s");
    print(&format!("{figure}, product / floor"), product.as_secs_f64() / floor.as_secs_f64(), "ratio");
}

fn print_cpu(process: &Process, before: Duration, figure: &str) -> Result<()> {
    let took = process.cpu_time()? - before;
    print(&format!("{figure}, CPU of {}", process.name()), took.as_secs_f64(), "s");
    Ok(())
}

fn print_memory(process: &Process, when: &str) -> Result<()> {
    let memory = process.memory()?;
    let name = process.name();
    print(&format!("{name}, resident memory, {when}"), megabytes(memory.resident_kb * 1024), "MB");
    print(&format!("{name}, anonymous memory, {when}"), megabytes(memory.anonymous_kb * 1024), "MB");
    Ok(())
}

/// Waits until what just happened has been digested.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(5)).await;
}

impl Bench {
    /// So many clusters, each with its namespace, and nothing of ours running.
    async fn prepare(count: usize) -> Result<Self> {
        let plane = ControlPlane::builder().name("addon-hub").audit(true).start().await?;
        product::install_hub(&plane, &product::ocm_binary()?).await?;
        plane.apply_yaml(HELLOWORLD_MANIFESTS).await?;
        let client = connect(plane.admin_config()).await?;
        let clusters: Vec<_> = (0..count).map(|index| format!("cluster-{index:04}")).collect();
        let creations = stream::iter(&clusters).map(|cluster| create_cluster(&client, cluster));
        creations.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        let folder = TempDir::new("addons")?;
        Ok(Self { client, clusters, plane, folder })
    }

    /// Bare clients under the accounts of hub and manager.
    async fn floor(&self) -> Result<Floor<'_>> {
        let hub = self.client_as("open-cluster-management-hub", "hub-controller-sa").await?;
        let manager = self.client_as("open-cluster-management", "helloworld-manager").await?;
        Ok(Floor { hub, manager, admin: &self.client, clusters: &self.clusters })
    }

    async fn client_as(&self, namespace: &str, account: &str) -> Result<Client> {
        let login = self.plane.kubeconfig_for_service_account(namespace, account).await?;
        connect(login).await
    }

    /// Waits until every cluster is accepted, with the hub's finalizers and taint.
    async fn until_known(&self) -> Result<()> {
        let clusters: Api<ManagedCluster> = Api::all(self.client.clone());
        let is_accepted = |cluster: &ManagedCluster| {
            let status = cluster.status.as_ref();
            status.is_some_and(|status| is_true(&status.conditions, conditions::cluster::HUB_ACCEPTED))
        };
        let is_known = |cluster: &ManagedCluster| {
            is_accepted(cluster) && !cluster.finalizers().is_empty() && !cluster.spec.taints.is_empty()
        };
        eventually_within(PATIENCE, "the hub knows every cluster", || async {
            Ok::<_, kube::Error>(clusters.list(&ListParams::default()).await?.items.iter().all(is_known))
        })
        .await
    }

    /// Has a placement choose every cluster.
    async fn place(&self) -> Result<()> {
        let [namespace, name] = PLACEMENT;
        create_namespace(&self.client, namespace).await?;
        let bindings: Api<ManagedClusterSetBinding> = Api::namespaced(self.client.clone(), namespace);
        create(&bindings, "global", json!({"clusterSet": "global"})).await?;
        // No agent says that these clusters are well.
        let tolerations = json!([{"key": taints::UNREACHABLE, "operator": "Exists"}]);
        let placements: Api<Placement> = Api::namespaced(self.client.clone(), namespace);
        create(&placements, name, json!({ "tolerations": tolerations })).await?;
        eventually_within(PATIENCE, "the placement has chosen every cluster", || async {
            let status = placements.get(name).await?.status.unwrap_or_default();
            Ok::<_, kube::Error>(usize::try_from(status.number_of_selected_clusters) == Ok(self.clusters.len()))
        })
        .await
    }

    async fn measure_configured(&self, hub: &Process, floor: Duration) -> Result<()> {
        let figure = format!("1 add-on on {} clusters", self.clusters.len());
        let (before, since) = (hub.cpu_time()?, AuditLog::of(&self.plane)?.position()?);
        let took = self.enable("bare", self.configured_everywhere("bare")).await?;
        print_figures(&format!("{figure}, until each is configured"), took, floor);
        settle().await;
        print_cpu(hub, before, &figure)?;
        self.print_writes(since, &figure)
    }

    async fn measure_deployed(&self, hub: &Process, manager: &Process, floor: Duration) -> Result<()> {
        let figure = format!("helloworld on {} clusters", self.clusters.len());
        let (before, since) = ((hub.cpu_time()?, manager.cpu_time()?), AuditLog::of(&self.plane)?.position()?);
        let took = self.enable(HELLOWORLD, self.deployed_everywhere(HELLOWORLD)).await?;
        print_figures(&format!("{figure}, until each has its deploy work"), took, floor);
        settle().await;
        print_cpu(hub, before.0, &figure)?;
        print_cpu(manager, before.1, &figure)?;
        self.print_writes(since, &figure)
    }

    /// What hub and manager have written since then, for each cluster; each kind of it by its answer too.
    fn print_writes(&self, since: u64, figure: &str) -> Result<()> {
        let mut kinds = BTreeMap::<String, u32>::new();
        let log = AuditLog::of(&self.plane)?.since(since)?;
        for write in log.iter().filter(|write| OURS.iter().any(|account| write.user.ends_with(account))) {
            *kinds.entry(format!("{write} {}", write.code)).or_default() += 1;
        }
        let clusters = f64::from(u32::try_from(self.clusters.len())?);
        for (kind, count) in kinds {
            print(&format!("{figure}, {kind}, for each cluster"), f64::from(count) / clusters, "requests");
        }
        Ok(())
    }

    async fn start_manager(&self) -> Result<Process> {
        let kubeconfig = self.folder.path().join("helloworld.kubeconfig");
        self.plane.write_login("open-cluster-management", "helloworld-manager", &kubeconfig).await?;
        let binary = product::ocm_binary()?.with_file_name(HELLOWORLD);
        let process = Process::build("helloworld manager", &binary, self.folder.path().join("helloworld.log"))
            .without_env("RUST_LOG")
            .args(["manager", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(kubeconfig)
            .start()?;
        process.wait_for_log("add-on manager started").await?;
        Ok(process)
    }

    /// Creates the add-on; how long it took until it was `everywhere`.
    async fn enable(&self, name: &str, everywhere: impl Future<Output = Result<()>>) -> Result<Duration> {
        let [namespace, placement] = PLACEMENT;
        let placements = json!([{"namespace": namespace, "name": placement}]);
        let managements: Api<ClusterManagementAddOn> = Api::all(self.client.clone());
        let started = Instant::now();
        let strategy = json!({"type": "Placements", "placements": placements});
        create(&managements, name, json!({ "installStrategy": strategy })).await?;
        tokio::time::timeout(PATIENCE, everywhere).await.with_context(|| format!("gave up after {PATIENCE:?}"))??;
        Ok(started.elapsed())
    }

    async fn configured_everywhere(&self, name: &str) -> Result<()> {
        let addons: Api<ManagedClusterAddOn> = Api::all(self.client.clone());
        let is_done = |addon: &ManagedClusterAddOn| {
            let conditions = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
            addon.name_any() == name && is_true(conditions, conditions::addon::CONFIGURED)
        };
        self.seen_everywhere(watcher::watcher(addons, watcher::Config::default()).applied_objects(), is_done).await
    }

    async fn deployed_everywhere(&self, name: &str) -> Result<()> {
        let works: Api<PartialObjectMeta<ManifestWork>> = Api::all(self.client.clone());
        let config = watcher::Config::default().labels(&format!("{}={name}", labels::ADDON_NAME));
        let first = format!("{}-0", components::addon_work_prefix(name));
        let is_done = |work: &PartialObjectMeta<ManifestWork>| work.name_any() == first;
        self.seen_everywhere(watcher::watcher(works, config).applied_objects(), is_done).await
    }

    /// Waits until an object that is done has been seen in every cluster's namespace.
    async fn seen_everywhere<K: Resource>(
        &self,
        objects: impl futures::Stream<Item = watcher::Result<K>>,
        is_done: impl Fn(&K) -> bool,
    ) -> Result<()> {
        let mut objects = pin!(objects);
        let mut done = BTreeSet::new();
        while done.len() < self.clusters.len() {
            let object = objects.try_next().await?.context("the watch ended")?;
            if is_done(&object) {
                done.insert(object.namespace());
            }
        }
        Ok(())
    }
}
