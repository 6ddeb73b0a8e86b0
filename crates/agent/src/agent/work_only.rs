//! An agent with only the work half: another process writes the credentials into the folder.

use std::{path::PathBuf, time::Duration};

use ocm_api::secrets::{KEY_CLUSTER_NAME, KEY_KUBECONFIG, KEY_TLS_CERT, KEY_TLS_KEY};
use ocm_runtime::{Context, Informers, client::Endpoint, error::chain};
use tracing::{Instrument as _, info, info_span, warn};

use super::{AgentConfig, AgentError, Names, USER_AGENT, files::HubDir, hub_kubeconfig::Connection, names};
use crate::work;

/// How often the files are polled.
const POLL: Duration = Duration::from_secs(10);
/// How often they are polled until they exist.
const FIRST_POLL: Duration = Duration::from_secs(1);

pub(super) async fn run(context: &Context, managed: &Endpoint, config: AgentConfig) -> Result<(), AgentError> {
    let dir = HubDir::new(&config.hub_kubeconfig_dir);
    while !context.is_ended() {
        tokio::select! {
            () = context.ended() => {}
            () = files_exist(&dir, &config) => {
                let phase = context.child();
                let outcome = connected(&phase, managed, &config, &dir).await;
                phase.stop().await;
                wait_after(outcome).await?;
            }
        }
    }
    Ok(())
}

/// Waits after credentials that cannot be used: they may be incomplete.
async fn wait_after(outcome: Result<(), AgentError>) -> Result<(), AgentError> {
    match outcome {
        Err(error @ (AgentError::Kubeconfig(_) | AgentError::Client(_) | AgentError::Connection(_))) => {
            warn!(error = %chain(&error), retry_in = ?POLL, "cannot use the credentials for the hub, retrying");
            tokio::time::sleep(POLL).await;
            Ok(())
        }
        outcome => outcome,
    }
}

/// Runs the controllers for the hub that the files name, until they name another.
async fn connected(phase: &Context, managed: &Endpoint, config: &AgentConfig, dir: &HubDir) -> Result<(), AgentError> {
    let kubeconfig = dir.file(KEY_KUBECONFIG);
    let (connection, endpoint) = dir.consistently(|| {
        Ok::<_, AgentError>((Connection::read(&kubeconfig)?, Endpoint::load(phase, Some(&kubeconfig))?))
    })?;
    let names = names_at(config, &connection).await?;
    let settings = config.work_settings(&names, &connection.server);
    let span = info_span!("agent", cluster = names.cluster, hub = connection.server);
    span.in_scope(|| start(phase, &endpoint, managed, settings))?;
    tokio::select! {
        () = phase.ended() => {}
        () = follow(dir, &endpoint, &connection).instrument(span) => {}
    }
    Ok(())
}

/// The agent's name comes with the credentials. The fallback is the hub's hash, as in OCM's work agent.
async fn names_at(config: &AgentConfig, connection: &Connection) -> Result<Names, AgentError> {
    if names::known_agent(config).is_none() {
        // Its file may be written after the others.
        tokio::time::sleep(FIRST_POLL).await;
    }
    let mut names = names::complete(config)?;
    if names::known_agent(config).is_none() {
        names.agent = work::hub_hash(&connection.server);
        warn!(
            "neither --agent-id nor a file agent-name next to the credentials names this agent: what it applies is recorded \
             under the hub's address, and is not cleaned up when that changes; give --agent-id"
        );
    }
    Ok(names)
}

fn start(context: &Context, hub: &Endpoint, managed: &Endpoint, settings: work::Settings) -> Result<(), AgentError> {
    let informers = Informers::new(hub.client(USER_AGENT)?, context.clone());
    work::start(context, &informers, managed, settings)?;
    info!("connected to the hub");
    Ok(())
}

/// Waits until all files exist, and logs once which one is missing.
async fn files_exist(dir: &HubDir, config: &AgentConfig) {
    let mut logged = false;
    while let Some(missing) = missing(dir, config) {
        if !std::mem::replace(&mut logged, true) {
            info!(file = %missing.display(), "waiting for the credentials for the hub, which the registration agent writes");
        }
        tokio::time::sleep(FIRST_POLL).await;
    }
}

/// The first missing file. A kubeconfig may contain its credentials.
fn missing(dir: &HubDir, config: &AgentConfig) -> Option<PathBuf> {
    let text = dir.text(KEY_KUBECONFIG);
    let needs = |file: &str| text.as_ref().is_none_or(|text| text.contains(file));
    let name = config.cluster_name.is_empty().then_some(KEY_CLUSTER_NAME);
    let tls = [KEY_TLS_CERT, KEY_TLS_KEY].into_iter().filter(|file| needs(file));
    let files = [KEY_KUBECONFIG].into_iter().chain(tls).chain(name);
    files.map(|file| dir.file(file)).find(|file| !file.exists())
}

/// Reloads the credentials whenever the files change; returns when they are for another hub. A failed reload is retried, since
/// the files may be incomplete.
async fn follow(dir: &HubDir, endpoint: &Endpoint, connection: &Connection) {
    loop {
        tokio::time::sleep(POLL).await;
        if Connection::read(&dir.file(KEY_KUBECONFIG)).is_ok_and(|new| new.server != connection.server) {
            return warn!("the credentials are for another hub now, starting over");
        }
        match endpoint.reload().await {
            Ok(true) => info!("reloaded the credentials for the hub"),
            Ok(false) => {}
            Err(error) => {
                warn!(error = %chain(&error), "cannot use the new credentials for the hub, keeping the old ones");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::files::tests::folder;

    #[test]
    fn it_waits_for_what_the_kubeconfig_names_and_for_a_name() {
        let folder = folder("work-only");
        let dir = HubDir::new(folder.path());
        let mut config = AgentConfig::new(folder.path());
        let write = |key: &str, text: &str| std::fs::write(folder.path().join(key), text).unwrap();
        assert_eq!(missing(&dir, &config), Some(dir.file(KEY_KUBECONFIG)));
        write(KEY_KUBECONFIG, "client-certificate: tls.crt, client-key: tls.key");
        assert_eq!(missing(&dir, &config), Some(dir.file(KEY_TLS_CERT)));
        write(KEY_KUBECONFIG, "token: abc");
        assert_eq!(missing(&dir, &config), Some(dir.file(KEY_CLUSTER_NAME)));
        config.cluster_name = "cluster1".into();
        assert_eq!(missing(&dir, &config), None);
    }
}
