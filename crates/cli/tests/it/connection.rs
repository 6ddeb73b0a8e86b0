//! Kubeconfigs, connections, and their errors.

use std::process::Command;

use anyhow::{Context as _, Result};
use ocm_cli::{Environment, Proxies, ServiceAccount};
use ocm_testing::{
    ControlPlane, Port, TempDir,
    fault::{Fault, FaultyServer, Injection},
    write_kubeconfig,
};
use serde_json::{Value, json};

use crate::hub::{finish, in_environment, in_process, run};

fn clusteradm(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clusteradm"));
    command.args(args).env_remove("KUBECONFIG");
    command
}

#[test]
fn a_missing_kubeconfig_is_named_with_a_hint() -> Result<()> {
    let folder = TempDir::new("clusteradm")?;
    let mut command = clusteradm(&["get", "clusters"]);
    command.env("HOME", folder.path());
    let file = folder.path().join(".kube/config").display().to_string();
    finish(command)?.assert_failed_with(&[&format!("kubeconfig {file} does not exist"), "--kubeconfig"]);
    Ok(())
}

#[test]
fn a_file_that_is_no_kubeconfig_is_named() -> Result<()> {
    let folder = TempDir::new("clusteradm")?;
    let file = folder.path().join("config");
    std::fs::write(&file, "clusters: 3")?;
    let name = file.display().to_string();
    finish(clusteradm(&["get", "clusters", "--kubeconfig", &name]))?.assert_failed_with(&[&name]);
    Ok(())
}

#[tokio::test]
async fn a_context_that_does_not_exist_and_a_server_that_does_not_answer_are_named() -> Result<()> {
    let hub = crate::hub::hub().await?;
    let ended = run(hub, &["get", "clusters", "--context", "other"])?;
    ended.assert_failed_with(&["no context other", &format!("--context: {}", hub.name())]);

    let (folder, port) = (TempDir::new("clusteradm")?, Port::free()?);
    let mut kubeconfig = hub.admin_config();
    let server = format!("https://127.0.0.1:{}", port.number());
    if let Some(cluster) = &mut kubeconfig.clusters[0].cluster {
        cluster.server = Some(server.clone());
    }
    let file = folder.path().join("config").display().to_string();
    write_kubeconfig(&kubeconfig, &file)?;
    let ended = finish(clusteradm(&["get", "clusters", "--kubeconfig", &file]))?;
    ended.assert_failed_with(&[&format!("cannot reach {server}"), "refused", &file]);
    Ok(())
}

#[tokio::test]
async fn files_of_a_list_that_do_not_exist_are_skipped() -> Result<()> {
    let (hub, folder) = (crate::hub::hub().await?, TempDir::new("clusteradm")?);
    let missing = folder.path().join("missing");
    let mut command = clusteradm(&["get", "clusters"]);
    command.env("KUBECONFIG", std::env::join_paths([missing.as_path(), hub.admin_kubeconfig()])?);
    let ended = finish(command)?;
    assert!(ended.success, "{ended:?}");

    let mut command = clusteradm(&["get", "clusters"]);
    command.env("KUBECONFIG", std::env::join_paths([&missing, &folder.path().join("neither")])?);
    finish(command)?.assert_failed_with(&["none of the kubeconfigs in $KUBECONFIG exists", "neither"]);
    Ok(())
}

#[tokio::test]
async fn without_a_kubeconfig_a_pod_uses_its_service_account() -> Result<()> {
    let (hub, folder) = (crate::hub::hub().await?, TempDir::new("clusteradm")?);
    let file = folder.path().join("config");
    hub.write_login("open-cluster-management", "agent-registration-bootstrap", &file).await?;
    let kubeconfig: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    let token = kubeconfig["users"][0]["user"]["token"].as_str().context("no token")?;
    std::fs::write(folder.path().join("token"), token)?;
    std::fs::write(folder.path().join("ca.crt"), hub.certificate_authority())?;
    std::fs::write(folder.path().join("namespace"), "open-cluster-management")?;
    let account = ServiceAccount { server: hub.url(), folder: folder.path().to_owned() };
    let in_pod = |environment: &mut Environment| environment.service_account = Some(account);
    let ended = in_environment(in_pod, &["get", "clusters"]).await;
    assert!(ended.success && ended.stdout.starts_with("<ManagedCluster>"), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn the_proxy_of_the_environment_is_used_and_an_exec_plugin_that_fails_is_named() -> Result<()> {
    let (hub, folder, port) = (crate::hub::hub().await?, TempDir::new("clusteradm")?, Port::free()?);
    let mut kubeconfig = hub.admin_config();
    if let Some(cluster) = &mut kubeconfig.clusters[0].cluster {
        cluster.server = Some("https://hub.invalid".to_owned());
    }
    let file = folder.path().join("config");
    write_kubeconfig(&kubeconfig, &file)?;
    let proxy = format!("http://127.0.0.1:{}", port.number());
    let behind_proxy = |environment: &mut Environment| {
        environment.kubeconfig = Some(file.clone().into());
        environment.proxies = Proxies::from_variables(|name| (name == "HTTPS_PROXY").then(|| proxy.clone()));
    };
    let ended = in_environment(behind_proxy, &["get", "clusters"]).await;
    ended.assert_failed_with(&["cannot reach https://hub.invalid", "refused"]);

    let plugin = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "/nonexistent/plugin" });
    kubeconfig.auth_infos[0].auth_info = Some(serde_json::from_value(json!({ "exec": plugin }))?);
    write_kubeconfig(&kubeconfig, &file)?;
    in_process(&file, &["get", "clusters"]).await.assert_failed_with(&["could not be obtained"]);
    Ok(())
}

#[tokio::test]
async fn a_missing_right_and_a_token_that_is_not_valid_are_named_with_a_hint() -> Result<()> {
    let (hub, folder) = (crate::hub::hub().await?, TempDir::new("clusteradm")?);
    let file = folder.path().join("config");
    hub.write_login("open-cluster-management", "agent-registration-bootstrap", &file).await?;
    let ended = in_process(&file, &["get", "token"]).await;
    ended.assert_failed_with(&[
        "forbidden",
        "agent-registration-bootstrap",
        "lacks a right that a hub administrator has",
    ]);

    let mut kubeconfig: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    kubeconfig["users"][0]["user"]["token"] = json!("not-valid-any-more");
    std::fs::write(&file, kubeconfig.to_string())?;
    let ended = in_process(&file, &["get", "clusters"]).await;
    let way_out = format!("hint: renew the credentials of context {}", kubeconfig["current-context"].as_str().unwrap());
    ended.assert_failed_with(&["does not accept the credentials", &way_out, "--context"]);
    Ok(())
}

#[tokio::test]
async fn a_hub_that_does_not_answer_is_given_up_after_the_timeout() -> Result<()> {
    let (hub, folder) = (crate::hub::hub().await?, TempDir::new("clusteradm")?);
    let server = FaultyServer::start(hub).await?;
    server.inject(Fault::new(Injection::Hang).times(usize::MAX));
    let file = folder.path().join("config");
    write_kubeconfig(&server.reached_through(hub.admin_config()), &file)?;
    let ended = in_process(&file, &["get", "clusters", "--timeout", "1"]).await;
    ended.assert_failed_with(&["has not answered within 1 seconds", "--timeout"]);
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_is_no_hub_is_refused() -> Result<()> {
    let plain = ControlPlane::builder().name("plain").start().await?;
    let addon = ["addon", "enable", "--names", "a", "--clusters", "c"];
    for args in [["get", "token"].as_slice(), &["get", "clusters"], &["accept", "--clusters", "c"], &addon] {
        run(&plain, args)?.assert_failed_with(&["is not a hub", &plain.url()]);
    }
    Ok(())
}

#[test]
fn wrong_flags_end_with_1_and_a_group_alone_shows_its_help() -> Result<()> {
    let wrong = finish(clusteradm(&["get", "clusters", "-o", "json"]))?;
    assert!(!wrong.success && wrong.stderr.contains("[possible values: tree, table, yaml]"), "{wrong:?}");
    let group = finish(clusteradm(&["get"]))?;
    assert!(group.success && group.stdout.contains("clusters"), "{group:?}");
    Ok(())
}
