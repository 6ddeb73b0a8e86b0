//! `clusteradm get token`

use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, Config, config::KubeConfigOptions};
use ocm_api::cluster::v1::ManagedCluster;
use ocm_testing::{ControlPlane, TempDir, unique};
use serde_json::{Value, json};

use crate::hub::{hub, register, run};

/// A client with only a token.
async fn client_with(hub: &ControlPlane, token: &str) -> Result<Client> {
    let mut kubeconfig = hub.admin_config();
    let user = json!({ "token": token });
    kubeconfig.auth_infos[0].auth_info = Some(serde_json::from_value(user)?);
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

#[tokio::test]
async fn an_agent_can_register_with_the_token_and_do_nothing_else() -> Result<()> {
    let (hub, cluster) = (hub().await?, unique("token"));
    let ended = run(hub, &["get", "token", "-o", "json"])?;
    assert!(ended.success, "{ended:?}");
    let output: Value = serde_json::from_str(&ended.stdout)?;
    assert_eq!(output["hub-apiserver"], hub.url());

    let agent = client_with(hub, output["hub-token"].as_str().context("no token")?).await?;
    register(&agent, &cluster).await?;
    Api::<ManagedCluster>::all(agent.clone()).get(&cluster).await?;
    let secrets = Api::<Secret>::all(agent).list(&kube::api::ListParams::default()).await;
    assert!(matches!(secrets, Err(kube::Error::Api(status)) if status.code == 403));
    Ok(())
}

#[tokio::test]
async fn the_text_holds_the_token_and_the_join_command() -> Result<()> {
    let hub = hub().await?;
    let folder = TempDir::new("clusteradm")?;
    let file = folder.path().join("token");
    let name = file.to_str().context("not UTF-8")?;
    std::fs::write(&file, "of before, for everyone to read")?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644))?;
    let ended = run(hub, &["get", "token", "--output-file", name])?;
    assert!(ended.success, "{ended:?}");
    let lines: Vec<_> = ended.stdout.lines().collect();
    let token = lines[0].strip_prefix("token=").context("no token")?;
    let join = format!(
        "clusteradm join --hub-token {token} --hub-apiserver {} --wait --cluster-name <cluster_name>",
        hub.url()
    );
    assert_eq!(lines[1..], ["please log on spoke and run:", &join]);

    assert_eq!(std::fs::read_to_string(&file)?, ended.stdout);
    assert_eq!(file.metadata()?.permissions().mode() & 0o777, 0o600);
    Ok(())
}

#[tokio::test]
async fn the_bootstrap_token_is_shown_if_it_exists() -> Result<()> {
    let hub = hub().await?;
    let absent = run(hub, &["get", "token", "--use-bootstrap-token"])?;
    absent.assert_failed_with(&["kube-system/bootstrap-token-ocmhub does not exist"]);

    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": { "name": "bootstrap-token-ocmhub", "namespace": "kube-system" },
        "stringData": { "token-id": "ocmhub", "token-secret": "0123456789abcdef" },
    });
    hub.apply_yaml(&secret.to_string()).await?;
    let ended = run(hub, &["get", "token", "--use-bootstrap-token"])?;
    assert!(ended.stdout.starts_with("token=ocmhub.0123456789abcdef\n"), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_dry_run_requests_no_token() -> Result<()> {
    let ended = run(hub().await?, &["get", "token", "--dry-run"])?;
    assert!(ended.success && ended.stdout.is_empty(), "{ended:?}");
    assert!(ended.stderr.contains("would ask for a token"), "{ended:?}");
    Ok(())
}
