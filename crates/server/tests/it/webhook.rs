//! `ocm webhook` as a process, and a real API server that calls it.

use std::{
    ffi::OsStr,
    io::{Read as _, Write as _},
    net::{Ipv6Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use http::Request;
use kube::{Config, core::conversion::ConversionReview};
use ocm_testing::{ControlPlane, Port, Process, Seen, Signal, TempDir, eventually, fixture, unique};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

const ADDONS: &str = "managedclusteraddons";
const MANAGEMENT: &str = "clustermanagementaddons";
const NAMESPACE: &str = "addon.open-cluster-management.io/v1alpha1-install-namespace";

/// A hub's API server whose add-ons a webhook of its own converts.
struct Stage {
    plane: ControlPlane,
    webhook: Webhook,
}

/// A webhook in a process of its own.
pub(crate) struct Webhook {
    ports: [Port; 3],
    pub(crate) dir: TempDir,
    /// The hub that it asks for rights.
    kubeconfig: Option<PathBuf>,
    process: Option<Process>,
}

/// A certificate for loopback that is its own authority, and its key, both PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    key: String,
}

impl Pair {
    pub(crate) fn new() -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        Ok(Self { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() })
    }

    fn write(&self, dir: &Path) -> Result<()> {
        std::fs::write(dir.join("tls.key"), &self.key)?;
        Ok(std::fs::write(dir.join("tls.crt"), &self.certificate)?)
    }
}

impl Webhook {
    pub(crate) async fn start(pair: &Pair, kubeconfig: Option<PathBuf>) -> Result<Self> {
        let (dir, ports) = (TempDir::new("webhook")?, [Port::free()?, Port::free()?, Port::free()?]);
        pair.write(dir.path())?;
        let mut webhook = Self { ports, dir, kubeconfig, process: None };
        webhook.restart().await?;
        Ok(webhook)
    }

    pub(crate) async fn restart(&mut self) -> Result<()> {
        let [port, health, metrics] = self.ports.each_ref().map(|port| port.number().to_string());
        let process = Process::build("webhook", crate::program::ocm(), self.dir.path().join("log"))
            .args(["webhook", "--port", &port, "--health-probe-port", &health, "--metrics-port", &metrics, "--certdir"])
            .arg(self.dir.path())
            .arg("--feature-gates=ManifestWorkReplicaSet=true")
            .args(self.kubeconfig.iter().flat_map(|file| [OsStr::new("--kubeconfig"), file.as_os_str()]))
            .without_env("RUST_LOG")
            .start()?;
        process.wait_for_log("serving webhooks").await?;
        self.process = Some(process);
        Ok(())
    }

    pub(crate) async fn stop(&mut self) -> Result<()> {
        let process = self.process.take().context("the webhook does not run")?;
        process.signal(Signal::TERM)?;
        ensure!(process.wait().await?.success(), "{}", process.log_tail());
        Ok(())
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports[0].number())
    }

    /// The answer to a GET over HTTP at the port of probes (1) or metrics (2).
    fn get(&self, port: usize, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports[port].number()))?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// The status code and text of the answer to a request at the port for API servers.
    async fn ask(&self, request: Request<Vec<u8>>) -> Result<(u16, String)> {
        ocm_runtime::client::install_crypto_provider();
        let mut config = Config::new(self.url().parse()?);
        config.accept_invalid_certs = true;
        match ocm_runtime::client::connect(&config, "test")?.request_text(request).await {
            Ok(text) => Ok((200, text)),
            Err(kube::Error::Api(status)) => Ok((status.code, status.message)),
            Err(error) => bail!(error),
        }
    }
}

impl Stage {
    /// An API server that trusts `trusted`, and a webhook that shows `shown`.
    async fn new(trusted: &Pair, shown: &Pair) -> Result<Self> {
        let (plane, webhook) = tokio::try_join!(ControlPlane::start(), Webhook::start(shown, None))?;
        let authority = webhook.dir.path().join("trusted.crt");
        std::fs::write(&authority, &trusted.certificate)?;
        let crds = Command::new(crate::program::ocm())
            .args(["crds", "--hub", "--conversion-url", &webhook.url(), "--conversion-ca-file"])
            .arg(&authority)
            .output()?;
        ensure!(crds.status.success(), "{}", String::from_utf8_lossy(&crds.stderr));
        plane.apply_yaml(&String::from_utf8(crds.stdout)?).await?;
        Ok(Self { plane, webhook })
    }

    async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.plane.kubectl(args).await
    }

    async fn create(&self, object: &Value) -> Result<String> {
        self.plane.kubectl_with_input(&["create", "-f", "-"], &object.to_string()).await
    }

    /// A namespace of the test's own.
    async fn namespace(&self) -> Result<String> {
        let name = unique("cluster");
        self.kubectl(&["create", "namespace", &name]).await?;
        Ok(name)
    }

    /// An object in a version.
    async fn get(&self, plural: &str, version: &str, namespace: &str, name: &str) -> Result<Value> {
        let kind = format!("{plural}.{version}.addon.open-cluster-management.io");
        let text = self.kubectl(&["get", &kind, name, "--namespace", namespace, "-o", "json"]).await?;
        Ok(serde_json::from_str(&text)?)
    }
}

/// The stage that tests share if they break nothing.
async fn stage() -> Result<&'static Stage> {
    static STAGE: OnceCell<Stage> = OnceCell::const_new();
    let start = || async {
        // On the fixture's runtime, since that of a test ends with it.
        let start = async {
            let pair = Pair::new()?;
            Stage::new(&pair, &pair).await
        };
        fixture::runtime().spawn(start).await?
    };
    STAGE.get_or_try_init(start).await
}

fn addon(version: &str, namespace: &str, name: &str, spec: &Value) -> Value {
    let api_version = format!("addon.open-cluster-management.io/{version}");
    let metadata = json!({ "name": name, "namespace": namespace });
    json!({ "apiVersion": api_version, "kind": "ManagedClusterAddOn", "metadata": metadata, "spec": spec })
}

fn management(version: &str, name: &str, spec: &Value) -> Value {
    let api_version = format!("addon.open-cluster-management.io/{version}");
    let metadata = json!({ "name": name });
    json!({ "apiVersion": api_version, "kind": "ClusterManagementAddOn", "metadata": metadata, "spec": spec })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_created_in_one_version_is_read_in_the_other() -> Result<()> {
    let (stage, name) = (stage().await?, unique("hello"));
    let namespace = stage.namespace().await?;
    let kinds = json!([{ "group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs" }]);
    stage.create(&management("v1alpha1", &name, &json!({ "supportedConfigs": kinds }))).await?;
    stage.create(&addon("v1alpha1", &namespace, &name, &json!({ "installNamespace": "default" }))).await?;
    let new = stage.get(MANAGEMENT, "v1beta1", "", &name).await?;
    assert_eq!(new["spec"]["defaultConfigs"][0]["name"], "__reserved_no_default__");
    assert_eq!((&new["status"], &new["spec"]["installStrategy"]["type"]), (&json!({}), &json!("Manual")));
    let new = stage.get(ADDONS, "v1beta1", &namespace, &name).await?;
    assert_eq!((&new["metadata"]["annotations"][NAMESPACE], &new["spec"]), (&json!("default"), &json!({})));

    let name = unique("new");
    stage.create(&addon("v1beta1", &namespace, &name, &json!({}))).await?;
    let old = stage.get(ADDONS, "v1alpha1", &namespace, &name).await?;
    assert_eq!(old["spec"]["installNamespace"], "open-cluster-management-agent-addon");
    let new = stage.get(ADDONS, "v1beta1", &namespace, &name).await?;
    assert_eq!(new["metadata"]["annotations"][NAMESPACE], "open-cluster-management-agent-addon");
    let kind = format!("{ADDONS}.v1beta1.addon.open-cluster-management.io");
    let list = stage.kubectl(&["get", &kind, "-n", &namespace, "-o", "name"]).await?;
    assert_eq!(list.lines().count(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_written_in_one_version_is_read_in_the_other() -> Result<()> {
    let (stage, name) = (stage().await?, unique("hello"));
    let namespace = stage.namespace().await?;
    stage.create(&addon("v1alpha1", &namespace, &name, &json!({}))).await?;
    let kind = format!("{ADDONS}.v1beta1.addon.open-cluster-management.io");
    let subject = json!({ "user": "u", "groups": ["g"] });
    let registration = json!({ "type": "kubeClient", "kubeClient": { "driver": "token", "subject": subject } });
    let patch = json!({ "status": { "namespace": "default", "registrations": [registration] } }).to_string();
    let patched = ["patch", &kind, &name, "-n", &namespace, "--subresource=status", "--type=merge", "-p", &patch];
    stage.kubectl(&patched).await?;
    let old = stage.get(ADDONS, "v1alpha1", &namespace, &name).await?;
    let expected = json!([{ "signerName": "kubernetes.io/kube-apiserver-client", "subject": subject }]);
    assert_eq!((&old["status"]["registrations"], &old["status"]["kubeClientDriver"]), (&expected, &json!("token")));
    let new = stage.get(ADDONS, "v1beta1", &namespace, &name).await?;
    assert_eq!(new["status"]["registrations"], json!([registration]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_in_one_version_keeps_what_only_the_other_has() -> Result<()> {
    let (stage, name) = (stage().await?, unique("edited"));
    let spec = json!({ "addOnConfiguration": { "crdName": "kept.example.com" } });
    stage.create(&management("v1alpha1", &name, &spec)).await?;
    let kind = format!("{MANAGEMENT}.v1beta1.addon.open-cluster-management.io");
    stage.kubectl(&["annotate", &kind, &name, "edited=yes"]).await?;
    let old = stage.get(MANAGEMENT, "v1alpha1", "", &name).await?;
    assert_eq!(old["spec"]["addOnConfiguration"], spec["addOnConfiguration"]);
    assert_eq!(old["metadata"]["annotations"], json!({ "edited": "yes" }));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_of_fields_may_apply_in_different_versions() -> Result<()> {
    let (stage, name) = (stage().await?, unique("applied"));
    let namespace = stage.namespace().await?;
    let apply = |manager: &'static str, object: Value| {
        let manager = format!("--field-manager={manager}");
        async move {
            let args = ["apply", "--server-side", &manager, "-f", "-"];
            stage.plane.kubectl_with_input(&args, &object.to_string()).await
        }
    };
    let config = json!({ "group": "g", "resource": "r", "name": "n" });
    let new = addon("v1beta1", &namespace, &name, &json!({ "configs": [config] }));
    let mut labelled = new.clone();
    labelled["metadata"]["labels"] = json!({ "mine": "1" });
    apply("old", addon("v1alpha1", &namespace, &name, &json!({ "installNamespace": "default" }))).await?;
    apply("new", labelled).await?;
    let old = stage.get(ADDONS, "v1alpha1", &namespace, &name).await?;
    assert_eq!(old["spec"], json!({ "installNamespace": "default", "configs": [config] }));
    assert_eq!(old["metadata"]["labels"], json!({ "mine": "1" }));

    // What one owner no longer applies is removed, and what the other owns stays.
    apply("new", new).await?;
    apply("old", addon("v1alpha1", &namespace, &name, &json!({ "installNamespace": "other" }))).await?;
    let old = stage.get(ADDONS, "v1alpha1", &namespace, &name).await?;
    assert_eq!(old["spec"], json!({ "installNamespace": "other", "configs": [config] }));
    assert!(old["metadata"].get("labels").is_none(), "{old}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_its_version_does_not_allow_is_refused_and_one_with_a_wrong_namespace_can_be_deleted()
-> Result<()> {
    let stage = stage().await?;
    let namespace = stage.namespace().await?;
    let nameless = json!({ "configs": [{ "group": "g", "resource": "r" }] });
    let error = stage.create(&addon("v1beta1", &namespace, "bad", &nameless)).await.unwrap_err();
    assert!(format!("{error:#}").contains("spec.configs[0].name"), "{error:#}");

    let mut object = addon("v1beta1", &namespace, "wrong", &json!({}));
    object["metadata"]["annotations"] = json!({ NAMESPACE: "No Namespace" });
    object["metadata"]["finalizers"] = json!(["example.com/f"]);
    stage.create(&object).await?;
    let kind = format!("{ADDONS}.v1beta1.addon.open-cluster-management.io");
    stage.kubectl(&["delete", &kind, "wrong", "-n", &namespace, "--wait=false"]).await?;
    let free = r#"{"metadata":{"finalizers":null}}"#;
    stage.kubectl(&["patch", &kind, "wrong", "-n", &namespace, "--type=merge", "-p", free]).await?;
    assert!(stage.get(ADDONS, "v1alpha1", &namespace, "wrong").await.is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn addons_are_deleted_with_their_namespace_and_with_their_owner() -> Result<()> {
    let (stage, name) = (stage().await?, unique("owned"));
    let (gone, stays) = (stage.namespace().await?, stage.namespace().await?);
    stage.create(&management("v1beta1", &name, &json!({}))).await?;
    let uid = stage.get(MANAGEMENT, "v1beta1", "", &name).await?["metadata"]["uid"].take();
    let owner = json!([{
        "apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ClusterManagementAddOn", "name": name,
        "uid": uid, "controller": true, "blockOwnerDeletion": true,
    }]);
    for namespace in [&gone, &stays] {
        let mut object = addon("v1alpha1", namespace, &name, &json!({}));
        object["metadata"]["ownerReferences"] = owner.clone();
        stage.create(&object).await?;
    }
    stage.kubectl(&["delete", "namespace", &gone, "--timeout=60s"]).await?;
    stage.kubectl(&["delete", MANAGEMENT, &name]).await?;
    eventually("the add-on of the deleted owner is gone", || async {
        anyhow::Ok(stage.kubectl(&["get", ADDONS, "-n", &stays, "-o", "name"]).await?.is_empty())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_no_conversion_review_is_refused() -> Result<()> {
    let webhook = &stage().await?.webhook;
    let post = |body: Vec<u8>| Request::post("/convert").body(body);
    let (code, body) = webhook.ask(post(b"rubbish".to_vec())?).await?;
    assert_eq!(code, 400);
    assert!(body.contains("no ConversionReview"), "{body}");
    // The webhook answers without reading the body, and closes the connection: the client may notice that first.
    let too_large = || async { anyhow::Ok(webhook.ask(post(vec![b' '; (16 << 20) + 1])?).await.ok()) };
    let (code, body) = eventually("a request that is too large is answered", too_large).await?;
    assert_eq!(code, 413);
    assert!(body.contains("16 MiB"), "{body}");
    assert_eq!(webhook.ask(Request::get("/convert").body(Vec::new())?).await?.0, 405);
    assert_eq!(webhook.ask(Request::post("/other").body(Vec::new())?).await?.0, 404);

    let bad = addon("v1alpha1", "cluster1", "bad", &json!({ "installNamespace": 1 }));
    let request =
        json!({ "uid": "1", "desiredAPIVersion": "addon.open-cluster-management.io/v1beta1", "objects": [bad] });
    let review = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request });
    let (code, body) = webhook.ask(post(review.to_string().into_bytes())?).await?;
    assert_eq!(code, 200);
    let response = serde_json::from_str::<ConversionReview>(&body)?.response.context("there is no response")?;
    assert!(response.result.message.contains("cluster1/bad"), "{body}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_metrics_are_open_on_ports_of_their_own() -> Result<()> {
    let stage = stage().await?;
    for path in ["/healthz", "/livez", "/readyz"] {
        let response = stage.webhook.get(1, path)?;
        assert!(response.starts_with("HTTP/1.1 200 ") && response.ends_with("ok\n"), "{path}: {response}");
    }
    assert!(stage.webhook.get(1, "/convert")?.starts_with("HTTP/1.1 404 "));
    let name = unique("counted");
    stage.create(&management("v1beta1", &name, &json!({}))).await?;
    let metrics = stage.webhook.get(2, "/metrics")?;
    assert!(metrics.contains(r#"ocm_webhook_requests_total{path="/convert",result="success"}"#), "{metrics}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_listens_on_ipv6_too_where_there_is_any() -> Result<()> {
    let webhook = &stage().await?.webhook;
    let connect = |port: &Port| TcpStream::connect((Ipv6Addr::LOCALHOST, port.number())).is_ok();
    let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    assert_eq!(webhook.ports.each_ref().map(connect), [has_ipv6; 3]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_certificate_is_reloaded_and_a_webhook_that_is_down_is_named() -> Result<()> {
    let (first, second) = (Pair::new()?, Pair::new()?);
    let mut stage = Stage::new(&second, &first).await?;
    let name = unique("hello");
    stage.create(&management("v1alpha1", &name, &json!({}))).await?;
    let error = stage.get(MANAGEMENT, "v1beta1", "", &name).await.unwrap_err();
    assert!(format!("{error:#}").contains("certificate"), "{error:#}");

    second.write(stage.webhook.dir.path())?;
    eventually("the API server trusts the new certificate", || async {
        stage.get(MANAGEMENT, "v1beta1", "", &name).await.map(Seen::Settled)
    })
    .await?;

    stage.webhook.stop().await?;
    let error = stage.get(MANAGEMENT, "v1beta1", "", &name).await.unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("conversion webhook") && error.contains(&stage.webhook.url()), "{error}");
    stage.get(MANAGEMENT, "v1alpha1", "", &name).await?;

    stage.webhook.restart().await?;
    eventually("the API server reaches the webhook again", || async {
        stage.get(MANAGEMENT, "v1beta1", "", &name).await.map(Seen::Settled)
    })
    .await?;
    Ok(())
}
