//! Replica sets while requests fail, answers and events are lost, and hubs are killed: no cluster gets a second work.
//!
//! The hub reaches a control plane of its own through a server that lets things go wrong.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Result;
use kube::{Config, ResourceExt as _, config::KubeConfigOptions};
use ocm_hub::{Hub, HubConfig, feature_gates};
use ocm_runtime::{Context, feature_gates::FeatureGates};
use ocm_testing::{
    AuditLog, ControlPlane, Write, eventually,
    fault::{Asked, Fault, FaultyServer, Injection},
};
use serde_json::json;

use crate::{
    replica_set_world::{ReplicaSetWorld, all, spec},
    support::{ACCOUNT, NAMESPACE, context, install},
};

/// A control plane behind a faulty server.
struct Troubled {
    server: FaultyServer,
    world: ReplicaSetWorld,
    audit: AuditLog,
    plane: ControlPlane,
    /// Of the webhook.
    _context: Context,
}

impl Troubled {
    async fn start() -> Result<Self> {
        let (plane, context) = (ControlPlane::builder().name("set-faults").audit(true).start().await?, context());
        install(&plane, &context).await?;
        let server = FaultyServer::start(&plane).await?;
        let (world, audit) = (ReplicaSetWorld::on(plane.client().await?).await?, AuditLog::of(&plane)?);
        Ok(Self { server, world, audit, plane, _context: context })
    }

    /// Starts a hub, which runs until its context ends.
    async fn hub(&self) -> Result<Context> {
        let kubeconfig = self.plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT).await?;
        let gates = FeatureGates::parse(&feature_gates::known(), &["ManifestWorkReplicaSet=true".into()])?;
        let kubeconfig = self.server.reached_through(kubeconfig);
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        // As the program has it: kube's own repeats writes after 503 and 504.
        let (client, context) = (ocm_runtime::client::connect(&config, "ocm-hub")?, context());
        Hub::start(&context, client, HubConfig { gates, ..HubConfig::default() })?;
        Ok(context)
    }

    /// Lets creations of works go wrong.
    fn inject_creations(&self, injection: Injection, times: usize) {
        let is_creation = |asked: &Asked| asked.method.as_str() == "POST" && asked.is_about("manifestworks");
        self.server.inject(Fault::new(injection).when(is_creation).times(times));
    }

    async fn wait_for_all(&self, set: &str, clusters: &[String], value: &str) -> Result<()> {
        let expected: Vec<_> = clusters.iter().map(|cluster| (cluster.as_str(), "p", value)).collect();
        self.world.wait_for_works(set, &expected).await.map(|_| ())
    }

    /// How many works hubs have created on these clusters, also those that were deleted since.
    fn created(&self, clusters: &[String]) -> Result<usize> {
        let hub = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
        let is_creation = |write: &&Write| {
            write.user == hub && write.to_string() == "create manifestworks" && clusters.contains(&write.namespace)
        };
        Ok(self.audit.all()?.iter().filter(is_creation).filter(|write| write.is_done()).count())
    }

    async fn uids(&self, set: &str) -> Result<BTreeSet<String>> {
        Ok(self.world.works(set).await?.into_iter().filter_map(|work| work.uid()).collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_makes_no_second_work_even_if_the_watch_is_late() -> Result<()> {
    let troubled = Troubled::start().await?;
    let late = |asked: &Asked| asked.is_watch() && asked.is_about("manifestworks");
    let delay = Injection::DelayEvents(Duration::from_millis(1500));
    troubled.server.inject(Fault::new(delay).when(late).times(usize::MAX));
    let hub = troubled.hub().await?;
    let clusters = troubled.world.clusters(5).await?;
    troubled.world.choose("p", &clusters).await?;
    troubled.inject_creations(Injection::LoseAnswer { code: 500, reason: "InternalError" }, 3);
    troubled.inject_creations(Injection::LoseAnswer { code: 504, reason: "Timeout" }, 2);
    troubled.world.create("s", "1", &[("p", all())]).await?;
    troubled.wait_for_all("s", &clusters, "1").await?;
    troubled.world.settle().await?;
    assert_eq!(troubled.created(&clusters)?, clusters.len());
    hub.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn works_that_a_former_leader_has_just_created_are_found_before_the_watch_brings_them() -> Result<()> {
    let troubled = Troubled::start().await?;
    let late = |asked: &Asked| asked.is_watch() && asked.is_about("manifestworks");
    troubled.server.inject(Fault::new(Injection::DelayEvents(Duration::from_secs(5))).when(late).times(usize::MAX));
    let hub = troubled.hub().await?;
    let clusters = troubled.world.clusters(2).await?;
    troubled.world.create("s", "1", &[("p", all())]).await?;
    troubled.world.wait_for_condition("s", "PlacementVerified", "False PlacementDecisionNotFound").await?;
    for cluster in &clusters {
        troubled.world.create_work(cluster, "s", "p", "1").await?;
    }
    troubled.world.choose("p", &clusters).await?;
    troubled.world.wait_for_condition("s", "PlacementVerified", "True AsExpected").await?;
    troubled.world.settle().await?;
    assert_eq!(troubled.created(&clusters)?, 0);
    troubled.wait_for_all("s", &clusters, "1").await?;
    hub.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_killed_while_it_creates_works_leaves_none_out_and_makes_none_twice() -> Result<()> {
    let troubled = Troubled::start().await?;
    let clusters = troubled.world.clusters_of(&troubled).await?;
    for (round, writes) in [2, 3, 4].into_iter().enumerate() {
        let hub = troubled.hub().await?;
        troubled.world.settle().await?;
        let set = format!("s{round}");
        let killed = hub.clone();
        troubled.server.writes().at(writes, move || killed.abort());
        troubled.world.create(&set, "1", &[("p", all())]).await?;
        eventually("the hub is killed", || async { !troubled.server.writes().is_awaiting() }).await?;
        hub.stop().await;
        let before = troubled.uids(&set).await?;
        let hub = troubled.hub().await?;
        troubled.wait_for_all(&set, &clusters, "1").await?;
        assert!(before.is_subset(&troubled.uids(&set).await?), "what was created is kept");
        assert_eq!(troubled.created(&clusters)?, clusters.len() * (round + 1));
        hub.stop().await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_goes_wrong_with_writes_everything_ends_as_desired() -> Result<()> {
    let troubled = Troubled::start().await?;
    let hub = troubled.hub().await?;
    let clusters = troubled.world.clusters(4).await?;
    troubled.world.choose("p", &clusters).await?;
    let spoil = || {
        let is_write = |asked: &Asked| asked.is_write() && asked.path.contains("manifestwork");
        for (code, reason) in [(409, "Conflict"), (429, "TooManyRequests"), (500, "InternalError")] {
            troubled.server.inject(Fault::new(Injection::answer(code, reason)).when(is_write).times(2));
        }
        troubled.server.inject(Fault::new(Injection::LoseAnswer { code: 500, reason: "x" }).when(is_write).times(3));
        troubled.server.inject(Fault::new(Injection::Cut).when(is_write).times(1));
        let is_watch = |asked: &Asked| asked.is_watch() && asked.is_about("manifestworks");
        troubled.server.inject(Fault::new(Injection::LoseEvents(2)).when(is_watch).times(2));
        troubled.server.cut_all();
    };
    spoil();
    troubled.world.create("s", "1", &[("p", all())]).await?;
    troubled.wait_for_all("s", &clusters, "1").await?;
    spoil();
    troubled.world.edit("s", json!({"spec": spec("2", &[("p", all())])})).await?;
    troubled.wait_for_all("s", &clusters, "2").await?;
    spoil();
    troubled.world.choose("p", &clusters[..2]).await?;
    troubled.wait_for_all("s", &clusters[..2], "2").await?;
    spoil();
    troubled.world.delete("s").await?;
    troubled.world.wait_until_gone("s").await?;
    troubled.world.wait_for_works("s", &[]).await?;
    hub.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_that_is_refused_is_named_with_its_cluster_and_retried_while_others_go_on() -> Result<()> {
    let troubled = Troubled::start().await?;
    let hub = troubled.hub().await?;
    let clusters = troubled.world.clusters(2).await?;
    troubled.world.choose("p", &clusters).await?;
    let of_first = format!("/namespaces/{}/manifestworks", clusters[0]);
    let is_first = move |asked: &Asked| asked.is_write() && asked.path.ends_with(&of_first);
    let refusal = Fault::new(Injection::answer(422, "Invalid")).when(is_first).times(usize::MAX);
    troubled.server.inject(refusal);
    troubled.world.create("s", "1", &[("p", all())]).await?;
    troubled.wait_for_all("s", &clusters[1..], "1").await?;
    let message = troubled.world.wait_for_condition("s", "ManifestworkApplied", "False NotAsExpected").await?;
    let expected = format!("The work on cluster {} could not be written: failed to create ManifestWork", clusters[0]);
    assert!(message.starts_with(&expected), "{message}");
    troubled.server.heal();
    troubled.wait_for_all("s", &clusters, "1").await?;
    hub.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_starts_in_the_middle_of_a_rollout_continues_it_and_keeps_its_limits() -> Result<()> {
    let troubled = Troubled::start().await?;
    let clusters = troubled.world.clusters_of(&troubled).await?;
    let one_at_a_time = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
    let hub = troubled.hub().await?;
    troubled.world.create("s", "1", &[("p", one_at_a_time)]).await?;
    let first = troubled.world.wait_for_works("s", &[(&clusters[0], "p", "1")]).await?;
    hub.stop().await;
    let hub = troubled.hub().await?;
    troubled.world.settle().await?;
    troubled.wait_for_all("s", &clusters[..1], "1").await?;
    troubled.world.report(&first[0], crate::replica_set_world::DONE).await?;
    troubled.wait_for_all("s", &clusters[..2], "1").await?;
    hub.stop().await;
    Ok(())
}

impl ReplicaSetWorld {
    /// Three clusters that placement `p` has chosen, set up by a hub that ends before this returns.
    async fn clusters_of(&self, troubled: &Troubled) -> Result<Vec<String>> {
        let hub = troubled.hub().await?;
        let clusters = self.clusters(3).await?;
        self.choose("p", &clusters).await?;
        hub.stop().await;
        Ok(clusters)
    }
}
