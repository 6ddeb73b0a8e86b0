//! Faults between agent or hub and their API servers: everything converges, nothing is lost, and nothing is left behind.

use std::time::Duration;

use anyhow::Context as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use ocm_api::work::v1::AppliedManifestWork;
use ocm_hub::HubConfig;
use ocm_testing::{
    Seen, eventually,
    fault::{Asked, Fault, FaultyServer, Injection},
    unique,
};
use serde_json::json;

use crate::{
    fleet::Fleet,
    world::{Agent, World, config_map, run_hub, world},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_joins_and_is_available_although_its_version_cannot_be_read() -> anyhow::Result<()> {
    let (world, cluster) = (world().await?, unique("versionless"));
    let managed = FaultyServer::start(world.managed_plane).await?;
    let forbidden = || Fault::new(Injection::answer(403, "Forbidden")).when(|asked| asked.path == "/version");
    managed.inject(forbidden().times(usize::MAX));
    let through = |kubeconfig| managed.reached_through(kubeconfig);
    let mut agent = world.start_agent_through(&cluster, |kubeconfig| kubeconfig, through).await?;
    world.admit(&cluster).await?;
    let version =
        async || anyhow::Ok(world.clusters().get(&cluster).await?.status.and_then(|it| it.version.kubernetes));
    assert_eq!(version().await?, None);
    managed.heal();
    eventually("the version is reported", || async { anyhow::Ok(version().await?.is_some()) }).await?;
    agent.stop().await
}

/// An agent that reaches the hub and its own cluster through servers that inject faults.
struct Troubled {
    world: World,
    agent: Agent,
    servers: [FaultyServer; 2],
}

impl Troubled {
    async fn start(faults: &[Fault]) -> anyhow::Result<Self> {
        let world = world().await?;
        let hub = FaultyServer::start(world.hub_plane).await?;
        let managed = FaultyServer::start(world.managed_plane).await?;
        for fault in faults {
            hub.inject(fault.clone());
            managed.inject(fault.clone());
        }
        let through = |kubeconfig, server: &FaultyServer| server.reached_through(kubeconfig);
        let agent = world
            .start_agent_through(
                &unique("troubled"),
                |kubeconfig| through(kubeconfig, &hub),
                |kubeconfig| through(kubeconfig, &managed),
            )
            .await?;
        Ok(Self { world, agent, servers: [hub, managed] })
    }

    /// Joins; then works and an add-on are created, updated and deleted.
    async fn live(mut self) -> anyhow::Result<()> {
        let cluster = self.agent.cluster.clone();
        self.world.admit(&cluster).await?;
        let works = [unique("stays"), unique("changes"), unique("goes")];
        for work in &works {
            self.world.create_work(&cluster, work, json!([config_map(work, json!({"a": "1"}))])).await?;
        }
        for work in &works {
            self.world.work_is_available(&cluster, work).await?;
        }
        let update = json!({"spec": {"workload": {"manifests": [config_map(&works[1], json!({"a": "2"}))]}}});
        self.world.works(&cluster).patch(&works[1], &PatchParams::default(), &Patch::Merge(update)).await?;
        self.world.works(&cluster).delete(&works[2], &DeleteParams::default()).await?;
        self.world.work_is_available(&cluster, &works[1]).await?;
        self.world.work_is_gone(&cluster, &works[2]).await?;
        self.nothing_is_lost_or_left(&works).await?;
        self.addon_lives().await?;
        let left: usize = self.servers.iter().map(FaultyServer::outstanding).sum();
        assert_eq!(left, 0, "every fault has happened");
        self.agent.stop().await
    }

    async fn addon_lives(&self) -> anyhow::Result<()> {
        let (world, cluster, name) = (&self.world, &self.agent.cluster, unique("addon"));
        let first = world.create_addon(cluster, &name).await?;
        world.addon_is_served(cluster, &name, &first).await?;
        let second = world.addon_namespace().await?;
        world.manage_addon(cluster, &name, json!({"namespace": second})).await?;
        world.addon_is_served(cluster, &name, &second).await?;
        world.addon_secret_is_gone(&first, &name).await?;
        world.addons(cluster).delete(&name, &DeleteParams::default()).await?;
        world.addon_secret_is_gone(&second, &name).await
    }

    async fn nothing_is_lost_or_left(&self, works: &[String; 3]) -> anyhow::Result<()> {
        let values = self.world.config_map_values(works).await?;
        assert_eq!(values, [Some("1".to_owned()), Some("2".to_owned()), None]);
        eventually("there is a record of every work and no other", || async {
            let records = kube::Api::<AppliedManifestWork>::all(self.world.managed.clone());
            let records = records.list(&ListParams::default()).await?.items;
            let mut of_these: Vec<_> = records.into_iter().map(|record| record.spec.manifest_work_name).collect();
            of_these.retain(|work| works.contains(work));
            of_these.sort();
            let mut expected = works[..2].to_vec();
            expected.sort();
            anyhow::Ok(if of_these == expected { Seen::Settled(()) } else { Seen::NotYet(format!("{of_these:?}")) })
        })
        .await
    }
}

async fn survives(faults: &[Fault]) -> anyhow::Result<()> {
    Troubled::start(faults).await?.live().await
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_observed_and_planned_again() -> anyhow::Result<()> {
    survives(&[Fault::new(Injection::answer(409, "Conflict")).when(Asked::is_write).times(8)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_a_busy_server_rejects_is_retried() -> anyhow::Result<()> {
    let busy = Injection::Answer { code: 429, reason: "TooManyRequests", retry_after: Some(1) };
    survives(&[Fault::new(busy).times(8)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_fails_is_retried() -> anyhow::Result<()> {
    survives(&[Fault::new(Injection::answer(500, "InternalError")).times(12)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_response_is_lost_has_its_effect_once() -> anyhow::Result<()> {
    let lost = Injection::LoseAnswer { code: 504, reason: "Timeout" };
    survives(&[Fault::new(lost).when(Asked::is_write).times(6)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_closed_are_opened_again() -> anyhow::Result<()> {
    survives(&[Fault::new(Injection::Cut).times(10)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_that_are_truncated_are_read_again() -> anyhow::Result<()> {
    survives(&[Fault::new(Injection::CutAfter(150)).times(10)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_may_repeat_and_delay_events() -> anyhow::Result<()> {
    survives(&[
        Fault::new(Injection::RepeatEvents).when(Asked::is_watch).times(2),
        Fault::new(Injection::DelayEvents(Duration::from_millis(300))).when(Asked::is_watch).times(2),
    ])
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_lost_with_their_watch_come_with_the_relist() -> anyhow::Result<()> {
    survives(&[
        Fault::new(Injection::LoseEvents(1)).when(Asked::is_watch).times(2),
        Fault::new(Injection::Expire).when(Asked::is_watch).times(2),
    ])
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_without_a_response_is_retried() -> anyhow::Result<()> {
    survives(&[Fault::new(Injection::Hang).when(Asked::is_read)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_stops_in_the_middle_is_read_again() -> anyhow::Result<()> {
    survives(&[Fault::new(Injection::StallAfter(100)).when(Asked::is_read)]).await
}

/// For each fault a hub is started, so that the fault hits its first reads, and its writes.
#[tokio::test(flavor = "multi_thread")]
async fn placements_are_scheduled_despite_every_fault_between_the_hub_and_its_server() -> anyhow::Result<()> {
    let world = World::without_hub().await?;
    let fleet = Fleet::new(&world).await?;
    let busy = Injection::Answer { code: 429, reason: "TooManyRequests", retry_after: Some(1) };
    let lost = Injection::LoseAnswer { code: 504, reason: "Timeout" };
    for faults in [
        vec![
            writing(Injection::answer(409, "Conflict")).times(4),
            reading(Injection::answer(500, "InternalError")),
            writing(Injection::answer(500, "InternalError")).times(2),
            writing(busy),
        ],
        vec![
            writing(lost).times(2),
            reading(Injection::Cut),
            writing(Injection::Cut),
            reading(Injection::CutAfter(150)),
            writing(Injection::CutAfter(150)).times(2),
        ],
        vec![watching(Injection::LoseEvents(1)).times(4), watching(Injection::Expire).times(2)],
    ] {
        let what = format!("{faults:?}");
        placement_survives(&world, &fleet, faults).await.context(what)?;
    }
    Ok(())
}

fn reading(injection: Injection) -> Fault {
    Fault::new(injection).when(Asked::is_read)
}

fn writing(injection: Injection) -> Fault {
    Fault::new(injection).when(Asked::is_write)
}

fn watching(injection: Injection) -> Fault {
    Fault::new(injection).when(Asked::is_watch)
}

/// A hub whose requests for placements and decisions fail reconciles a placement from its creation to its deletion.
async fn placement_survives(world: &World, fleet: &Fleet, faults: Vec<Fault>) -> anyhow::Result<()> {
    let server = FaultyServer::start(world.hub_plane).await?;
    for fault in faults {
        server.inject(fault.when(|asked| asked.is_about("placements") || asked.is_about("placementdecisions")));
    }
    let hub = run_hub(&server.reached_through(world.hub_identity().await?), HubConfig::default()).await?;
    fleet.is_known().await?;
    fleet.life_of_a_placement().await?;
    assert_eq!(server.outstanding(), 0, "every fault has happened");
    hub.stop().await;
    Ok(())
}
