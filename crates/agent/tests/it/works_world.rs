//! A hub and a managed cluster for the work half alone, which runs as a user with the rights that a test gives it.

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use ocm_agent::work::{Settings, start};
use ocm_api::{
    components,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_runtime::{
    Context, Informers,
    client::{Endpoint, install_crypto_provider},
    conditions::find,
};
use ocm_testing::{ControlPlane, Seen, eventually, fault::FaultyServer, fixture, unique};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{registration_world::install_crds, running::reconciles};

/// What the agent may do on the managed cluster: everything to its records, and everything but to delete secrets.
const RULES: [[&str; 3]; 7] = [
    [
        "records",
        "*",
        "appliedmanifestworks.work.open-cluster-management.io,appliedmanifestworks.work.open-cluster-management.io/status",
    ],
    [
        "objects",
        "*",
        "configmaps,deployments.apps,jobs.batch,jobs.feedback.example.com,storageclasses.storage.k8s.io,\
         roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io",
    ],
    ["rbac", "list,watch", "clusterroles.rbac.authorization.k8s.io,clusterrolebindings.rbac.authorization.k8s.io"],
    ["reviews", "create", "subjectaccessreviews.authorization.k8s.io"],
    ["executors", "impersonate", "serviceaccounts"],
    ["secrets", "get,list,watch,create,update,patch", "secrets"],
    ["unlisted", "get,create,update,patch", "resourcequotas"],
];

/// A custom resource whose kind is called like a well-known one.
const CUSTOM_JOBS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jobs.feedback.example.com}
spec:
  group: feedback.example.com
  names: {kind: Job, listKind: JobList, plural: jobs, singular: job}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

/// One cluster of the hub, and the namespace of the same name on the managed cluster.
pub(crate) struct WorkWorld {
    pub(crate) cluster: String,
    pub(crate) hub: Client,
    pub(crate) managed: Client,
    settings: Settings,
    pub(crate) context: Context,
    /// Between the agent and the managed cluster.
    server: Option<FaultyServer>,
    /// Between the agent and the hub, which is that of the fixture.
    hub_server: Option<FaultyServer>,
}

impl WorkWorld {
    /// With a running agent.
    pub(crate) async fn new() -> Result<Self> {
        Self::with(|settings| settings).await
    }

    /// With a running agent that has other settings.
    pub(crate) async fn with(change: impl Fn(Settings) -> Settings) -> Result<Self> {
        Self::at(fixture::get().hub, change).await
    }

    /// At a hub of the test's own.
    pub(crate) async fn at(hub: &ControlPlane, change: impl Fn(Settings) -> Settings) -> Result<Self> {
        static READY: OnceCell<()> = OnceCell::const_new();
        install_crypto_provider();
        let fixture = fixture::get();
        READY.get_or_try_init(|| prepare(fixture.hub, fixture.managed1)).await?;
        let cluster = unique("cluster");
        hub.kubectl(&["create", "namespace", &cluster]).await?;
        fixture.managed1.kubectl(&["create", "namespace", &cluster]).await?;
        // An agent for each cluster, and a hub for each agent: they share the records.
        let settings = change(Settings::new(&cluster, &format!("https://hub/{cluster}"), ""));
        let (hub, managed) = (hub.client().await?, fixture.managed1.client().await?);
        let mut world =
            Self { cluster, hub, managed, settings, context: Context::new(), server: None, hub_server: None };
        world.start().await?;
        Ok(world)
    }

    /// Starts the agent again, behind a server that can fail.
    pub(crate) async fn start_behind(&mut self, server: FaultyServer) -> Result<()> {
        self.stop().await;
        self.server = Some(server);
        self.start().await
    }

    /// Starts the agent again, behind servers that can fail on both sides.
    pub(crate) async fn start_between(&mut self, hub: FaultyServer, managed: FaultyServer) -> Result<()> {
        self.hub_server = Some(hub);
        self.start_behind(managed).await
    }

    /// Starts the agent, again after [`stop`](Self::stop).
    pub(crate) async fn start(&mut self) -> Result<()> {
        let agent = fixture::get().managed1.kubeconfig_for_user("work-agent", &["work-agents"])?;
        let agent = match &self.server {
            Some(server) => server.reached_through(agent),
            None => agent,
        };
        self.context = Context::new();
        let hub = match &self.hub_server {
            Some(server) => {
                endpoint(server.reached_through(fixture::get().hub.admin_config())).await?.client("test")?
            }
            None => self.hub.clone(),
        };
        let hub = Informers::new(hub, self.context.clone());
        Ok(start(&self.context, &hub, &endpoint(agent).await?, self.settings.clone())?)
    }

    /// The server before the managed cluster.
    pub(crate) fn server(&self) -> Result<&FaultyServer> {
        self.server.as_ref().context("the agent is behind no server that can fail")
    }

    /// Closes the connections of an agent that is behind a server that can fail.
    pub(crate) fn cut(&self) {
        self.server.iter().for_each(FaultyServer::cut_all);
    }

    pub(crate) async fn stop(&self) {
        self.context.stop().await;
    }

    /// How often a controller of the agent has reconciled successfully.
    pub(crate) fn reconciles(&self, controller: &str) -> u64 {
        reconciles(&self.context, controller)
    }

    /// The metrics of the agent.
    pub(crate) fn metrics(&self) -> String {
        self.context.metrics().encode()
    }

    pub(crate) fn works(&self) -> Api<ManifestWork> {
        Api::namespaced(self.hub.clone(), &self.cluster)
    }

    pub(crate) fn records(&self) -> Api<AppliedManifestWork> {
        Api::all(self.managed.clone())
    }

    pub(crate) fn record_name(&self, work: &str) -> String {
        components::applied_manifest_work_name(&self.settings.hub_hash, work)
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.managed.clone(), &self.cluster)
    }

    /// A manifest in the namespace of this world.
    pub(crate) fn manifest(&self, api_version: &str, kind: &str, name: &str) -> Value {
        let metadata = json!({"name": name, "namespace": self.cluster});
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
    }

    pub(crate) fn config_map(&self, name: &str) -> Value {
        self.manifest("v1", "ConfigMap", name)
    }

    pub(crate) async fn create(&self, work: &str, manifests: Value) -> Result<()> {
        self.create_with(work, json!({"workload": {"manifests": manifests}})).await
    }

    pub(crate) async fn create_with(&self, work: &str, spec: Value) -> Result<()> {
        let work = json!({"metadata": {"name": work, "namespace": self.cluster}, "spec": spec});
        self.works().create(&PostParams::default(), &serde_json::from_value(work)?).await?;
        Ok(())
    }

    pub(crate) async fn edit(&self, work: &str, spec: Value) -> Result<()> {
        self.works().patch(work, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await?;
        Ok(())
    }

    pub(crate) async fn delete(&self, work: &str) -> Result<()> {
        self.works().delete(work, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until a condition of the current generation of a work has that status; returns its message.
    pub(crate) async fn is(&self, work: &str, type_: &str, status: &str) -> Result<String> {
        self.condition_contains(work, type_, status, "").await
    }

    /// Like [`is`](Self::is), and until its message contains a text.
    pub(crate) async fn condition_contains(&self, work: &str, type_: &str, status: &str, text: &str) -> Result<String> {
        eventually(&format!("{type_} of {work} is {status} and contains {text:?}"), || async {
            let found = self.works().get(work).await?;
            let conditions = found.status.unwrap_or_default().conditions;
            let condition = find(&conditions, type_).filter(|condition| {
                condition.status == status
                    && condition.observed_generation == found.metadata.generation
                    && condition.message.contains(text)
            });
            let message = condition.map(|condition| condition.message.clone());
            anyhow::Ok(message.map_or_else(|| Seen::NotYet(format!("{conditions:?}")), Seen::Settled))
        })
        .await
    }

    pub(crate) async fn is_gone(&self, work: &str) -> Result<()> {
        eventually(&format!("{work} is gone"), || async {
            let found = self.works().get_opt(work).await?;
            anyhow::Ok(found.map_or(Seen::Settled(()), |work| Seen::NotYet(format!("{:?}", work.status))))
        })
        .await
    }

    /// Deletes a work whose ConfigMap has the same name: both go. Then stops the agent.
    pub(crate) async fn ends_with(&self, work: &str) -> Result<()> {
        self.delete(work).await?;
        self.is_gone(work).await?;
        assert!(self.config_maps().get_opt(work).await?.is_none(), "the ConfigMap of {work} is left behind");
        self.stop().await;
        Ok(())
    }
}

async fn endpoint(kubeconfig: Kubeconfig) -> Result<Endpoint> {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Endpoint::new(&config)?)
}

async fn prepare(hub: &ControlPlane, managed: &ControlPlane) -> Result<()> {
    install_crds(hub, &["_manifestworks"]).await?;
    install_crds(managed, &["_appliedmanifestworks"]).await?;
    managed.apply_yaml(CUSTOM_JOBS).await?;
    for [name, verbs, resources] in RULES {
        let (name, verbs) = (format!("work-agent-{name}"), format!("--verb={verbs}"));
        let resources = format!("--resource={resources}");
        managed.kubectl(&["create", "clusterrole", &name, &verbs, &resources]).await?;
        let role = format!("--clusterrole={name}");
        managed.kubectl(&["create", "clusterrolebinding", &name, &role, "--group=work-agents"]).await?;
    }
    Ok(())
}
