//! What the user reads when there is no hub to talk to.

use std::process::Command;

use anyhow::Result;
use ocm_testing::{ControlPlane, Port, TempDir, write_kubeconfig};

use crate::hub::{finish, run};

fn clusteradm(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clusteradm"));
    command.args(args).env_remove("KUBECONFIG");
    command
}

#[test]
fn a_missing_kubeconfig_is_named_with_the_cause_and_a_way_out() -> Result<()> {
    let folder = TempDir::new("clusteradm")?;
    let mut command = clusteradm(&["get", "clusters"]);
    command.env("HOME", folder.path());
    let file = folder.path().join(".kube/config").display().to_string();
    finish(command)?.assert_failed_with(&[&file, "No such file", "--kubeconfig"]);
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
async fn a_context_that_is_not_there_and_a_server_that_does_not_answer_are_named() -> Result<()> {
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
