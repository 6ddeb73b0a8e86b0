//! How an agent starts.

use anyhow::Result;
use clap::Parser;
use ocm_addon::command::AgentArgs;
use ocm_runtime::Context;
use ocm_testing::{
    TempDir,
    fault::{Fault, FaultyServer, Injection},
    write_kubeconfig,
};

use crate::support::world;

#[derive(Parser)]
struct Agent {
    #[command(flatten)]
    args: AgentArgs,
}

#[tokio::test]
async fn an_agent_whose_hub_does_not_answer_when_it_starts_waits_for_it() -> Result<()> {
    let (world, folder) = (world().await?, TempDir::new("agent")?);
    let hub = FaultyServer::start(world.plane).await?;
    // More often than the hub is asked in five seconds.
    hub.inject(Fault::new(Injection::answer(500, "InternalError")).times(15));
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    write_kubeconfig(&hub.reached_through(world.plane.admin_config()), file("hub"))?;
    write_kubeconfig(&world.plane.admin_config(), file("managed"))?;
    let args = [
        "agent".to_owned(),
        format!("--hub-kubeconfig={}", file("hub")),
        format!("--managed-kubeconfig={}", file("managed")),
        "--cluster-name=c1".to_owned(),
    ];
    let context = Context::new();
    let agent =
        Agent::try_parse_from(args)?.args.connect(&context, "hello").await.map_err(anyhow::Error::from_boxed)?;
    assert_eq!(agent.map(|agent| (agent.cluster, agent.addon)), Some(("c1".into(), "hello".into())));
    assert_eq!(hub.outstanding(), 0);
    context.stop().await;
    Ok(())
}
