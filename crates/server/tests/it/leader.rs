//! Leader election between real processes, on a real API server.

use anyhow::{Context as _, Result};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use ocm_api::{leases, namespaces, rbac};
use ocm_testing::{Assets, Process, Seen, Signal, TempDir, eventually, unique, write_kubeconfig};

use crate::world::{AGENT_ACCOUNT, HUB_ACCOUNT, World, world};

/// Leases that expire within seconds.
const SHORT: &[&str] = &[
    "--leader-election-lease-duration=4s",
    "--leader-election-renew-deadline=3s",
    "--leader-election-retry-period=1s",
];

/// A namespace for replicas of a hub, where no other test elects a leader.
struct Place {
    world: World,
    namespace: String,
    dir: TempDir,
}

impl Place {
    async fn new() -> Result<Self> {
        let (world, namespace) = (world().await?, unique("election"));
        world.hub_plane.kubectl(&["create", "namespace", &namespace]).await?;
        let kubeconfig = world.hub_plane.kubeconfig_for_service_account(namespaces::HUB, HUB_ACCOUNT).await?;
        let dir = TempDir::new(&namespace)?;
        write_kubeconfig(&kubeconfig, dir.path().join("kubeconfig"))?;
        Ok(Self { world, namespace, dir })
    }

    /// Starts a replica, with the one controller that has the least to do.
    fn replica(&self, name: &str, times: &[&str]) -> Result<Process> {
        let log = self.dir.path().join(format!("{name}.log"));
        let process = Process::build(name, crate::program::ocm(), log).without_env("RUST_LOG");
        let process = process.args(["hub", "--controllers", "shared-cluster-roles", "--listen", "127.0.0.1:0"]);
        let process = process.arg("--kubeconfig").arg(self.dir.path().join("kubeconfig"));
        process.args(["--namespace", &self.namespace]).args(times).start()
    }

    /// A Go program that is a candidate for the same lease.
    fn go_replica(&self, name: &str) -> Result<Process> {
        let log = self.dir.path().join(format!("{name}.log"));
        let process = Process::build(name, Assets::discover()?.find("kube-controller-manager")?, log);
        let process = process.arg("--kubeconfig").arg(self.world.hub_plane.admin_kubeconfig());
        let lock = format!("--leader-elect-resource-name={}", leases::REGISTRATION_CONTROLLER_LOCK);
        let namespace = format!("--leader-elect-resource-namespace={}", self.namespace);
        let election = ["--leader-elect=true", &lock, &namespace, "--leader-elect-lease-duration=4s"];
        let times = ["--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=1s"];
        process.args(election).args(times).args(["--controllers=ttl-controller", "--secure-port=0"]).start()
    }

    async fn lease(&self) -> Result<LeaseSpec> {
        lease(&self.world.hub, &self.namespace, leases::REGISTRATION_CONTROLLER_LOCK).await
    }

    /// Waits until another replica than `before` holds the lease.
    async fn is_held_by_another_than(&self, before: &str) -> Result<LeaseSpec> {
        eventually("somebody else holds the lease", || async {
            let lease = self.lease().await.unwrap_or_default();
            let holder = lease.holder_identity.clone().unwrap_or_default();
            let another = !holder.is_empty() && holder != before;
            anyhow::Ok(if another { Seen::Settled(lease) } else { Seen::NotYet(holder) })
        })
        .await
    }
}

async fn lease(client: &kube::Client, namespace: &str, name: &str) -> Result<LeaseSpec> {
    let lease = Api::<Lease>::namespaced(client.clone(), namespace).get(name).await?;
    lease.spec.context("the lease is empty")
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_one_leads_and_the_other_takes_over_when_the_first_is_asked_to_end() -> Result<()> {
    let place = Place::new().await?;
    // With OCM's times. Twice the shortest wait is longer than the timeout of this test.
    let first = place.replica("first", &[])?;
    first.wait_for_log("hub started").await?;
    let lease = place.lease().await?;
    let holder = lease.holder_identity.clone().unwrap_or_default();
    assert_eq!((lease.lease_duration_seconds, lease.lease_transitions), (Some(137), Some(0)));
    assert!(holder.len() > 37 && holder.contains('_'), "{holder}");
    assert!(lease.acquire_time.is_some() && lease.renew_time.is_some());
    let second = place.replica("second", &[])?;
    let waiting = second.wait_for_log("another process leads, waiting").await?;
    assert!(waiting.contains(&holder), "{waiting}");
    assert!(!second.log()?.contains("hub started"));

    first.signal(Signal::TERM)?;
    assert!(first.wait().await?.success(), "{}", first.log_tail());
    second.wait_for_log("hub started").await?;
    assert!(first.log()?.contains("released the lease"), "{}", first.log_tail());
    let lease = place.lease().await?;
    assert_ne!(lease.holder_identity, Some(holder));
    assert_eq!(lease.lease_transitions, Some(1));

    second.signal(Signal::TERM)?;
    assert!(second.wait().await?.success());
    let lease = place.lease().await?;
    assert_eq!(lease.holder_identity.as_deref().unwrap_or_default(), "");
    assert_eq!(lease.lease_duration_seconds, Some(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_leader_is_killed_another_takes_over_once_the_lease_has_expired() -> Result<()> {
    let place = Place::new().await?;
    let first = place.replica("first", SHORT)?;
    first.wait_for_log("hub started").await?;
    let second = place.replica("second", SHORT)?;
    second.wait_for_log("another process leads, waiting").await?;
    first.kill()?;
    second.wait_for_log("hub started").await?;
    assert_eq!(place.lease().await?.lease_transitions, Some(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_go_process_and_we_respect_each_others_lock() -> Result<()> {
    let place = Place::new().await?;
    let go = place.go_replica("go")?;
    let holder = place.is_held_by_another_than("").await?.holder_identity.unwrap_or_default();
    let ours = place.replica("ours", SHORT)?;
    let waiting = ours.wait_for_log("another process leads, waiting").await?;
    assert!(waiting.contains(&holder), "{waiting}");
    go.kill()?;
    ours.wait_for_log("hub started").await?;
    let lease = place.lease().await?;
    let own = lease.holder_identity.unwrap_or_default();
    assert_ne!(own, holder);
    assert_eq!(lease.lease_transitions, Some(1));

    let go = place.go_replica("go-again")?;
    // It reads the lease before it logs this, and takes it if it can.
    eventually("our lease is renewed while the Go process waits", || async {
        let renewed = place.lease().await?.renew_time > lease.renew_time;
        anyhow::Ok(renewed && go.log()?.contains("ttempting to acquire leader lease"))
    })
    .await?;
    assert_eq!(place.lease().await?.holder_identity, Some(own.clone()), "{}", go.log_tail());
    ours.signal(Signal::TERM)?;
    assert!(ours.wait().await?.success());
    assert_eq!(place.is_held_by_another_than(&own).await?.lease_transitions, Some(2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_holds_the_lock_of_what_it_runs_under_the_rights_of_deploy() -> Result<()> {
    let (world, dir) = (world().await?, TempDir::new("agent-lock")?);
    let account = rbac::BOOTSTRAP_SERVICE_ACCOUNT;
    let bootstrap = world.hub_plane.kubeconfig_for_service_account(namespaces::OPERATOR, account).await?;
    let own = world.managed_plane.kubeconfig_for_service_account(namespaces::AGENT, AGENT_ACCOUNT).await?;
    for (components, lock) in [
        ("registration,work", leases::KLUSTERLET_AGENT_LOCK),
        ("registration", leases::REGISTRATION_AGENT_LOCK),
        ("work", leases::WORK_AGENT_LOCK),
    ] {
        let agent = crate::program::agent(dir.path(), &unique("elected"), namespaces::AGENT, &bootstrap, &own)?;
        let agent = agent.args(["--components", components]).start()?;
        agent.wait_for_log("leading").await?;
        let held = lease(&world.managed, namespaces::AGENT, lock).await?;
        assert_ne!(held.holder_identity.unwrap_or_default(), "");
        agent.signal(Signal::TERM)?;
        assert!(agent.wait().await?.success(), "{}", agent.log_tail());
        let released = lease(&world.managed, namespaces::AGENT, lock).await?;
        assert_eq!(released.holder_identity.unwrap_or_default(), "", "{}", agent.log_tail());
    }
    Ok(())
}
