//! The hub the tests share, agents that register with it, and `clusteradm` as a process.

use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context as _, Result};
use k8s_openapi::{ByteString, api::certificates::v1::CertificateSigningRequest};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use ocm_api::{
    cluster::v1::{ManagedCluster, ManagedClusterSpec},
    crds::{self, Side},
    identities, labels, namespaces, rbac, signers,
};
use ocm_testing::{ControlPlane, client_for, fixture};
use p256::{ecdsa::SigningKey, pkcs8::LineEnding};
use tokio::sync::OnceCell;
use x509_cert::{
    builder::{Builder as _, RequestBuilder},
    der::EncodePem as _,
};

/// What `deploy/hub.yaml` installs.
pub(crate) const HUB_YAML: &str = include_str!("../../../../deploy/hub.yaml");

/// The hub, with everything that it needs before its first agent.
pub(crate) async fn hub() -> Result<&'static ControlPlane> {
    static READY: OnceCell<()> = OnceCell::const_new();
    let hub = fixture::hub();
    READY.get_or_try_init(|| prepare(hub)).await?;
    Ok(hub)
}

async fn prepare(hub: &ControlPlane) -> Result<()> {
    hub.apply_yaml(&hub_crds()?).await?;
    hub.kubectl_with_input(&["apply", "--server-side", "-f", "-"], HUB_YAML).await?;
    Ok(())
}

/// The CRDs of a hub.
pub(crate) fn hub_crds() -> Result<String> {
    let crds = crds::all()?.into_iter().filter(|crd| crd.side == Side::Hub);
    let crds = crds.map(|crd| ocm_apimachinery::yaml::to_string(&crd.definition)).collect::<Result<Vec<_>, _>>()?;
    Ok(crds.join("---\n"))
}

/// `clusteradm` with the rights of the hub's administrator.
pub(crate) fn clusteradm(hub: &ControlPlane, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clusteradm"));
    command.args(args).env("KUBECONFIG", hub.admin_kubeconfig()).stdin(Stdio::null());
    command
}

/// How a run of `clusteradm` ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    fn of(output: Output) -> Result<Self> {
        anyhow::ensure!(matches!(output.status.code(), Some(0 | 1)), "ended with {}: {output:?}", output.status);
        Ok(Self {
            success: output.status.success(),
            stdout: String::from_utf8(output.stdout)?,
            stderr: String::from_utf8(output.stderr)?,
        })
    }

    /// Fails unless the command failed with an error and a hint that hold these words, and printed no error on stdout.
    #[track_caller]
    pub(crate) fn assert_failed_with(&self, words: &[&str]) {
        assert!(!self.success, "{self:?}");
        assert!(self.stderr.contains("error: ") && self.stderr.contains("\nhint: "), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "{word} is missing in:\n{}", self.stderr);
        }
    }
}

/// Runs `clusteradm` to its end.
pub(crate) fn run(hub: &ControlPlane, args: &[&str]) -> Result<Ended> {
    finish(clusteradm(hub, args))
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command) -> Result<Ended> {
    Ended::of(command.output().context("failed to run clusteradm")?)
}

/// Waits for a running command to end.
pub(crate) fn wait(child: Child) -> Result<Ended> {
    Ended::of(child.wait_with_output()?)
}

/// A client with the identity that agents bootstrap with.
pub(crate) async fn bootstrap_client(hub: &ControlPlane) -> Result<Client> {
    let account = hub.kubeconfig_for_service_account(namespaces::OPERATOR, rbac::BOOTSTRAP_SERVICE_ACCOUNT).await?;
    client_for(&account).await
}

/// Registers a cluster, as an agent does first.
pub(crate) async fn register(client: &Client, cluster: &str) -> Result<()> {
    let object = ManagedCluster::new(cluster, ManagedClusterSpec::default());
    Api::all(client.clone()).create(&PostParams::default(), &object).await?;
    Ok(())
}

/// Asks for the certificate of an agent, as an agent does next. Returns the name of the request.
pub(crate) async fn request_certificate(client: &Client, cluster: &str, agent: &str) -> Result<String> {
    let organizations = [identities::cluster_group(cluster), identities::MANAGED_CLUSTERS_GROUP.to_owned()];
    request_with(client, cluster, &identities::cluster_user(cluster, agent), &organizations).await
}

/// Asks for a certificate with a subject of the test's choice. Returns the name of the request.
pub(crate) async fn request_with(
    client: &Client,
    cluster: &str,
    common_name: &str,
    organizations: &[String],
) -> Result<String> {
    let mut csr = CertificateSigningRequest {
        metadata: ObjectMeta {
            generate_name: Some(format!("{cluster}-")),
            labels: Some([(labels::CLUSTER_NAME.to_owned(), cluster.to_owned())].into()),
            ..ObjectMeta::default()
        },
        ..CertificateSigningRequest::default()
    };
    csr.spec.request = ByteString(pem(common_name, organizations)?.into_bytes());
    csr.spec.signer_name = signers::KUBE_API_SERVER_CLIENT.to_owned();
    csr.spec.usages = Some(signers::CLIENT_USAGES.map(str::to_owned).to_vec());
    let created = Api::all(client.clone()).create(&PostParams::default(), &csr).await?;
    created.metadata.name.context("the request has no name")
}

fn pem(common_name: &str, organizations: &[String]) -> Result<String> {
    let organizations: String = organizations.iter().map(|name| format!(",O={name}")).collect();
    let key = SigningKey::from_slice(&[7; 32])?;
    let subject = format!("CN={common_name}{organizations}").parse()?;
    let request = RequestBuilder::new(subject, &key)?.build::<p256::ecdsa::DerSignature>()?;
    Ok(request.to_pem(LineEnding::LF)?)
}
