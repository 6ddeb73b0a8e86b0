//! Command lines of OCM's commands, passed to ours.

use std::process::Command;

use anyhow::{Context as _, Result};
use ocm_testing::{Process, TempDir};

/// The flags of OCM's commands, each with its default.
const FLAGS: &str = include_str!("flags.txt");

/// The flags of one of OCM's commands, as its operators would write them.
fn defaults(of: &str) -> Vec<String> {
    let groups: &[&str] = match of.rsplit_once(' ') {
        Some((_, "webhook-server")) => &["any", "webhooks"],
        Some(("registration-operator", "agent")) => &["any", "all", "registration agent", "work agent"],
        _ => &["any", "all"],
    };
    let lines = FLAGS.lines().filter_map(|line| line.split_once(": "));
    let of_command = lines.filter(|(command, _)| groups.contains(command) || *command == of);
    of_command.map(|(_, flag)| format!("--{flag}")).collect()
}

/// Exit code and stderr of a command with these flags. `end` comes last and makes it fail.
fn outcome(ours: &str, flags: &[String], end: &str) -> Result<(Option<i32>, String)> {
    let output = Command::new(crate::program::ocm()).arg(ours).args(flags).arg(end).env_remove("RUST_LOG").output()?;
    Ok((output.status.code(), String::from_utf8(output.stderr)?))
}

const MISSING: &str = "--kubeconfig=/no/such/kubeconfig";
const COMMANDS: [(&str, &str, &str); 10] = [
    ("registration controller", "hub", MISSING),
    ("placement controller", "hub", MISSING),
    ("addon manager", "hub", MISSING),
    ("work manager", "hub", MISSING),
    ("registration agent", "agent", MISSING),
    ("work agent", "agent", MISSING),
    ("registration-operator agent", "agent", MISSING),
    ("registration webhook-server", "webhook", "--certdir=/no/such/folder"),
    ("work webhook-server", "webhook", "--certdir=/no/such/folder"),
    ("addon webhook-server", "webhook", "--certdir=/no/such/folder"),
];

#[test]
fn every_flag_of_ocm_is_accepted_with_its_default() -> Result<()> {
    for (of, ours, end) in COMMANDS {
        let flags = defaults(of);
        assert!(flags.len() > 8, "{of} has flags: {flags:?}");
        let (code, output) = outcome(ours, &flags, end)?;
        assert_eq!(code, Some(1), "{of}: {output}");
        assert!(
            output.contains("failed to read /no/such") || output.contains("failed to read kubeconfig /no/such"),
            "{of}: {output}"
        );
    }
    Ok(())
}

#[test]
fn a_flag_without_effect_is_logged_once_with_the_reason() -> Result<()> {
    let (_, output) = outcome("hub", &["--kube-api-qps=5".to_owned(), "--kube-api-qps=6".to_owned()], MISSING)?;
    let lines: Vec<_> = output.lines().filter(|line| line.contains("--kube-api-qps")).collect();
    assert_eq!(lines.len(), 1, "{output}");
    assert!(lines[0].contains("INFO") && lines[0].contains("not throttled"), "{output}");
    Ok(())
}

#[test]
fn what_is_not_built_is_refused_before_any_connection() -> Result<()> {
    let refused = [
        ("hub", "--enabled-registration-drivers=grpc"),
        ("hub", "--work-driver=mqtt"),
        ("hub", "--grpc-ca-file=/ca.crt"),
        ("agent", "--registration-auth=awsirsa"),
        ("agent", "--addon-kubeclient-registration-auth=x509"),
        ("agent", "--workload-source-driver=grpc"),
        ("agent", "--workload-source-config=/other/kubeconfig"),
        ("agent", "--hub-kubeconfig=/other/kubeconfig"),
    ];
    for (ours, flag) in refused {
        let (code, output) = outcome(ours, &[flag.to_owned()], MISSING)?;
        let (name, _) = flag.split_once('=').context("no value")?;
        assert_eq!(code, Some(1), "{output}");
        assert!(output.contains(&format!("error: {name}")) && !output.contains("/no/such"), "{flag}: {output}");
    }
    Ok(())
}

#[test]
fn gates_that_are_not_built_are_reported_and_those_of_no_command_are_refused() -> Result<()> {
    let (_, output) = outcome("agent", &["--feature-gates=V1beta1CSRAPICompatibility=true".to_owned()], MISSING)?;
    assert!(output.contains("V1beta1CSRAPICompatibility") && output.contains("not built yet"), "{output}");
    let (code, output) = outcome("webhook", &["--feature-gates=Nonsense=true".to_owned()], "--certdir=/no/such")?;
    assert_eq!(code, Some(1));
    assert!(output.contains("unknown feature gate \"Nonsense\""), "{output}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_exits_with_success_when_a_file_of_terminate_on_files_changes() -> Result<()> {
    let (folder, plane) = (TempDir::new("terminate")?, ocm_testing::fixture::get().managed2);
    let file = folder.path().join("file");
    let hub = Process::build("hub", crate::program::ocm(), folder.path().join("log"))
        .args(["hub", "--listen=127.0.0.1:0", "--namespace=default", "--controllers=shared-cluster-roles"])
        .arg(format!("--kubeconfig={}", plane.admin_kubeconfig().display()))
        .arg(format!("--terminate-on-files={}", file.display()))
        .without_env("RUST_LOG")
        .start()?;
    hub.wait_for_log("serving /healthz").await?;
    assert!(hub.try_wait()?.is_none());
    std::fs::write(&file, "new")?;
    assert!(hub.wait().await?.success());
    assert!(hub.log()?.contains("--terminate-on-files has changed"), "{}", hub.log_tail());
    Ok(())
}
