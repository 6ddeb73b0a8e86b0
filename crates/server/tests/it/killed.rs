//! `ocm agent` and `ocm hub` are killed after their n-th write, for every n of a join and of the lives of works and add-ons:
//! started again, they finish, nothing is lost, and nothing is left behind.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use kube::{
    Api,
    api::{DeleteParams, ListParams},
    config::Kubeconfig,
};
use ocm_api::{namespaces, work::v1::AppliedManifestWork};
use ocm_testing::{
    ControlPlane, Process, TempDir, eventually,
    fault::{FaultyServer, WriteCount},
    unique, write_kubeconfig,
};
use serde_json::json;

use crate::world::{World, config_map, world};

/// A program that is killed at a certain write and started again.
struct Mortal {
    start: Box<dyn Fn() -> anyhow::Result<Process> + Send + Sync>,
    writes: WriteCount,
}

impl Mortal {
    /// Runs it until `life` has come true, killing it once, right after its n-th write from now; whether it came to that.
    async fn live<F>(&self, nth: usize, life: F) -> anyhow::Result<bool>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        self.live_after(async { Ok(()) }, nth, |()| life).await
    }

    /// Like [`live`](Self::live), but what it writes before does not count.
    async fn live_after<T, B, F>(&self, before: B, nth: usize, life: impl FnOnce(T) -> F) -> anyhow::Result<bool>
    where
        B: Future<Output = anyhow::Result<T>>,
        F: Future<Output = anyhow::Result<()>>,
    {
        let first = Arc::new((self.start)()?);
        let life = life(before.await?);
        let killed = Arc::new(AtomicBool::new(false));
        let (victim, flag) = (Arc::downgrade(&first), killed.clone());
        self.writes.at(nth, move || {
            flag.store(true, Ordering::SeqCst);
            if let Some(victim) = victim.upgrade() {
                let _ = victim.kill();
            }
        });
        let resurrection = async {
            let _ = first.wait().await;
            let second = (self.start)()?;
            second.wait().await?;
            anyhow::bail!("it ended by itself: {}", second.log_tail())
        };
        tokio::select! {
            outcome = life => outcome?,
            outcome = resurrection => outcome?,
        }
        Ok(killed.load(Ordering::SeqCst))
    }
}

async fn through(
    plane: &'static ControlPlane,
    writes: &WriteCount,
    kubeconfig: Kubeconfig,
) -> anyhow::Result<(FaultyServer, Kubeconfig)> {
    let server = FaultyServer::counting(plane, writes.clone()).await?;
    let kubeconfig = server.reached_through(kubeconfig);
    Ok((server, kubeconfig))
}

/// An agent's process, whose writes to both sides are counted.
struct MortalAgent {
    mortal: Mortal,
    cluster: String,
    _servers: [FaultyServer; 2],
    _folder: TempDir,
}

impl MortalAgent {
    async fn new(world: &World) -> anyhow::Result<Self> {
        let (cluster, writes, folder) = (unique("mortal"), WriteCount::default(), TempDir::new("mortal")?);
        let (bootstrap, own, namespace) = world.agent_identity().await?;
        let (hub, bootstrap) = through(world.hub_plane, &writes, bootstrap).await?;
        let (managed, own) = through(world.managed_plane, &writes, own).await?;
        let file = |name: &str| folder.path().join(name);
        let (bootstrap_file, own_file, hub_dir, log) = (file("bootstrap"), file("own"), file("hub"), file("log"));
        write_kubeconfig(&bootstrap, &bootstrap_file)?;
        write_kubeconfig(&own, &own_file)?;
        let name = cluster.clone();
        let start = move || {
            Process::build("ocm agent", env!("CARGO_BIN_EXE_ocm"), &log)
                .args(["agent", "--disable-leader-election", "--listen", "127.0.0.1:0"])
                .args(["--namespace", &namespace, "--spoke-cluster-name", &name, "--agent-id", &name])
                .arg("--bootstrap-kubeconfig")
                .arg(&bootstrap_file)
                .arg("--kubeconfig")
                .arg(&own_file)
                .arg("--hub-kubeconfig-dir")
                .arg(&hub_dir)
                .start()
        };
        let mortal = Mortal { start: Box::new(start), writes };
        Ok(Self { mortal, cluster, _servers: [hub, managed], _folder: folder })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_any_write_of_its_join_joins_when_it_is_started_again() -> anyhow::Result<()> {
    let world = world().await?;
    for nth in 1.. {
        let agent = MortalAgent::new(&world).await?;
        let came_to_it = agent.mortal.live(nth, world.admit(&agent.cluster)).await?;
        if !came_to_it {
            assert!(nth > 4, "a join takes more than {nth} writes");
            return Ok(());
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_any_write_of_a_works_life_finishes_it() -> anyhow::Result<()> {
    let world = world().await?;
    let agent = MortalAgent::new(&world).await?;
    agent.mortal.live(usize::MAX / 2, world.admit(&agent.cluster)).await?;
    for nth in 1.. {
        let came_to_it = agent.mortal.live(nth, life_of_a_work(&world, &agent.cluster)).await?;
        if !came_to_it {
            assert!(nth > 7, "the life of a work takes more than {nth} writes");
            return Ok(());
        }
    }
    Ok(())
}

async fn life_of_a_work(world: &World, cluster: &str) -> anyhow::Result<()> {
    let (work, first, second) = (unique("work"), unique("first"), unique("second"));
    let manifests = json!([config_map(&first, json!({"a": "1"})), config_map(&second, json!({"a": "2"}))]);
    world.create_work(cluster, &work, manifests).await?;
    world.work_is_available(cluster, &work).await?;
    let names = [first, second];
    assert_eq!(world.config_map_values(&names).await?, [Some("1".to_owned()), Some("2".to_owned())]);
    world.works(cluster).delete(&work, &DeleteParams::default()).await?;
    world.work_is_gone(cluster, &work).await?;
    assert_eq!(world.config_map_values(&names).await?, [None, None]);
    let records = Api::<AppliedManifestWork>::all(world.managed.clone());
    eventually("no record is left behind", || async {
        let records = records.list(&ListParams::default()).await?.items;
        anyhow::Ok(records.iter().all(|record| record.spec.manifest_work_name != work))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_any_write_of_an_addons_beginning_gives_it_its_identity() -> anyhow::Result<()> {
    let world = world().await?;
    let agent = MortalAgent::new(&world).await?;
    agent.mortal.live(usize::MAX / 2, world.admit(&agent.cluster)).await?;
    for nth in 1.. {
        let came_to_it = agent.mortal.live(nth, async { new_addon(&world, &agent.cluster).await.map(|_| ()) }).await?;
        if !came_to_it {
            assert!(nth > 4, "the beginning of an add-on takes more than {nth} writes");
            return Ok(());
        }
    }
    Ok(())
}

/// What happens to an add-on while an agent is down, it cannot know: so it is killed only once it looks after the add-on.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_any_write_while_an_addon_moves_or_goes_leaves_no_secret_behind() -> anyhow::Result<()> {
    let world = world().await?;
    let agent = MortalAgent::new(&world).await?;
    let cluster = &agent.cluster;
    agent.mortal.live(usize::MAX / 2, world.admit(cluster)).await?;
    for nth in 1.. {
        let moves = |(name, first)| move_addon(&world, cluster, name, first);
        if !agent.mortal.live_after(new_addon(&world, cluster), nth, moves).await? {
            assert!(nth > 3, "an add-on's move takes more than {nth} writes");
            break;
        }
    }
    for nth in 1.. {
        let goes = |(name, namespace)| remove_addon(&world, cluster, name, namespace);
        if !agent.mortal.live_after(new_addon(&world, cluster), nth, goes).await? {
            assert!(nth > 1, "an add-on's end takes more than {nth} writes");
            break;
        }
    }
    Ok(())
}

/// Name and namespace of an add-on that has its identity.
async fn new_addon(world: &World, cluster: &str) -> anyhow::Result<(String, String)> {
    let name = unique("addon");
    let namespace = world.create_addon(cluster, &name).await?;
    world.addon_is_served(cluster, &name, &namespace).await?;
    Ok((name, namespace))
}

async fn move_addon(world: &World, cluster: &str, name: String, first: String) -> anyhow::Result<()> {
    let second = world.addon_namespace().await?;
    world.manage_addon(cluster, &name, json!({"namespace": second})).await?;
    world.addon_is_served(cluster, &name, &second).await?;
    world.addon_secret_is_gone(&first, &name).await
}

async fn remove_addon(world: &World, cluster: &str, name: String, namespace: String) -> anyhow::Result<()> {
    world.addons(cluster).delete(&name, &DeleteParams::default()).await?;
    world.addon_secret_is_gone(&namespace, &name).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_killed_at_any_write_of_a_clusters_life_finishes_it() -> anyhow::Result<()> {
    let (world, hub) = World::alone().await?;
    // The hub of this world is the one that gets killed.
    hub.stop().await;
    let writes = WriteCount::default();
    let identity = world.hub_plane.kubeconfig_for_service_account(namespaces::HUB, "hub-controller-sa").await?;
    let (_server, kubeconfig) = through(world.hub_plane, &writes, identity).await?;
    let folder = TempDir::new("mortal-hub")?;
    let (file, log) = (folder.path().join("kubeconfig"), folder.path().join("log"));
    write_kubeconfig(&kubeconfig, &file)?;
    let start = move || {
        Process::build("ocm hub", env!("CARGO_BIN_EXE_ocm"), &log)
            .args(["hub", "--disable-leader-election", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(&file)
            .start()
    };
    let mortal = Mortal { start: Box::new(start), writes };
    for nth in 1.. {
        let came_to_it = mortal.live(nth, life_of_a_cluster(&world)).await?;
        if !came_to_it {
            assert!(nth > 12, "the life of a cluster takes more than {nth} writes");
            return Ok(());
        }
    }
    Ok(())
}

async fn life_of_a_cluster(world: &World) -> anyhow::Result<()> {
    let name = unique("cluster");
    world.create_cluster(&name).await?;
    world.is_accepted_with_rights(&name).await?;
    world.clusters().delete(&name, &DeleteParams::default()).await?;
    world.has_left_nothing(&name).await
}
