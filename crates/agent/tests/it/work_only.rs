//! Two agents: one runs the registration half only, the other one the work half.

use anyhow::Result;
use ocm_agent::{AgentConfig, Components};
use ocm_runtime::Clock;

use crate::{
    agent_id::{create_work, recorded},
    registration_world::World,
};

#[tokio::test(flavor = "multi_thread")]
async fn it_waits_for_credentials_and_then_works_under_the_names_beside_them() -> Result<()> {
    let world = World::for_works().await?;
    let folder = world.dir.path().join("work");
    let config = AgentConfig {
        cluster_name: String::new(),
        agent_id: String::new(),
        bootstrap_kubeconfig: None,
        hub_kubeconfig_dir: folder.clone(),
        components: Components { registration: false, work: true },
        ..world.config()
    };
    let agent = world.start_with(config, Clock::System).await?;
    let registration = world.join(world.config(), Clock::System).await?;
    create_work(&world).await?;

    std::fs::create_dir_all(&folder)?;
    for file in ["agent-name", "cluster-name", "kubeconfig", "tls.crt", "tls.key"] {
        assert_eq!(agent.reconciles("manifestwork"), 0, "it has no {file} yet");
        std::fs::copy(world.hub_dir().join(file), folder.join(file))?;
    }
    let record = recorded(&world, &world.hub.url()).await?;
    assert_eq!(record.spec.agent_id, "9hdnf");
    assert_eq!(world.own_requests().await?.len(), 1, "the other agent's: it asks for no certificate");
    agent.stop().await?;
    registration.stop().await
}
