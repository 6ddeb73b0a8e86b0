//! What the API server refuses, and what happens while it takes its time.
//!
//! The hub reaches a control plane of its own through a server that lets things go wrong.

use anyhow::Result;
use kube::ResourceExt as _;
use ocm_hub::{Hub, HubConfig};
use ocm_runtime::Context;
use ocm_testing::{
    ControlPlane, client_for, eventually,
    fault::{Asked, Fault, FaultyServer, Injection},
    unique,
};
use serde_json::json;

use crate::{
    addon_world::AddonWorld,
    support::{ACCOUNT, NAMESPACE, install},
};

const NOTE: &str = "addon.open-cluster-management.io/note";

/// A hub behind a faulty server, with a placement `p` that has chosen a cluster.
struct Troubled {
    // First, so that it ends before what it talks to.
    context: Context,
    server: FaultyServer,
    world: AddonWorld,
    cluster: String,
    _plane: ControlPlane,
}

impl Troubled {
    async fn start() -> Result<Self> {
        let (plane, context) = (ControlPlane::builder().name("faults").start().await?, Context::new());
        install(&plane, &context).await?;
        let server = FaultyServer::start(&plane).await?;
        let kubeconfig = plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT).await?;
        Hub::start(&context, client_for(&server.reached_through(kubeconfig)).await?, HubConfig::default())?;
        let world = AddonWorld::on(plane.client().await?).await?;
        let cluster = world.cluster("troubled").await?;
        world.create_placement("p").await?;
        world.decide("p", 1, &[&cluster]).await?;
        Ok(Self { context, server, world, cluster, _plane: plane })
    }

    async fn follow(&self, prefix: &str) -> Result<String> {
        let name = unique(prefix);
        self.world.create_management(&name, self.world.following(&["p"])).await?;
        Ok(name)
    }

    /// Lets patches of an add-on go wrong.
    fn refuse(&self, addon: &str, subresource: &str, code: u16, reason: &'static str, times: usize) {
        let path = format!("/managedclusteraddons/{addon}{subresource}");
        let is_patch = move |asked: &Asked| asked.method.as_str() == "PATCH" && asked.path.ends_with(&path);
        self.server.inject(Fault::new(Injection::answer(code, reason)).when(is_patch).times(times));
    }

    /// How often annotations of clusters have been carried.
    fn carried(&self) -> u64 {
        let line = r#"ocm_controller_reconciles_total{controller="addon-annotations",result="success"} "#;
        let metrics = self.context.metrics().encode();
        let count = metrics.lines().find_map(|text| text.strip_prefix(line));
        count.and_then(|count| count.parse().ok()).unwrap_or_default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_addon_that_is_refused_keeps_no_other_from_what_its_cluster_brings() -> Result<()> {
    let troubled = Troubled::start().await?;
    let (world, cluster) = (&troubled.world, &troubled.cluster);
    let (refused, other) = (troubled.follow("a-refused").await?, troubled.follow("b-other").await?);
    world.wait_for_addon(cluster, &refused).await?;
    world.wait_for_addon(cluster, &other).await?;
    for subresource in ["", "/status"] {
        troubled.refuse(&refused, subresource, 422, "Invalid", usize::MAX);
        // It could be tried again after this, which must not be lost for the sake of the first one.
        troubled.refuse(&other, subresource, 409, "Conflict", 1);
    }
    world.annotate(cluster, json!({ NOTE: "x" })).await?;
    world.wait_for_annotation(cluster, &other, NOTE, "x").await?;
    world.set_available(cluster, "Unknown", "LeaseExpired").await?;
    world.wait_for_condition(cluster, &other, "Available", "Unknown", "LeaseExpired").await?;
    assert_eq!(world.addons(cluster).get(&refused).await?.annotations().get(NOTE), None);
    troubled.server.heal();
    world.annotate(cluster, json!({ NOTE: "y" })).await?;
    world.wait_for_annotation(cluster, &refused, NOTE, "y").await?;
    troubled.context.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_cluster_reaches_an_addon_that_is_being_created() -> Result<()> {
    let troubled = Troubled::start().await?;
    let (world, cluster, server) = (&troubled.world, &troubled.cluster, &troubled.server);
    let of_cluster = format!("/namespaces/{cluster}/managedclusteraddons");
    let is_creation = move |asked: &Asked| asked.method.as_str() == "POST" && asked.path.ends_with(&of_cluster);
    server.inject(Fault::new(Injection::Hold).when(is_creation));
    let name = troubled.follow("being-created").await?;
    eventually("the add-on is being created", || async { server.outstanding() == 0 }).await?;
    let before = troubled.carried();
    world.annotate(cluster, json!({ NOTE: "x" })).await?;
    eventually("the hub has carried the change to the add-ons that are there", || async {
        troubled.carried() > before
    })
    .await?;
    server.release();
    world.wait_for_annotation(cluster, &name, NOTE, "x").await?;
    troubled.context.stop().await;
    Ok(())
}
