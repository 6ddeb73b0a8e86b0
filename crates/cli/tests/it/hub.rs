//! The hub that the tests share, agents that register with it, and `clusteradm` as a process or in this one.

use std::{
    path::Path,
    process::{Child, Command, Output, Stdio},
};

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
use ocm_cli::{Console, Environment};
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

    /// Fails unless the command failed with errors that have a hint each, and these words are in them: not in what else
    /// it wrote to stderr. Errors never go to stdout.
    #[track_caller]
    pub(crate) fn assert_failed_with(&self, words: &[&str]) {
        assert!(!self.success && !self.stdout.contains("error: "), "{self:?}");
        let lines: Vec<_> = self.stderr.lines().skip_while(|line| !line.starts_with("error: ")).collect();
        let is_problem = |pair: &[&str]| pair[0].starts_with("error: ") && pair[1].starts_with("hint: ");
        let (problems, rest) = lines.as_chunks::<2>();
        assert!(!problems.is_empty() && rest.is_empty(), "no error, or one without a hint: {self:?}");
        assert!(problems.iter().all(|pair| is_problem(pair)), "an error without a hint: {self:?}");
        self.assert_says(&lines.join("\n"), words);
    }

    /// Fails unless these words are in what the command wrote to stderr before its errors, if any.
    #[track_caller]
    pub(crate) fn assert_noted(&self, words: &[&str]) {
        let notes: Vec<_> = self.stderr.lines().take_while(|line| !line.starts_with("error: ")).collect();
        self.assert_says(&notes.join("\n"), words);
    }

    #[track_caller]
    fn assert_says(&self, text: &str, words: &[&str]) {
        for word in words {
            assert!(text.contains(word), "{word} is missing in:\n{text}\nof {self:?}");
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

/// Runs `clusteradm` in this process, in an environment with nothing but a kubeconfig.
pub(crate) async fn in_process(kubeconfig: &Path, args: &[&str]) -> Ended {
    in_environment(|environment| environment.kubeconfig = Some(kubeconfig.into()), args).await
}

/// Runs `clusteradm` in this process, in an environment of the test's choice.
pub(crate) async fn in_environment(set: impl FnOnce(&mut Environment), args: &[&str]) -> Ended {
    let (console, captured) = Console::captured();
    let mut environment = Environment::empty(console);
    set(&mut environment);
    let code = ocm_cli::run(["clusteradm"].iter().chain(args).copied(), &environment).await;
    Ended { success: code == ocm_cli::SUCCESS, stdout: captured.stdout(), stderr: captured.stderr() }
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
    let csr = certificate_request(cluster, common_name, organizations)?;
    let created = Api::all(client.clone()).create(&PostParams::default(), &csr).await?;
    created.metadata.name.context("the request has no name")
}

/// A request for a certificate with a subject of the test's choice.
pub(crate) fn certificate_request(
    cluster: &str,
    common_name: &str,
    organizations: &[String],
) -> Result<CertificateSigningRequest> {
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
    Ok(csr)
}

fn pem(common_name: &str, organizations: &[String]) -> Result<String> {
    let organizations: String = organizations.iter().map(|name| format!(",O={name}")).collect();
    let key = SigningKey::from_slice(&[7; 32])?;
    let subject = format!("CN={common_name}{organizations}").parse()?;
    let request = RequestBuilder::new(subject, &key)?.build::<p256::ecdsa::DerSignature>()?;
    Ok(request.to_pem(LineEnding::LF)?)
}
