//! A hub and a managed cluster for one test, and everything the hub would do, done by hand.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use k8s_openapi::api::{
    certificates::v1::CertificateSigningRequest, coordination::v1::Lease, core::v1::Secret, events::v1::Event,
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams},
    config::Kubeconfig,
};
use ocm_agent::{AgentConfig, Components, run};
use ocm_api::{
    cluster::v1::ManagedCluster,
    labels, leases, rbac, secrets,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_runtime::{
    Clock, Context,
    client::{Endpoint, install_crypto_provider},
    kubeconfig,
};
use ocm_testing::{AuditLog, ControlPlane, Part, TempDir, Write, eventually, fixture, unique, write_kubeconfig};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::running::Running;

const CRDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds");
const HUB: &str = include_str!("../../../../deploy/hub.yaml");
const AGENT: &str = include_str!("../../../../deploy/agent.yaml");
/// The names in `deploy/agent.yaml` that every test replaces by its own.
const AGENT_NAMESPACE: &str = "open-cluster-management-agent";
const AGENT_ACCOUNT: &str = "klusterlet-work-sa";

/// One test's part of the shared control planes.
pub(crate) struct World {
    pub(crate) hub: &'static ControlPlane,
    pub(crate) managed: &'static ControlPlane,
    pub(crate) cluster: String,
    /// Where the agent keeps its secrets.
    pub(crate) namespace: String,
    pub(crate) hub_client: Client,
    pub(crate) managed_client: Client,
    pub(crate) dir: TempDir,
    /// The agent's own identity on the cluster it runs on, and on the one it manages: the same one unless that is hosted.
    account: PathBuf,
    account_there: PathBuf,
}

impl World {
    /// On the managed cluster that knows ClusterClaims.
    pub(crate) async fn new() -> Result<Self> {
        static CLAIMS: OnceCell<()> = OnceCell::const_new();
        let fixture = fixture::get();
        CLAIMS.get_or_try_init(|| install_crds(fixture.managed1, &["clusterclaims"])).await?;
        Self::on(fixture.managed1).await
    }

    /// On the managed cluster that knows nothing of OCM.
    pub(crate) async fn bare() -> Result<Self> {
        Self::on(fixture::get().managed2).await
    }

    /// On a managed cluster of its own: what the agents of one hub do to the namespaces of a cluster is the same for all.
    pub(crate) async fn alone() -> Result<Self> {
        // Its processes end with this one; the test is the last to use it.
        Self::on(Box::leak(Box::new(ControlPlane::builder().audit(true).start().await?))).await
    }

    /// On a managed cluster of its own, ready for works: all agents of a cluster see each other's records.
    pub(crate) async fn for_works() -> Result<Self> {
        let world = Self::alone().await?;
        install_crds(world.managed, &["appliedmanifestworks"]).await?;
        Ok(world)
    }

    /// With a hub whose certificates are valid for so long. Much more of their life is in the past: kube-controller-manager
    /// dates them five minutes back.
    pub(crate) async fn with_short_certificates(validity: &str) -> Result<Self> {
        install_crypto_provider();
        let hub =
            ControlPlane::builder().flag(Part::ControllerManager, "cluster-signing-duration", validity).start().await?;
        // Its processes end with this one; the test is the last to use it.
        let hub: &'static ControlPlane = Box::leak(Box::new(hub));
        prepare_hub(hub).await?;
        Self::between(hub, fixture::get().managed1).await
    }

    /// With a hub of its own, for a test that changes how it is reached.
    pub(crate) async fn with_own_hub() -> Result<Self> {
        install_crypto_provider();
        // Its processes end with this one; the test is the last to use it.
        let hub: &'static ControlPlane = Box::leak(Box::new(ControlPlane::builder().audit(true).start().await?));
        prepare_hub(hub).await?;
        Self::between(hub, fixture::get().managed1).await
    }

    /// With a hub that knows no add-ons: the second managed cluster plays it.
    pub(crate) async fn without_addons() -> Result<Self> {
        let fixture = fixture::get();
        install_crypto_provider();
        install_crds(fixture.managed2, &["managedclusters.yaml"]).await?;
        fixture.managed2.apply_yaml(HUB).await?;
        Self::between(fixture.managed2, fixture.managed1).await
    }

    /// Whose agent manages the second managed cluster from the first one; with a client for the second.
    pub(crate) async fn hosted() -> Result<(Self, Client)> {
        let (mut world, managed) = (Self::new().await?, fixture::get().managed2);
        world.account_there = world.dir.path().join("account-there.yaml");
        write_kubeconfig(&account_on(managed, &world.cluster, &world.namespace).await?, &world.account_there)?;
        Ok((world, managed.client().await?))
    }

    async fn on(managed: &'static ControlPlane) -> Result<Self> {
        static READY: OnceCell<()> = OnceCell::const_new();
        install_crypto_provider();
        let hub = fixture::hub();
        READY.get_or_try_init(|| prepare_hub(hub)).await?;
        Self::between(hub, managed).await
    }

    async fn between(hub: &'static ControlPlane, managed: &'static ControlPlane) -> Result<Self> {
        let cluster = unique("cluster");
        let namespace = format!("{cluster}-agent");
        let dir = TempDir::new(&cluster)?;
        let account = dir.path().join("account.yaml");
        write_kubeconfig(&account_on(managed, &cluster, &namespace).await?, &account)?;
        let world = Self {
            hub,
            managed,
            namespace,
            hub_client: hub.client().await?,
            managed_client: managed.client().await?,
            account_there: account.clone(),
            account,
            cluster,
            dir,
        };
        write_kubeconfig(&world.bootstrap().await?, world.bootstrap_path())?;
        Ok(world)
    }

    /// The certificate authority of the managed cluster, PEM in base64.
    pub(crate) fn managed_authority(&self) -> Result<String> {
        let mut kubeconfig = Kubeconfig::read_from(&self.account)?;
        let cluster = kubeconfig.clusters[0].cluster.take().context("no cluster")?;
        cluster.certificate_authority_data.context("no CA")
    }

    pub(crate) async fn bootstrap(&self) -> Result<Kubeconfig> {
        self.hub.kubeconfig_for_service_account("open-cluster-management", rbac::BOOTSTRAP_SERVICE_ACCOUNT).await
    }

    pub(crate) fn bootstrap_path(&self) -> PathBuf {
        self.dir.path().join("bootstrap.yaml")
    }

    pub(crate) fn hub_dir(&self) -> PathBuf {
        self.dir.path().join("hub")
    }

    /// An agent that only registers.
    pub(crate) fn config(&self) -> AgentConfig {
        AgentConfig {
            cluster_name: self.cluster.clone(),
            agent_id: "9hdnf".into(),
            namespace: self.namespace.clone(),
            bootstrap_kubeconfig: Some(self.bootstrap_path()),
            components: Components { registration: true, work: false },
            host: "vm".into(),
            ..AgentConfig::new(self.hub_dir())
        }
    }

    pub(crate) async fn start(&self) -> Result<Running> {
        self.start_with(self.config(), Clock::System).await
    }

    pub(crate) async fn start_with(&self, config: AgentConfig, clock: Clock) -> Result<Running> {
        let context = Context::with_clock(clock);
        let here = Endpoint::new(&kubeconfig::load(Some(&self.account)).await?)?;
        let there = Endpoint::new(&kubeconfig::load(Some(&self.account_there)).await?)?;
        let own = context.clone();
        let task = tokio::spawn(async move { run(&own, &here, &there, config).await });
        Ok(Running { context, task })
    }

    /// An agent that has joined.
    pub(crate) async fn join(&self, config: AgentConfig, clock: Clock) -> Result<Running> {
        let agent = self.start_with(config, clock).await?;
        let request = self.request_count(1).await?.remove(0);
        self.accept().await?;
        self.approve(&request).await?;
        self.condition("ManagedClusterConditionAvailable", "True").await?;
        Ok(agent)
    }

    pub(crate) fn clusters(&self) -> Api<ManagedCluster> {
        Api::all(self.hub_client.clone())
    }

    pub(crate) async fn managed_cluster(&self) -> Result<ManagedCluster> {
        Ok(self.clusters().get(&self.cluster).await?)
    }

    pub(crate) fn works(&self) -> Api<ManifestWork> {
        Api::namespaced(self.hub_client.clone(), &self.cluster)
    }

    /// What agents recorded on the managed cluster.
    pub(crate) fn records(&self) -> Api<AppliedManifestWork> {
        Api::all(self.managed_client.clone())
    }

    pub(crate) fn requests(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.hub_client.clone())
    }

    pub(crate) async fn own_requests(&self) -> Result<Vec<CertificateSigningRequest>> {
        let selector = format!("{}={}", labels::CLUSTER_NAME, self.cluster);
        let mut requests = self.requests().list(&ListParams::default().labels(&selector)).await?.items;
        requests.sort_by_key(|request| request.metadata.creation_timestamp.clone());
        Ok(requests)
    }

    /// Waits until the hub has so many requests of the cluster.
    pub(crate) async fn request_count(&self, count: usize) -> Result<Vec<CertificateSigningRequest>> {
        let what = format!("there are {count} requests of {}", self.cluster);
        eventually(&what, || async {
            Ok::<_, anyhow::Error>(Some(self.own_requests().await?).filter(|all| all.len() == count))
        })
        .await
    }

    pub(crate) async fn approve(&self, request: &CertificateSigningRequest) -> Result<()> {
        self.hub.kubectl(&["certificate", "approve", name(request)]).await.map(|_| ())
    }

    pub(crate) async fn deny(&self, request: &CertificateSigningRequest) -> Result<()> {
        self.hub.kubectl(&["certificate", "deny", name(request)]).await.map(|_| ())
    }

    /// What the hub's controllers do once an admin has set `hubAcceptsClient`.
    pub(crate) async fn accept(&self) -> Result<()> {
        let accept = json!({"spec": {"hubAcceptsClient": true}});
        eventually("the cluster is created", || async { self.clusters().get_opt(&self.cluster).await }).await?;
        self.clusters().patch(&self.cluster, &PatchParams::default(), &Patch::Merge(accept)).await?;
        let yaml = include_str!("registration_accepted.yaml").replace("CLUSTER", &self.cluster);
        self.hub.apply_yaml(&yaml).await?;
        let condition = json!({
            "type": "HubAcceptedManagedCluster", "status": "True", "reason": "HubClusterAdminAccepted",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        self.patch_status(json!({"conditions": [condition]})).await
    }

    pub(crate) async fn patch_status(&self, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({"status": status}));
        self.clusters().patch_status(&self.cluster, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until a condition of the cluster has that status; returns its reason.
    pub(crate) async fn condition(&self, type_: &str, status: &str) -> Result<String> {
        eventually(&format!("{type_} is {status}"), || async {
            let found = self.managed_cluster().await?.status.unwrap_or_default().conditions;
            let found = found.into_iter().find(|condition| condition.type_ == type_ && condition.status == status);
            Ok::<_, anyhow::Error>(found.map(|condition| condition.reason))
        })
        .await
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.managed_client.clone(), &self.namespace)
    }

    pub(crate) async fn secret(&self) -> Result<Option<BTreeMap<String, String>>> {
        let data = self.secrets().get_opt(secrets::HUB_KUBECONFIG).await?.and_then(|secret| secret.data);
        Ok(data
            .map(|data| data.into_iter().map(|(key, value)| (key, String::from_utf8_lossy(&value.0).into())).collect()))
    }

    /// Changes something about the secret that the agent does not care about, so that it looks again.
    pub(crate) async fn touch_secret(&self, key: &str) -> Result<()> {
        let patch = Patch::Merge(json!({"stringData": {key: "x"}}));
        self.secrets().patch(secrets::HUB_KUBECONFIG, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    pub(crate) async fn lease(&self) -> Result<Lease> {
        let leases: Api<Lease> = Api::namespaced(self.hub_client.clone(), &self.cluster);
        Ok(leases.get(leases::MANAGED_CLUSTER).await?)
    }

    pub(crate) async fn events(&self) -> Result<Vec<Event>> {
        let events: Api<Event> = Api::namespaced(self.hub_client.clone(), &self.cluster);
        Ok(events.list(&ListParams::default()).await?.items)
    }

    /// The user of the agent on the hub, once it has joined.
    pub(crate) fn user(&self) -> String {
        format!("system:open-cluster-management:{}:9hdnf", self.cluster)
    }

    /// What the agent wrote to the hub with its own certificate: `verb resource`, sorted.
    pub(crate) fn hub_writes(&self) -> Result<Vec<String>> {
        writes(self.hub, |write| write.user == self.user())
    }

    /// What was written to the hub with the bootstrap identity about this cluster, requests aside: the
    /// audit log does not name an object whose name the server makes.
    pub(crate) fn bootstrap_writes(&self) -> Result<Vec<String>> {
        writes(self.hub, |write| {
            write.user.ends_with(rbac::BOOTSTRAP_SERVICE_ACCOUNT) && write.name.starts_with(&self.cluster)
        })
    }

    /// What the agent wrote to the managed cluster.
    pub(crate) fn managed_writes(&self) -> Result<Vec<String>> {
        let prefix = format!("system:serviceaccount:{}:", self.namespace);
        writes(self.managed, |write| write.user.starts_with(&prefix))
    }
}

/// Gives the agent of a cluster an identity with its rights, under names of its own.
async fn account_on(plane: &ControlPlane, cluster: &str, namespace: &str) -> Result<Kubeconfig> {
    let own = |text: &str| text.replace("klusterlet-", &format!("{cluster}-klusterlet-"));
    plane.apply_yaml(&own(&AGENT.replace(AGENT_NAMESPACE, namespace))).await?;
    plane.kubeconfig_for_service_account(namespace, &own(AGENT_ACCOUNT)).await
}

fn writes(cluster: &ControlPlane, matters: impl Fn(&Write) -> bool) -> Result<Vec<String>> {
    let writes = AuditLog::of(cluster)?.all()?;
    let mut writes: Vec<_> = writes.into_iter().filter(matters).map(|write| write.to_string()).collect();
    writes.sort();
    Ok(writes)
}

pub(crate) fn name(request: &CertificateSigningRequest) -> &str {
    request.metadata.name.as_deref().unwrap_or_default()
}

/// A clock that a test moves, at the machine's time.
#[expect(clippy::disallowed_methods, reason = "certificates are issued by the machine's clock")]
pub(crate) fn clock() -> Clock {
    Clock::manual(jiff::Timestamp::now())
}

pub(crate) fn later(clock: &Clock, by: Duration) {
    clock.set(clock.now() + by);
}

async fn prepare_hub(hub: &ControlPlane) -> Result<()> {
    install_crds(hub, &[""]).await?;
    hub.apply_yaml(HUB).await
}

/// Those whose file names contain one of these.
pub(crate) async fn install_crds(cluster: &ControlPlane, names: &[&str]) -> Result<()> {
    for entry in std::fs::read_dir(CRDS)? {
        let path = entry?.path();
        if names.iter().any(|name| path.to_string_lossy().contains(name)) {
            cluster.apply_yaml(&std::fs::read_to_string(&path)?).await?;
        }
    }
    Ok(())
}
