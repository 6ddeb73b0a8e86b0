use std::path::Path;

use anyhow::Result;
use ocm_testing::{Process, ProcessBuilder, Signal, TempDir};

fn shell(dir: &TempDir, script: &str) -> ProcessBuilder {
    Process::build("script", "sh", dir.path().join("script.log")).args(["-c", script])
}

#[tokio::test]
async fn a_log_line_is_waited_for_and_returned() -> Result<()> {
    let dir = TempDir::new("process")?;
    let process =
        shell(&dir, "echo starting; echo \"listening on $PORT\"; exec sleep 1000").env("PORT", "42").start()?;
    assert_eq!(process.wait_for_log("listening").await?, "listening on 42");
    assert!(process.memory()?.resident_kb > 0);
    process.cpu_time()?;
    Ok(())
}

#[tokio::test]
async fn a_process_that_ends_without_the_line_is_an_error_with_the_end_of_its_log() -> Result<()> {
    let dir = TempDir::new("process")?;
    let process = shell(&dir, "echo 'no such option' >&2; exit 2").start()?;
    let error = process.wait_for_log("listening").await.unwrap_err().to_string();
    assert!(error.contains("no such option") && error.contains("exit status: 2"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_process_can_be_terminated_with_sigterm() -> Result<()> {
    let dir = TempDir::new("process")?;
    let process = shell(&dir, "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done").start()?;
    process.wait_for_log("ready").await?;
    process.signal(Signal::TERM)?;
    assert_eq!(process.wait().await?.code(), Some(3));
    assert!(process.log()?.contains("bye"));
    process.signal(Signal::TERM)?;
    Ok(())
}

#[tokio::test]
async fn waiting_for_a_line_ignores_an_earlier_process_with_the_same_log() -> Result<()> {
    let dir = TempDir::new("process")?;
    shell(&dir, "echo first").start()?.wait().await?;
    let second = shell(&dir, "echo second").start()?;
    second.wait_for_log("second").await?;
    assert!(second.wait_for_log("first").await.is_err());
    assert_eq!(std::fs::read_to_string(second.log_path())?, "first\nsecond\n");
    Ok(())
}

#[test]
fn a_program_that_is_not_there_is_an_error_that_names_it() {
    let dir = TempDir::new("process").unwrap();
    let started = Process::build("agent", "/nowhere/ocm", dir.path().join("agent.log")).start();
    let error = format!("{:#}", started.unwrap_err());
    assert!(error.contains("failed to start agent") && error.contains("/nowhere/ocm"), "{error}");
}

#[test]
fn a_dropped_process_is_gone() {
    let dir = TempDir::new("process").unwrap();
    let process = shell(&dir, "exec sleep 1000").start().unwrap();
    let entry = format!("/proc/{}", process.pid());
    assert!(Path::new(&entry).exists());
    drop(process);
    assert!(!Path::new(&entry).exists());
}

#[tokio::test]
async fn a_process_outlives_the_thread_that_started_it() -> Result<()> {
    let dir = TempDir::new("process")?;
    let go = dir.path().join("go");
    let script = format!("while ! [ -e {} ]; do sleep 0.01; done; echo still here", go.display());
    let process = std::thread::scope(|scope| scope.spawn(|| shell(&dir, &script).start()).join().unwrap())?;
    std::fs::write(go, "")?;
    process.wait_for_log("still here").await?;
    Ok(())
}
