//! An agent with two hubs: it selects one, switches to the other, and reports why it can use neither.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
    config::Kubeconfig,
};
use ocm_agent::{
    AgentConfig,
    agent::{Hubs, known_gates},
};
use ocm_api::{cluster::v1::ManagedCluster, components, leases, namespaces, rbac, work::v1::AppliedManifestWork};
use ocm_hub::HubConfig;
use ocm_runtime::{Backoff, Clock, feature_gates::FeatureGates};
use ocm_testing::{
    ControlPlane, Seen, TempDir, eventually,
    fault::{Fault, FaultyServer, Injection},
    fixture, unique, write_kubeconfig,
};
use serde_json::json;
use tokio::{sync::OnceCell, task::JoinHandle};

use crate::world::{World, config_map, endpoint, run_hub, world};

/// Another hub for the managed cluster of the world that all tests share.
async fn second_hub(first: &World) -> Result<World> {
    static STARTED: OnceCell<&ControlPlane> = OnceCell::const_new();
    let start = || async {
        let hub = World::without_hub().await?;
        let identity = hub.hub_identity().await?;
        run_hub(&identity, HubConfig::default()).await?;
        anyhow::Ok(hub.hub_plane)
    };
    // On the fixture's runtime, since that of a test ends with it.
    let plane = STARTED.get_or_try_init(|| async { fixture::runtime().spawn(start()).await? }).await?;
    World::of(plane, first.managed_plane).await
}

/// An agent that selects its hub, and proxies to two hubs.
struct Selecting {
    first: World,
    second: World,
    /// The proxies to the hubs, which inject faults.
    ways: [FaultyServer; 2],
    cluster: String,
    namespace: String,
    own: Kubeconfig,
    dir: TempDir,
    files: Vec<PathBuf>,
    clock: Clock,
    running: Option<(ocm_runtime::Context, JoinHandle<Result<()>>)>,
}

impl Selecting {
    async fn new() -> Result<Self> {
        let first = world().await?;
        let second = second_hub(&first).await?;
        let ways = [FaultyServer::start(first.hub_plane).await?, FaultyServer::start(second.hub_plane).await?];
        let (_, own, namespace) = first.agent_identity().await?;
        let cluster = unique("selecting");
        let dir = TempDir::new(&cluster)?;
        let clock = Clock::manual(Clock::System.now());
        let mut agent =
            Self { first, second, ways, cluster, namespace, own, dir, files: Vec::new(), clock, running: None };
        for index in 0..2 {
            let plane = [agent.first.hub_plane, agent.second.hub_plane][index];
            let kubeconfig = agent.ways[index].reached_through(bootstrap(plane).await?);
            agent.add(&format!("hub{index}"), &kubeconfig)?;
        }
        Ok(agent)
    }

    /// Adds a bootstrap kubeconfig to the list.
    fn add(&mut self, name: &str, kubeconfig: &Kubeconfig) -> Result<()> {
        self.files.push(self.dir.path().join(name));
        write_kubeconfig(kubeconfig, &self.files[self.files.len() - 1])
    }

    fn config(&self) -> Result<AgentConfig> {
        let hubs = Hubs {
            bootstrap_kubeconfigs: self.files.clone(),
            check_period: Duration::from_millis(200),
            check_grace: Duration::ZERO,
            retry: Backoff::new(Duration::from_millis(200), Duration::from_secs(1)),
            ..Hubs::default()
        };
        Ok(AgentConfig {
            cluster_name: self.cluster.clone(),
            agent_id: format!("{}-agent", self.cluster),
            namespace: self.namespace.clone(),
            feature_gates: FeatureGates::parse(&known_gates(), &["MultipleHubs=true".to_owned()])?,
            hubs,
            ..AgentConfig::new(self.dir.path().join("credentials"))
        })
    }

    async fn start(&mut self) -> Result<()> {
        let context = ocm_runtime::Context::with_clock(self.clock.clone());
        let (managed, config, own) = (endpoint(&self.own).await?, self.config()?, context.clone());
        let task = tokio::spawn(async move { Ok(ocm_agent::run(&own, &managed, &managed, config).await?) });
        self.running = Some((context, task));
        Ok(())
    }

    async fn stop(&mut self) -> Result<()> {
        let (context, task) = self.running.take().context("the agent does not run")?;
        context.stop().await;
        task.await?
    }

    /// Why the agent is not ready.
    fn awaited(&self) -> String {
        self.running.as_ref().map(|(context, _)| context.health().awaited().join("\n")).unwrap_or_default()
    }

    async fn waits_because_of(&self, causes: &[&str]) -> Result<()> {
        eventually("the agent reports why it can use no hub", || async {
            let awaited = self.awaited();
            let missing: Vec<_> = causes.iter().filter(|cause| !awaited.contains(**cause)).collect();
            if missing.is_empty() { Seen::Settled(()) } else { Seen::NotYet(format!("{missing:?} not in {awaited}")) }
        })
        .await
    }

    /// The server in the agent's own kubeconfig.
    fn own_server(&self) -> Result<String> {
        let mut own = Kubeconfig::read_from(self.dir.path().join("credentials/kubeconfig"))?;
        own.clusters.remove(0).cluster.and_then(|cluster| cluster.server).context("no server")
    }

    fn server_of(&self, index: usize) -> Result<String> {
        let mut kubeconfig = Kubeconfig::read_from(&self.files[index])?;
        kubeconfig.clusters.remove(0).cluster.and_then(|cluster| cluster.server).context("no server")
    }
}

async fn bootstrap(plane: &ControlPlane) -> Result<Kubeconfig> {
    plane.kubeconfig_for_service_account(namespaces::OPERATOR, rbac::BOOTSTRAP_SERVICE_ACCOUNT).await
}

async fn create_refused(world: &World, cluster: &str) -> Result<()> {
    let cluster = ManagedCluster::new(cluster, serde_json::from_value(json!({"hubAcceptsClient": false}))?);
    world.clusters().create(&PostParams::default(), &cluster).await?;
    Ok(())
}

async fn deny(world: &World, cluster: &str) -> Result<()> {
    let denied = json!({"spec": {"hubAcceptsClient": false}});
    world.clusters().patch(cluster, &PatchParams::default(), &Patch::Merge(denied)).await?;
    Ok(())
}

/// Makes the proxy refuse all connections from now on.
fn cut_off(way: &FaultyServer) {
    way.inject(Fault::new(Injection::Cut).times(usize::MAX));
    way.cut_all();
}

/// Waits until the agent has renewed its lease at this time of its clock.
async fn lease_is_renewed(world: &World, agent: &Selecting) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(world.hub.clone(), &agent.cluster);
    let now = agent.clock.now().as_second();
    eventually("the lease is renewed", || async {
        let renewed = leases.get(leases::MANAGED_CLUSTER).await?.spec.and_then(|spec| spec.renew_time);
        anyhow::Ok(renewed.is_some_and(|time| time.0.as_second() == now))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_refuses_the_cluster_is_left_for_one_that_accepts_it_and_its_objects_stay_at_first() -> Result<()> {
    let mut agent = Selecting::new().await?;
    let (cluster, work) = (agent.cluster.clone(), unique("brought"));
    create_refused(&agent.first, &cluster).await?;
    agent.start().await?;
    agent.second.admit(&cluster).await?;
    assert!(agent.first.requests(&cluster).await?.is_empty(), "it does not ask where it is refused");
    agent.second.create_work(&cluster, &work, json!([config_map(&work, json!({"a": "1"}))])).await?;
    agent.second.work_is_available(&cluster, &work).await?;

    deny(&agent.second, &cluster).await?;
    agent.waits_because_of(&["1. https://", "2. https://", &format!("accept --clusters {cluster}")]).await?;
    agent.first.admit(&cluster).await?;
    let requests = agent.first.requests(&cluster).await?;
    let users: Vec<_> = requests.iter().filter_map(|request| request.spec.username.as_deref()).collect();
    assert!(users.iter().all(|user| user.ends_with(rbac::BOOTSTRAP_SERVICE_ACCOUNT)), "{users:?}");
    assert_eq!(agent.own_server()?, agent.server_of(0)?);
    assert!(!agent.awaited().contains("a usable hub"));

    let hash = ocm_agent::work::hub_hash(&agent.server_of(1)?);
    let records: Api<AppliedManifestWork> = Api::all(agent.first.managed.clone());
    eventually("the record of the former hub waits for its eviction", || async {
        let record = records.get(&components::applied_manifest_work_name(&hash, &work)).await?;
        anyhow::Ok(record.status.is_some_and(|status| status.eviction_start_time.is_some()))
    })
    .await?;
    assert_eq!(agent.first.config_map_values(&[work]).await?, [Some("1".to_owned())]);
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_out_of_reach_for_too_long_is_left_and_the_new_one_is_kept_at_a_restart() -> Result<()> {
    let mut agent = Selecting::new().await?;
    let cluster = agent.cluster.clone();
    agent.start().await?;
    agent.first.admit(&cluster).await?;
    lease_is_renewed(&agent.first, &agent).await?;
    assert!(agent.second.clusters().get_opt(&cluster).await?.is_none(), "the first of the list is preferred");

    let start = agent.clock.now();
    cut_off(&agent.ways[0]);
    agent.clock.set(start + Duration::from_secs(700));
    eventually("the agent asks the other hub", || async {
        anyhow::Ok(!agent.second.requests(&cluster).await?.is_empty())
    })
    .await?;
    // Certificates are issued by the machine's clock.
    agent.clock.set(start);
    agent.second.admit(&cluster).await?;

    agent.ways[0].heal();
    agent.stop().await?;
    agent.clock.set(start + Duration::from_secs(5));
    agent.start().await?;
    lease_is_renewed(&agent.second, &agent).await?;
    assert_eq!(agent.own_server()?, agent.server_of(1)?);
    assert_eq!(agent.first.requests(&cluster).await?.len(), 1, "it did not go back");
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn while_no_hub_can_be_used_the_agent_waits_and_names_the_reason_of_each() -> Result<()> {
    let mut agent = Selecting::new().await?;
    let (cluster, plane) = (agent.cluster.clone(), agent.first.hub_plane);
    cut_off(&agent.ways[0]);
    create_refused(&agent.second, &cluster).await?;
    let other_ways =
        [FaultyServer::start(plane).await?, FaultyServer::start(plane).await?, FaultyServer::start(plane).await?];
    let good = bootstrap(plane).await?;
    let mut unknown = other_ways[0].reached_through(good.clone());
    unknown.auth_infos[0].auth_info.as_mut().context("no user")?.token = Some("nonsense".to_owned().into());
    let nobody = unique("nobody");
    plane.kubectl(&["create", "serviceaccount", &nobody, "--namespace=default"]).await?;
    let nobody = other_ways[1].reached_through(plane.kubeconfig_for_service_account("default", &nobody).await?);
    let mut untrusted = other_ways[2].reached_through(good.clone());
    let authority = bootstrap(agent.second.hub_plane).await?.clusters[0].cluster.clone().context("no cluster")?;
    let trusts = untrusted.clusters[0].cluster.as_mut().context("no cluster")?;
    trusts.certificate_authority_data = authority.certificate_authority_data;
    let again = agent.ways[0].reached_through(good);
    for (name, kubeconfig) in [("again", again), ("unknown", unknown), ("nobody", nobody), ("untrusted", untrusted)] {
        agent.add(name, &kubeconfig)?;
    }
    agent.files.push(agent.dir.path().join("missing"));
    agent.start().await?;

    let refused = format!("does not accept cluster {cluster}");
    let expected = [
        "1. https://",
        "the hub cannot be reached: the connection was closed before there was an answer; check firewalls",
        &refused,
        "give one bootstrap kubeconfig for each hub",
        "(401)",
        "may not create managedclusters.cluster.open-cluster-management.io, get managedclusters",
        "its certificate was not issued by the certificate authority that the kubeconfig names; put the server's authority",
        "missing: No such file",
    ];
    agent.waits_because_of(&expected).await?;
    agent.ways[0].heal();
    agent.first.admit(&cluster).await?;
    assert!(!agent.awaited().contains("a usable hub"));
    agent.stop().await
}
