//! A hub that is killed while it reconciles clusters.

use kube::api::DeleteParams;
use ocm_testing::{
    Process, TempDir,
    fault::{FaultyServer, WriteCount},
    unique, write_kubeconfig,
};

use super::{Mortal, through};
use crate::world::World;

/// A hub's process, whose writes are counted, on a control plane of its own.
pub(super) struct MortalHub {
    pub(super) mortal: Mortal,
    pub(super) world: World,
    _server: FaultyServer,
    _folder: TempDir,
}

impl MortalHub {
    pub(super) async fn new() -> anyhow::Result<Self> {
        let (world, writes, folder) = (World::without_hub().await?, WriteCount::default(), TempDir::new("mortal-hub")?);
        let (server, kubeconfig) = through(world.hub_plane, &writes, world.hub_identity().await?).await?;
        let (file, log) = (folder.path().join("kubeconfig"), folder.path().join("log"));
        write_kubeconfig(&kubeconfig, &file)?;
        let start = move || {
            Process::build("ocm hub", crate::program::ocm(), &log)
                .args(["hub", "--disable-leader-election", "--listen", "127.0.0.1:0", "--kubeconfig"])
                .arg(&file)
                .start()
        };
        let mortal = Mortal { start: Box::new(start), writes };
        Ok(Self { mortal, world, _server: server, _folder: folder })
    }

    /// Runs it until a condition is met, without killing it.
    pub(super) async fn reach(&self, what: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
        self.mortal.live(usize::MAX / 2, what).await.map(drop)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_killed_at_any_write_of_a_cluster_from_creation_to_deletion_finishes() -> anyhow::Result<()> {
    let MortalHub { mortal, world, .. } = &MortalHub::new().await?;
    for nth in 1.. {
        let came_to_it = mortal.live(nth, life_of_a_cluster(world)).await?;
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
