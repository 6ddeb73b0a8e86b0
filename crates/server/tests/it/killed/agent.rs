//! An agent that is killed while it joins, and while it reconciles works.

use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use ocm_api::work::v1::AppliedManifestWork;
use ocm_testing::{
    TempDir, eventually,
    fault::{FaultyServer, WriteCount},
    unique,
};
use serde_json::{Value, json};

use super::{Mortal, through};
use crate::world::{World, config_map, world};

/// An agent's process whose writes to hub and managed cluster are counted.
pub(super) struct MortalAgent {
    pub(super) mortal: Mortal,
    pub(super) cluster: String,
    _servers: [FaultyServer; 2],
    _folder: TempDir,
}

impl MortalAgent {
    pub(super) async fn new(world: &World) -> anyhow::Result<Self> {
        let (cluster, writes, folder) = (unique("mortal"), WriteCount::default(), TempDir::new("mortal")?);
        let (bootstrap, own, namespace) = world.agent_identity().await?;
        let (hub, bootstrap) = through(world.hub_plane, &writes, bootstrap).await?;
        let (managed, own) = through(world.managed_plane, &writes, own).await?;
        let (files, name) = (folder.path().to_owned(), cluster.clone());
        let start = move || {
            let process = crate::program::agent(&files, &name, &namespace, &bootstrap, &own)?;
            process.args(["--disable-leader-election", "--agent-id", &name]).start()
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
async fn an_agent_killed_at_any_write_of_a_work_from_creation_to_deletion_finishes() -> anyhow::Result<()> {
    let world = world().await?;
    let agent = MortalAgent::new(&world).await?;
    agent.mortal.live(usize::MAX / 2, world.admit(&agent.cluster)).await?;
    for nth in 1.. {
        let came_to_it = agent.mortal.live(nth, life_of_a_work(&world, &agent.cluster)).await?;
        if !came_to_it {
            assert!(nth > 16, "the life of a work takes more than {nth} writes");
            return Ok(());
        }
    }
    Ok(())
}

/// A work with an object of each strategy that writes, one that stays when the work is deleted, and one that only this
/// version has.
fn spec(names: &[String; 6], value: &str) -> Value {
    let config = |name: &String, strategy: Value| {
        let id = json!({"resource": "configmaps", "namespace": "default", "name": name});
        json!({"resourceIdentifier": id, "updateStrategy": strategy})
    };
    let ignored = json!([{"condition": "OnSpokePresent", "jsonPointers": ["/data/b"]}]);
    let server_side = json!({"type": "ServerSideApply", "serverSideApply": {"ignoreFields": ignored}});
    let rule = json!({"resource": "configmaps", "namespace": "default", "name": names[3]});
    let other = if value == "1" { &names[5] } else { &names[4] };
    let manifests = names.iter().filter(|name| *name != other);
    let manifests: Vec<_> = manifests.map(|name| config_map(name, json!({"a": value, "b": value}))).collect();
    json!({
        "workload": {"manifests": manifests},
        "manifestConfigs": [config(&names[1], json!({"type": "CreateOnly"})), config(&names[2], server_side)],
        "deleteOption": {"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules": [rule]}}
    })
}

async fn life_of_a_work(world: &World, cluster: &str) -> anyhow::Result<()> {
    let (work, names) = (unique("work"), ["updated", "created", "applied", "kept", "dropped", "added"].map(unique));
    world.create_work_with(cluster, &work, spec(&names, "1")).await?;
    world.work_is_available(cluster, &work).await?;
    let (one, two) = (|| Some("1".to_owned()), || Some("2".to_owned()));
    assert_eq!(world.config_map_values(&names).await?, [one(), one(), one(), one(), one(), None]);
    let edit = Patch::Merge(json!({"spec": spec(&names, "2")}));
    world.works(cluster).patch(&work, &PatchParams::default(), &edit).await?;
    world.work_is_available(cluster, &work).await?;
    assert_eq!(world.config_map_values(&names).await?, [two(), one(), two(), two(), None, two()]);
    world.works(cluster).delete(&work, &DeleteParams::default()).await?;
    world.work_is_gone(cluster, &work).await?;
    assert_eq!(world.config_map_values(&names).await?, [None, None, None, two(), None, None]);
    let records = Api::<AppliedManifestWork>::all(world.managed.clone());
    eventually("no record is left behind", || async {
        let records = records.list(&ListParams::default()).await?.items;
        anyhow::Ok(records.iter().all(|record| record.spec.manifest_work_name != work))
    })
    .await
}
