//! `clusteradm check cluster`

use std::path::Path;

use anyhow::Result;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use ocm_api::{
    cluster::v1::ManagedCluster,
    crds::{self, Side},
    namespaces, rbac,
};
use ocm_testing::{ControlPlane, Port, TempDir, eventually, unique, write_kubeconfig};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::{
    check_hub::{assert_finds, finding},
    hub::{Ended, bootstrap_client, hub, in_process, register, run},
};

const AGENT_YAML: &str = include_str!("../../../../deploy/agent.yaml");

/// A hub, which is the managed cluster too, and the kubeconfig of an agent that bootstraps.
struct World {
    hub: &'static ControlPlane,
    folder: TempDir,
}

impl World {
    async fn new() -> Result<Self> {
        let world = Self { hub: hub().await?, folder: TempDir::new("check")? };
        world.hub.write_login(namespaces::OPERATOR, rbac::BOOTSTRAP_SERVICE_ACCOUNT, world.file()).await?;
        Ok(world)
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("bootstrap")
    }

    /// Changes the kubeconfig, given as JSON.
    fn edit(&self, change: impl FnOnce(&mut Value)) -> Result<()> {
        let mut kubeconfig = serde_json::from_str(&std::fs::read_to_string(self.file())?)?;
        change(&mut kubeconfig);
        Ok(std::fs::write(self.file(), kubeconfig.to_string())?)
    }

    async fn check(&self, more: &[&str]) -> Ended {
        check(self.hub.admin_kubeconfig(), &self.file(), more).await
    }
}

async fn check(managed: &Path, bootstrap: &Path, more: &[&str]) -> Ended {
    let bootstrap = bootstrap.display().to_string();
    let args = ["check", "cluster", "-o", "json", "--bootstrap-kubeconfig", &bootstrap];
    in_process(managed, &[&args, more].concat()).await
}

const HUB: usize = 0;
const MANAGED: usize = 1;

#[tokio::test]
async fn a_cluster_that_can_join_passes() -> Result<()> {
    let (world, name) = (World::new().await?, unique("joins"));
    let crds: Vec<_> = crds::all()?.into_iter().filter(|crd| crd.side == Side::Managed).collect();
    let established = format!("{} CRDs are established", crds.len());
    let crds =
        crds.iter().map(|crd| ocm_apimachinery::yaml::to_string(&crd.definition)).collect::<Result<Vec<_>, _>>()?;
    world.hub.apply_yaml(&crds.join("---\n")).await?;
    world.hub.kubectl_with_input(&["apply", "--server-side", "-f", "-"], AGENT_YAML).await?;
    let ended = eventually("everything is established", || async {
        let ended = world.check(&["--cluster-name", &name]).await;
        anyhow::Ok(ended.success.then_some(ended))
    })
    .await?;
    assert_finds(&ended, HUB, "address", "warning", &["this machine only"]);
    assert_finds(&ended, HUB, "credentials", "ok", &["agent-registration-bootstrap, until "]);
    assert_finds(&ended, HUB, "hub", "ok", &["managedclusters"]);
    assert_finds(&ended, HUB, "rights", "ok", &["the user has all", "rights"]);
    assert_finds(&ended, HUB, "cluster-name", "ok", &[&name, "is free"]);
    assert_finds(&ended, MANAGED, "crds", "ok", &[&established]);
    assert_finds(&ended, MANAGED, "rights", "ok", &["klusterlet-work-sa has all"]);
    assert!(Api::<ManagedCluster>::all(world.hub.client().await?).get_opt(&name).await?.is_none(), "it was created");

    let file = world.file().display().to_string();
    let several = run(world.hub, &["check", "cluster", "--bootstrap-kubeconfigs", &format!("{file},{file}")])?;
    assert_eq!(several.stdout.matches(&format!("hub {}", world.hub.url())).count(), 2, "{several:?}");
    assert!(several.stdout.contains("\nmanaged cluster https://"), "{several:?}");
    Ok(())
}

#[tokio::test]
async fn a_name_that_is_reserved_or_taken_is_refused_with_its_owner() -> Result<()> {
    let (world, name) = (World::new().await?, unique("taken"));
    let reserved = world.check(&["--cluster-name", "open-cluster-management"]).await;
    assert_finds(&reserved, HUB, "cluster-name", "failed", &["belongs to Kubernetes", "--cluster-name"]);
    assert_finds(&world.check(&[]).await, HUB, "cluster-name", "not checked", &["because --cluster-name"]);

    register(&bootstrap_client(world.hub).await?, &name).await?;
    let named = ["--cluster-name", name.as_str()];
    assert_finds(&world.check(&named).await, HUB, "cluster-name", "ok", &["waits", "clusteradm accept"]);

    let clusters = Api::<ManagedCluster>::all(world.hub.client().await?);
    let accept = Patch::Merge(json!({ "spec": { "hubAcceptsClient": true } }));
    clusters.patch(&name, &PatchParams::default(), &accept).await?;
    let available = json!([{
        "type": "ManagedClusterConditionAvailable", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "2026-11-21T10:00:00Z",
    }]);
    let status = Patch::Merge(json!({ "status": { "conditions": available } }));
    clusters.patch_status(&name, &PatchParams::default(), &status).await?;
    let ended = world.check(&named).await;
    assert_finds(&ended, HUB, "cluster-name", "failed", &["taken by an agent that is connected"]);
    Ok(())
}

#[tokio::test]
async fn an_expired_token_is_reported_as_expired() -> Result<()> {
    let world = World::new().await?;
    // Its claim `exp` is 2026-01-01T00:00:00Z.
    world.edit(|kubeconfig| kubeconfig["users"][0]["user"]["token"] = json!("e30.eyJleHAiOjE3NjcyMjU2MDB9.c2ln"))?;
    let ended = world.check(&["--cluster-name", "any"]).await;
    assert_finds(&ended, HUB, "connection", "ok", &[]);
    assert_finds(&ended, HUB, "credentials", "failed", &["they expired", "at 2026-01-01T00:00:00Z", "renew"]);
    for blocked in ["hub", "rights", "cluster-name"] {
        assert_finds(&ended, HUB, blocked, "not checked", &["because the check credentials failed"]);
    }
    Ok(())
}

#[tokio::test]
async fn an_unknown_authority_and_a_server_that_does_not_answer_end_the_checks_of_that_hub() -> Result<()> {
    let (world, port) = (World::new().await?, Port::free()?);
    world.edit(|kubeconfig| {
        kubeconfig["clusters"][0]["cluster"].as_object_mut().unwrap().remove("certificate-authority-data");
    })?;
    let ended = world.check(&[]).await;
    assert_finds(&ended, HUB, "connection", "failed", &["not issued by the certificate authority", "openssl s_client"]);
    assert_finds(&ended, HUB, "credentials", "not checked", &["because the check connection failed"]);
    assert_finds(&ended, HUB, "rights", "not checked", &["because the check connection failed"]);
    assert_finds(&ended, MANAGED, "connection", "ok", &[]);

    let nowhere = format!("https://127.0.0.1:{}", port.number());
    world.edit(|kubeconfig| kubeconfig["clusters"][0]["cluster"]["server"] = json!(nowhere))?;
    let ended = world.check(&[]).await;
    assert_finds(&ended, HUB, "connection", "failed", &["refused", &format!("curl --insecure {nowhere}/version")]);
    Ok(())
}

#[tokio::test]
async fn the_missing_rights_of_a_user_that_bootstraps_are_named() -> Result<()> {
    let world = World::new().await?;
    write_kubeconfig(&world.hub.kubeconfig_for_user(&unique("nobody"), &[])?, world.file())?;
    let ended = world.check(&["--cluster-name", "any"]).await;
    let missing = "create managedclustersets/join.cluster.open-cluster-management.io default";
    assert_finds(&ended, HUB, "rights", "failed", &["lacks 7 of 7", missing, "clusteradm get token"]);
    assert_finds(&ended, HUB, "cluster-name", "not checked", &["the rights do not suffice"]);
    Ok(())
}

#[tokio::test]
async fn a_clock_that_is_wrong_is_noticed() -> Result<()> {
    let world = World::new().await?;
    let address = server_of_the_past().await?;
    world.edit(|kubeconfig| kubeconfig["clusters"][0]["cluster"]["server"] = json!(format!("http://{address}")))?;
    let ended = world.check(&[]).await;
    assert_finds(&ended, HUB, "clock", "failed", &["days ahead of that of the API server", "timedatectl"]);
    assert_eq!(finding(&ended, MANAGED, "clock").0, "ok");
    Ok(())
}

/// A server that shows a time of the past in every answer.
async fn server_of_the_past() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let body = r#"{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}"#;
    let answer = format!(
        "HTTP/1.1 200 OK\r\nDate: Sun, 22 Nov 2020 10:00:00 GMT\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    Ok(address)
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_is_the_first_failure() -> Result<()> {
    let world = World::new().await?;
    let ended = check(world.hub.admin_kubeconfig(), Path::new("/nonexistent/bootstrap"), &[]).await;
    assert_finds(&ended, HUB, "kubeconfig", "failed", &["/nonexistent/bootstrap"]);
    assert_finds(&ended, HUB, "rights", "not checked", &["because the check kubeconfig failed"]);
    let ended = check(Path::new("/nonexistent/managed"), &world.file(), &[]).await;
    assert_finds(&ended, HUB, "rights", "ok", &[]);
    assert_finds(&ended, MANAGED, "kubeconfig", "failed", &["/nonexistent/managed"]);
    let usage = run(world.hub, &["check", "cluster"])?;
    assert!(!usage.success && usage.stderr.contains("--bootstrap-kubeconfig"), "{usage:?}");
    Ok(())
}
