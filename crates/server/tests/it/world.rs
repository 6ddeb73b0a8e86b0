//! The environment of the tests: a hub that runs, agents that tests start, an administrator.

mod agent;

use anyhow::Result;
use k8s_openapi::api::{
    certificates::v1::CertificateSigningRequest,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Namespace},
    rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding},
};
use kube::{
    Api, Client, Config,
    api::{ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use ocm_api::{
    cluster::v1::ManagedCluster,
    conditions,
    crds::{self, Side},
    labels, leases, namespaces, rbac,
    work::v1::ManifestWork,
};
use ocm_apimachinery::yaml;
use ocm_hub::{Hub, HubConfig};
use ocm_runtime::{client::Endpoint, conditions::find};
use ocm_testing::{ControlPlane, Seen, TempDir, eventually, fixture, unique, write_kubeconfig};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

pub(crate) use self::agent::Agent;

pub(crate) const HUB_MANIFESTS: &str = include_str!("../../../../deploy/hub.yaml");
pub(crate) const AGENT_MANIFESTS: &str = include_str!("../../../../deploy/agent.yaml");
pub(crate) const HUB_ACCOUNT: &str = "hub-controller-sa";
pub(crate) const AGENT_ACCOUNT: &str = "klusterlet-work-sa";

/// A running hub and a managed cluster, with the clients of their administrators.
pub(crate) struct World {
    pub(crate) hub_plane: &'static ControlPlane,
    pub(crate) managed_plane: &'static ControlPlane,
    pub(crate) hub: Client,
    pub(crate) managed: Client,
}

static STARTED: OnceCell<()> = OnceCell::const_new();

/// The world that all tests share.
pub(crate) async fn world() -> Result<World> {
    let planes = fixture::get();
    STARTED
        .get_or_try_init(|| async {
            install(planes.hub, planes.managed1).await?;
            let kubeconfig = planes.hub.kubeconfig_for_service_account(namespaces::HUB, HUB_ACCOUNT).await?;
            // On the fixture's runtime, since that of a test ends with it.
            fixture::runtime().spawn(async move { run_hub(&kubeconfig, HubConfig::default()).await }).await??;
            anyhow::Ok(())
        })
        .await?;
    World::of(planes.hub, planes.managed1).await
}

impl World {
    pub(crate) async fn of(hub: &'static ControlPlane, managed: &'static ControlPlane) -> Result<Self> {
        let clients = (hub.client().await?, managed.client().await?);
        Ok(Self { hub_plane: hub, managed_plane: managed, hub: clients.0, managed: clients.1 })
    }

    /// A world of its own for a test that breaks it, with a hub that ends with the test.
    pub(crate) async fn alone() -> Result<(Self, ocm_runtime::Context)> {
        Self::alone_with(HubConfig::default()).await
    }

    /// Like [`alone`](Self::alone), with another configuration of the hub.
    pub(crate) async fn alone_with(config: HubConfig) -> Result<(Self, ocm_runtime::Context)> {
        let (hub, managed) = tokio::try_join!(start_plane(), start_plane())?;
        install(hub, managed).await?;
        let kubeconfig = hub.kubeconfig_for_service_account(namespaces::HUB, HUB_ACCOUNT).await?;
        let context = run_hub(&kubeconfig, config).await?;
        Ok((Self::of(hub, managed).await?, context))
    }

    /// A control plane of its own that is ready for a hub, without one. It has no managed cluster.
    pub(crate) async fn without_hub() -> Result<Self> {
        let plane = start_plane().await?;
        install_on(plane, Side::Hub, HUB_MANIFESTS).await?;
        Self::of(plane, plane).await
    }

    /// The kubeconfig that a hub runs with.
    pub(crate) async fn hub_identity(&self) -> Result<Kubeconfig> {
        self.hub_plane.kubeconfig_for_service_account(namespaces::HUB, HUB_ACCOUNT).await
    }

    /// The same hub with another managed cluster.
    pub(crate) async fn with_another_managed_cluster(&self) -> Result<Self> {
        let managed = start_plane().await?;
        install_on(managed, Side::Managed, AGENT_MANIFESTS).await?;
        Self::of(self.hub_plane, managed).await
    }

    pub(crate) fn clusters(&self) -> Api<ManagedCluster> {
        Api::all(self.hub.clone())
    }

    pub(crate) fn works(&self, cluster: &str) -> Api<ManifestWork> {
        Api::namespaced(self.hub.clone(), cluster)
    }

    /// Starts an agent for a cluster that the hub does not know.
    pub(crate) async fn start_agent(&self, cluster: &str) -> Result<Agent> {
        self.start_agent_through(cluster, |kubeconfig| kubeconfig, |kubeconfig| kubeconfig).await
    }

    /// Starts an agent with changed kubeconfigs for the hub and for its own cluster.
    pub(crate) async fn start_agent_through(
        &self,
        cluster: &str,
        to_hub: impl Fn(Kubeconfig) -> Kubeconfig,
        to_managed: impl Fn(Kubeconfig) -> Kubeconfig,
    ) -> Result<Agent> {
        let dir = TempDir::new(cluster)?;
        let bootstrap = dir.path().join("bootstrap.kubeconfig");
        let (kubeconfig, own, namespace) = self.agent_identity().await?;
        write_kubeconfig(&to_hub(kubeconfig), &bootstrap)?;
        let own = to_managed(own);
        Agent::start_new(cluster, namespace, bootstrap, own, dir).await
    }

    /// The bootstrap kubeconfig of a new agent, the kubeconfig for its own cluster, and a namespace of its own there for its
    /// credentials.
    pub(crate) async fn agent_identity(&self) -> Result<(Kubeconfig, Kubeconfig, String)> {
        let account = rbac::BOOTSTRAP_SERVICE_ACCOUNT;
        let bootstrap = self.hub_plane.kubeconfig_for_service_account(namespaces::OPERATOR, account).await?;
        let namespace = unique("agent");
        self.managed_plane.kubectl(&["create", "namespace", &namespace]).await?;
        allow_secrets(self.managed_plane, &namespace).await?;
        let own = self.managed_plane.kubeconfig_for_service_account(namespaces::AGENT, AGENT_ACCOUNT).await?;
        Ok((bootstrap, own, namespace))
    }

    /// Creates a cluster that is accepted from the start.
    pub(crate) async fn create_cluster(&self, name: &str) -> Result<()> {
        let cluster = ManagedCluster::new(name, serde_json::from_value(json!({"hubAcceptsClient": true}))?);
        self.clusters().create(&PostParams::default(), &cluster).await?;
        Ok(())
    }

    /// Waits until an accepted cluster has its namespace, RBAC objects, lease and taint.
    pub(crate) async fn is_accepted_with_rights(&self, cluster: &str) -> Result<()> {
        eventually("the cluster is accepted", || self.cluster_condition(cluster, conditions::cluster::HUB_ACCEPTED))
            .await?;
        Api::<Namespace>::all(self.hub.clone()).get(cluster).await?;
        Api::<ClusterRoleBinding>::all(self.hub.clone()).get(&rbac::cluster_role(cluster)).await?;
        let bindings = Api::<RoleBinding>::namespaced(self.hub.clone(), cluster);
        for name in [rbac::registration_role_binding(cluster), rbac::work_role_binding(cluster)] {
            bindings.get(&name).await?;
        }
        eventually("the cluster has its lease and its taint", || async {
            let lease = Api::<Lease>::namespaced(self.hub.clone(), cluster).get_opt(leases::MANAGED_CLUSTER).await?;
            let taints = self.clusters().get(cluster).await?.spec.taints;
            anyhow::Ok(lease.is_some() && taints.len() == 1)
        })
        .await
    }

    /// Waits until a deleted cluster and its RBAC objects are gone.
    pub(crate) async fn has_left_nothing(&self, cluster: &str) -> Result<()> {
        eventually("the cluster and its rights are gone", || async {
            let gone = self.clusters().get_opt(cluster).await?.is_none();
            let role = Api::<ClusterRole>::all(self.hub.clone()).get_opt(&rbac::cluster_role(cluster)).await?;
            let bindings = Api::<RoleBinding>::namespaced(self.hub.clone(), cluster);
            let left = bindings.list(&ListParams::default()).await?.items.len();
            let settled = gone && role.is_none() && left == 0;
            anyhow::Ok(if settled {
                Seen::Settled(())
            } else {
                Seen::NotYet(format!("gone: {gone}, bindings: {left}"))
            })
        })
        .await
    }

    /// Joins a new cluster, and waits until it is Available.
    pub(crate) async fn join(&self) -> Result<Agent> {
        let agent = self.start_agent(&unique("cluster")).await?;
        self.admit(&agent.cluster).await?;
        Ok(agent)
    }

    /// Accepts a cluster, and approves its certificate requests until it is available.
    pub(crate) async fn admit(&self, cluster: &str) -> Result<()> {
        self.accept(cluster).await?;
        eventually("the cluster is available", || async {
            self.approve_all(cluster).await?;
            self.cluster_condition(cluster, conditions::cluster::AVAILABLE).await
        })
        .await
    }

    /// Waits until the hub has removed the taint that a cluster has until its agent reports.
    pub(crate) async fn cluster_is_reachable(&self, cluster: &str) -> Result<()> {
        eventually("the taint of an unreachable cluster is gone", || async {
            anyhow::Ok(self.clusters().get(cluster).await?.spec.taints.is_empty())
        })
        .await
    }

    pub(crate) async fn accept(&self, cluster: &str) -> Result<()> {
        let accept = json!({"spec": {"hubAcceptsClient": true}});
        eventually("the cluster can be accepted", || async {
            let patched = self.clusters().patch(cluster, &PatchParams::default(), &Patch::Merge(&accept)).await;
            patched.map(|_| true)
        })
        .await
    }

    pub(crate) async fn requests(&self, cluster: &str) -> Result<Vec<CertificateSigningRequest>> {
        let api: Api<CertificateSigningRequest> = Api::all(self.hub.clone());
        let of_cluster = ListParams::default().labels(&format!("{}={cluster}", labels::CLUSTER_NAME));
        Ok(api.list(&of_cluster).await?.items)
    }

    /// Approves all pending certificate requests of a cluster.
    pub(crate) async fn approve_all(&self, cluster: &str) -> Result<()> {
        let api: Api<CertificateSigningRequest> = Api::all(self.hub.clone());
        let approved = json!({"type": "Approved", "status": "True", "reason": "Test", "message": "approved by a test"});
        let patch = Patch::Merge(json!({"status": {"conditions": [approved]}}));
        for request in self.requests(cluster).await? {
            let decided = request.status.as_ref().is_some_and(|status| status.conditions.is_some());
            if let (false, Some(name)) = (decided, &request.metadata.name) {
                api.patch_approval(name, &PatchParams::default(), &patch).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn cluster_condition(&self, cluster: &str, type_: &str) -> Result<Seen<()>> {
        let cluster = self.clusters().get(cluster).await?;
        let conditions = cluster.status.map(|status| status.conditions).unwrap_or_default();
        Ok(match find(&conditions, type_) {
            Some(condition) if condition.status == "True" => Seen::Settled(()),
            other => Seen::NotYet(format!("{type_}: {other:?}")),
        })
    }

    /// Creates a work with these manifests.
    pub(crate) async fn create_work(&self, cluster: &str, name: &str, manifests: Value) -> Result<ManifestWork> {
        self.create_work_with(cluster, name, json!({"workload": {"manifests": manifests}})).await
    }

    pub(crate) async fn create_work_with(&self, cluster: &str, name: &str, spec: Value) -> Result<ManifestWork> {
        let work = json!({"metadata": {"name": name, "namespace": cluster}, "spec": spec});
        let work: ManifestWork = serde_json::from_value(work)?;
        Ok(self.works(cluster).create(&PostParams::default(), &work).await?)
    }

    /// Waits until a condition of the current generation of a work has this status. Returns the work.
    pub(crate) async fn work_is(&self, cluster: &str, name: &str, type_: &str, status: &str) -> Result<ManifestWork> {
        eventually(&format!("{type_} of work {name} is {status}"), || async {
            let work = self.works(cluster).get(name).await?;
            let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
            let found = find(conditions, type_);
            let settled = found
                .is_some_and(|found| found.status == status && found.observed_generation == work.metadata.generation);
            let seen = format!("{found:?}");
            anyhow::Ok(if settled { Seen::Settled(work) } else { Seen::NotYet(seen) })
        })
        .await
    }

    pub(crate) async fn work_is_available(&self, cluster: &str, name: &str) -> Result<ManifestWork> {
        self.work_is(cluster, name, conditions::work::APPLIED, "True").await?;
        self.work_is(cluster, name, conditions::work::AVAILABLE, "True").await
    }

    /// The values of key `a` in ConfigMaps of the managed cluster; `None` if the ConfigMap does not exist.
    pub(crate) async fn config_map_values(&self, names: &[String]) -> Result<Vec<Option<String>>> {
        let config_maps = Api::<ConfigMap>::namespaced(self.managed.clone(), "default");
        let mut values = Vec::new();
        for name in names {
            let found = config_maps.get_opt(name).await?;
            values.push(found.map(|found| found.data.unwrap_or_default().remove("a").unwrap_or_default()));
        }
        Ok(values)
    }

    pub(crate) async fn work_is_gone(&self, cluster: &str, name: &str) -> Result<()> {
        eventually(&format!("work {name} is gone"), || async {
            let work = self.works(cluster).get_opt(name).await?;
            anyhow::Ok(work.map_or(Seen::Settled(()), |work| Seen::NotYet(format!("{:?}", work.status))))
        })
        .await
    }
}

/// The agent's rights to secrets are for its own namespace, and each agent of the tests has another one.
async fn allow_secrets(plane: &ControlPlane, namespace: &str) -> Result<()> {
    let account = format!("--serviceaccount={}:{AGENT_ACCOUNT}", namespaces::AGENT);
    plane.kubectl(&["create", "role", "agent", "--verb=*", "--resource=secrets", "-n", namespace]).await?;
    plane.kubectl(&["create", "rolebinding", "agent", "--role=agent", &account, "-n", namespace]).await?;
    Ok(())
}

/// A control plane for one test.
async fn start_plane() -> Result<&'static ControlPlane> {
    let plane = ControlPlane::builder().audit(true).start().await?;
    // It is never dropped: its processes end with this one.
    Ok(Box::leak(Box::new(plane)))
}

async fn install(hub: &ControlPlane, managed: &ControlPlane) -> Result<()> {
    install_on(hub, Side::Hub, HUB_MANIFESTS).await?;
    install_on(managed, Side::Managed, AGENT_MANIFESTS).await
}

pub(crate) async fn install_on(plane: &ControlPlane, side: Side, manifests: &str) -> Result<()> {
    let crds = crds::all()?.into_iter().filter(|crd| crd.side == side);
    let crds = crds.map(|crd| yaml::to_string(&crd.definition)).collect::<Result<Vec<_>, _>>()?;
    plane.install(&crds.join("---\n"), manifests).await
}

pub(crate) async fn run_hub(kubeconfig: &Kubeconfig, config: HubConfig) -> Result<ocm_runtime::Context> {
    let context = ocm_runtime::Context::new();
    let client = endpoint(kubeconfig).await?.client("ocm-hub/test")?;
    Hub::start(&context, client, config)?;
    Ok(context)
}

pub(crate) async fn endpoint(kubeconfig: &Kubeconfig) -> Result<Endpoint> {
    ocm_runtime::client::install_crypto_provider();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await?;
    Ok(Endpoint::new(&config)?)
}

/// A ConfigMap as a manifest.
#[expect(clippy::needless_pass_by_value, reason = "so that tests can write config_map(\"a\", json!({}))")]
pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data})
}

/// Whether a request was answered with 403.
pub(crate) fn is_forbidden<T: std::fmt::Debug>(answer: &kube::Result<T>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 403)
}
