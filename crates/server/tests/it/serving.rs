//! The listener of a real process: HTTPS, open probes, guarded metrics.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use http::Request;
use kube::Config;
use ocm_api::namespaces;
use ocm_testing::{Process, Seen, TempDir, eventually, unique, write_kubeconfig};

use crate::world::{HUB_ACCOUNT, World, world};

/// A hub in a process of its own.
pub(crate) struct Served {
    pub(crate) world: World,
    address: String,
    _hub: Process,
    _dir: TempDir,
}

impl Served {
    pub(crate) async fn new(flags: &[&str]) -> Result<Self> {
        let (world, dir) = (world().await?, TempDir::new("serving")?);
        let kubeconfig = world.hub_plane.kubeconfig_for_service_account(namespaces::HUB, HUB_ACCOUNT).await?;
        write_kubeconfig(&kubeconfig, dir.path().join("kubeconfig"))?;
        let hub = Process::build("hub", crate::program::ocm(), dir.path().join("log"))
            .args(["hub", "--controllers", "shared-cluster-roles", "--disable-leader-election"])
            .args(["--listen", "127.0.0.1:0"])
            .args(flags)
            .arg("--kubeconfig")
            .arg(dir.path().join("kubeconfig"))
            .without_env("RUST_LOG")
            .start()?;
        let line = hub.wait_for_log("serving /healthz").await?;
        let address = line.split("address=").nth(1).context("the line has no address")?.trim().to_owned();
        Ok(Self { world, address, _hub: hub, _dir: dir })
    }

    /// Gets a path. Returns the status code and the body.
    async fn get(&self, path: &str, token: Option<&str>) -> Result<(u16, String)> {
        self.send(Request::get(path).body(Vec::new())?, token).await
    }

    /// Sends a request. Returns the status code and the body.
    pub(crate) async fn send(&self, request: Request<Vec<u8>>, token: Option<&str>) -> Result<(u16, String)> {
        ocm_runtime::client::install_crypto_provider();
        let mut config = Config::new(format!("https://{}", self.address).parse()?);
        config.accept_invalid_certs = true;
        config.auth_info.token = token.map(|token| token.to_owned().into());
        let client = ocm_runtime::client::connect(&config, "test")?;
        let response = client.send(request.map(Into::into)).await?;
        let code = response.status().as_u16();
        let body = response.into_body().collect_bytes().await?;
        Ok((code, String::from_utf8(body.to_vec())?))
    }

    pub(crate) async fn token(&self, account: &str) -> Result<String> {
        let token = self.world.hub_plane.kubectl(&["create", "token", account, "--namespace", "default"]).await?;
        Ok(token.trim().to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_are_open() -> Result<()> {
    let served = Served::new(&["--tls-min-version", "VersionTLS13"]).await?;
    for path in ["/healthz", "/livez"] {
        let (code, body) = served.get(path, None).await?;
        assert_eq!((code, body.as_str()), (200, "ok\n"), "{path}");
    }
    eventually("it is ready", || async {
        let (code, body) = served.get("/readyz", None).await?;
        anyhow::Ok(if code == 200 { Seen::Settled(()) } else { Seen::NotYet(body) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_for_users_whom_the_cluster_allows_to_get_them() -> Result<()> {
    let served = Served::new(&["--tls-cipher-suites", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]).await?;
    let (plane, account) = (served.world.hub_plane, unique("scraper"));
    plane.kubectl(&["create", "serviceaccount", &account, "--namespace", "default"]).await?;

    let (code, body) = served.get("/metrics", None).await?;
    assert_eq!(code, 401);
    assert!(body.contains("Authorization: Bearer"), "{body}");
    let (code, body) = served.get("/metrics", Some("made-up")).await?;
    assert_eq!(code, 401);
    assert!(body.contains("does not know this token"), "{body}");
    let (code, body) = served.get("/metrics", Some(&served.token(&account).await?)).await?;
    assert_eq!(code, 403);
    assert!(body.contains(&format!("system:serviceaccount:default:{account} may not get /metrics")), "{body}");
    assert!(body.contains("--non-resource-url=/metrics"), "{body}");

    plane.kubectl(&["create", "clusterrole", &account, "--verb=get", "--non-resource-url=/metrics"]).await?;
    let subject = format!("--serviceaccount=default:{account}");
    let role = format!("--clusterrole={account}");
    plane.kubectl(&["create", "clusterrolebinding", &account, &role, &subject]).await?;
    let metrics = eventually("the right is known", || async {
        // A denial is cached for a while, but only for its token.
        let (code, body) = served.get("/metrics", Some(&served.token(&account).await?)).await?;
        anyhow::Ok(if code == 200 { Seen::Settled(body) } else { Seen::NotYet(body) })
    })
    .await?;
    assert!(metrics.contains("ocm_build_info{version=") && metrics.contains("ocm_watch_synced{kind="), "{metrics}");
    let reviews =
        r#"ocm_api_writes_total{verb="create",group="authentication.k8s.io",resource="tokenreviews",code="201"}"#;
    assert!(metrics.contains(reviews), "{metrics}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stalls_in_its_handshake_delays_no_other() -> Result<()> {
    let served = Served::new(&[]).await?;
    let stalled: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(&served.address)?;
            // The first byte of a TLS record.
            stream.write_all(&[0x16, 0x03, 0x01]).map(|()| stream)
        })
        .collect::<std::io::Result<_>>()?;
    assert_eq!(served.get("/healthz", None).await?.0, 200);
    drop(stalled);
    Ok(())
}
