//! `ocm webhook`: admission of clusters, set bindings and works, and conversion of add-ons.

use std::path::PathBuf;

use clap::Args;
use ocm_api::{
    limits::MAX_MANIFEST_BYTES,
    webhooks::{HEALTH_PORT, METRICS_PORT, PORT},
};
use ocm_hub::{
    feature_gates,
    webhook::{self, WebhookConfig, admission::Admission},
};
use ocm_runtime::{
    Clock, Context,
    admin::{Tls, TlsOptions},
    client::Endpoint,
    feature_gates::FeatureGates,
};
use tracing::warn;

use crate::{args, flags::Given, process};

/// The user agent; the part before the slash is the field manager.
const USER_AGENT: &str = concat!("ocm-webhook/", env!("CARGO_PKG_VERSION"));

/// Run the webhooks that check clusters, set bindings and works, and convert add-ons between API versions
///
/// In the cluster it is the backend of the services cluster-manager-registration-webhook, cluster-manager-work-webhook and
/// cluster-manager-addon-webhook; for one outside, `ocm webhooks --url` and `ocm crds --conversion-url` set its address.
#[derive(Debug, Args)]
pub(crate) struct WebhookArgs {
    /// Kubeconfig of the hub, for access reviews. Defaults to the pod's service account; without either, add-ons are converted,
    /// and changes of clusters, bindings and works that need a right are refused
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Port for API servers, over HTTPS
    #[arg(long, value_name = "PORT", default_value_t = port(PORT))]
    port: u16,

    /// Folder with the certificate tls.crt and its key tls.key, in PEM, reloaded when they change
    #[arg(long, value_name = "FOLDER", default_value_os_t = certificates())]
    certdir: PathBuf,

    /// Port for /healthz, /livez and /readyz, over HTTP; 0 for none
    #[arg(long, value_name = "PORT", default_value_t = port(HEALTH_PORT))]
    health_probe_port: u16,

    /// Port for /metrics, over HTTP; 0 for none
    #[arg(long, value_name = "PORT", default_value_t = port(METRICS_PORT))]
    metrics_port: u16,

    /// Minimum TLS version: VersionTLS12 or VersionTLS13. VersionTLS10 and VersionTLS11 mean 1.2 [default: VersionTLS12]
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    tls_min_version: String,

    /// Cipher suites of TLS 1.2, by their IANA names, separated by commas [default: all strong ones]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    tls_cipher_suites: Vec<String>,

    /// Feature gates, as Name=true or Name=false, separated by commas. Only DefaultClusterSet, NilExecutorValidating and
    /// ManifestWorkReplicaSet have an effect here
    #[arg(long, value_name = "GATES", value_delimiter = ',')]
    feature_gates: Vec<String>,

    /// Maximum size of all manifests of a work, in bytes; larger works are refused
    #[arg(long = "manifestLimit", value_name = "NUMBER", default_value_t = MAX_MANIFEST_BYTES)]
    manifest_limit: usize,

    /// Log level: 0 is info, 1 to 3 are debug, 4 and more are trace. RUST_LOG takes precedence
    #[arg(short, long = "v", value_name = "LEVEL", default_value_t = 0)]
    verbosity: u8,
}

pub(crate) async fn run(args: WebhookArgs, given: &Given) -> anyhow::Result<()> {
    process::start_logs(args.verbosity);
    let gates = args::gates(&feature_gates::known(), &args.feature_gates)?;
    given.check(&gates.not_built)?;
    let context = process::context();
    let config = args.config(&context, gates)?;
    process::end_on_signal(&context)?;
    webhook::serve(&context, &config).await?;
    Ok(process::run_to_the_end(&context, context.ended()).await?)
}

impl WebhookArgs {
    fn config(&self, context: &Context, gates: FeatureGates) -> anyhow::Result<WebhookConfig> {
        let options = TlsOptions {
            cert_file: Some(self.certdir.join("tls.crt")),
            key_file: Some(self.certdir.join("tls.key")),
            min_version: self.tls_min_version.clone(),
            cipher_suites: self.tls_cipher_suites.clone(),
            host: String::new(),
        };
        let side = |port: u16| (port != 0).then(|| everywhere(port));
        Ok(WebhookConfig {
            address: everywhere(self.port),
            tls: Tls::new(&options, &Clock::System)?,
            probes: side(self.health_probe_port),
            metrics: side(self.metrics_port),
            admission: Admission::new(self.client(context)?, gates).with_manifest_limit(self.manifest_limit),
        })
    }

    /// A client of the hub, which need not answer yet: it may be waiting for this webhook.
    fn client(&self, context: &Context) -> anyhow::Result<Option<kube::Client>> {
        if self.kubeconfig.is_none() && !is_pod() {
            warn!(
                "no --kubeconfig is given and this is no pod: changes of clusters, bindings and works that take a right are \
                 refused"
            );
            return Ok(None);
        }
        let endpoint = Endpoint::load(context, self.kubeconfig.as_deref())?.reloading(context);
        Ok(Some(endpoint.client(USER_AGENT)?))
    }
}

/// Whether this process runs in a pod.
fn is_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// The unspecified address: for both families if the machine has IPv6.
fn everywhere(port: u16) -> String {
    let has_ipv6 = std::net::TcpListener::bind("[::]:0").is_ok();
    if has_ipv6 { format!("[::]:{port}") } else { format!("0.0.0.0:{port}") }
}

/// Kubernetes has ports as `i32`; those of the webhook are constants.
fn port(number: i32) -> u16 {
    number.try_into().unwrap_or_default()
}

/// The default folder of controller-runtime.
fn certificates() -> PathBuf {
    std::env::temp_dir().join("k8s-webhook-server/serving-certs")
}
