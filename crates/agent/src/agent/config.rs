//! The configuration of an agent.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use ocm_api::{
    addon::v1alpha1::KubeClientDriver,
    feature_gates::{self, GateSet},
    limits, namespaces, secrets,
};
use ocm_runtime::{
    ObjectKey,
    feature_gates::{FeatureGates, Known},
};

use super::{hubs::Hubs, names::Names};
use crate::work::{self, OfflineSettings};

/// Feature gates of the agent whose features are implemented.
const BUILT_GATES: &[&str] = &[
    feature_gates::CLUSTER_CLAIM,
    feature_gates::CLUSTER_PROPERTY,
    feature_gates::ADDON_MANAGEMENT,
    feature_gates::MULTIPLE_HUBS,
    feature_gates::RAW_FEEDBACK_JSON_STRING,
    feature_gates::EXECUTOR_VALIDATING_CACHES,
];

/// Which halves of the agent run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Components {
    /// Joining the hub, and reporting on the cluster.
    pub registration: bool,
    /// Applying ManifestWorks.
    pub work: bool,
}

/// The configuration of an agent. [`AgentConfig::new`] has OCM's defaults.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// The cluster's name on the hub. If empty: the one used before, or else a new UUID.
    pub cluster_name: String,
    /// Identifies the agent among those of its cluster. If empty: the one used before, or else five random characters.
    pub agent_id: String,
    /// The namespace of the agent's secrets, on the cluster that it runs on.
    pub namespace: String,
    /// The kubeconfig for the hub until the agent has its own credentials.
    pub bootstrap_kubeconfig: Option<PathBuf>,
    /// The hubs that the agent selects from, with the feature gate MultipleHubs. It takes the place of `bootstrap_kubeconfig`.
    pub hubs: Hubs,
    /// The secret with the bootstrap kubeconfig. The agent bootstraps again when it changes.
    pub bootstrap_kubeconfig_secret: String,
    /// The secret with the agent's own credentials for the hub.
    pub hub_kubeconfig_secret: String,
    /// The folder with the agent's own credentials for the hub.
    pub hub_kubeconfig_dir: PathBuf,
    /// Which halves run.
    pub components: Components,
    /// The host name, part of the reporting instance of events.
    pub host: String,
    /// The feature gates; see [`known_gates`]. A caller that parses them from user input also warns of those not built.
    pub feature_gates: FeatureGates,
    /// Annotations for the ManagedCluster; only those with the agents' prefix are used.
    pub cluster_annotations: BTreeMap<String, String>,
    /// Addresses of this cluster's API server for users of the hub, `https` only.
    pub spoke_external_server_urls: Vec<String>,
    /// The certificate authorities for these addresses, PEM.
    pub spoke_ca_bundle: Option<Vec<u8>>,
    /// How many claims and properties are reported, besides the reserved ones.
    pub max_custom_cluster_claims: usize,
    /// Suffixes of further reserved claims and properties.
    pub reserved_cluster_claim_suffixes: Vec<String>,
    /// How often the health of this cluster's API server is checked.
    pub cluster_healthcheck_period: Duration,
    /// The requested life time of certificates, in seconds; 0 for the hub's default.
    pub client_cert_expiration_seconds: i32,
    /// How agents of add-ons authenticate to the hub's API server.
    pub addon_driver: KubeClientDriver,
    /// The requested life time of tokens of add-ons, in seconds.
    pub addon_token_seconds: i64,
    /// How often the leases of add-ons are checked.
    pub addon_lease_period: Duration,
    /// Settings of the work half. [`run`](crate::run) fills in the names.
    pub work: work::Settings,
}

impl AgentConfig {
    /// An agent with both halves, and OCM's defaults for everything else.
    pub fn new(hub_kubeconfig_dir: impl Into<PathBuf>) -> Self {
        Self {
            cluster_name: String::new(),
            agent_id: String::new(),
            namespace: namespaces::AGENT.into(),
            bootstrap_kubeconfig: None,
            hubs: Hubs::default(),
            bootstrap_kubeconfig_secret: secrets::BOOTSTRAP_HUB_KUBECONFIG.into(),
            hub_kubeconfig_secret: secrets::HUB_KUBECONFIG.into(),
            hub_kubeconfig_dir: hub_kubeconfig_dir.into(),
            components: Components { registration: true, work: true },
            host: String::new(),
            feature_gates: FeatureGates::parse(&known_gates(), &[]).unwrap_or_default(),
            cluster_annotations: BTreeMap::new(),
            spoke_external_server_urls: Vec::new(),
            spoke_ca_bundle: None,
            max_custom_cluster_claims: limits::MAX_CUSTOM_CLUSTER_CLAIMS,
            reserved_cluster_claim_suffixes: Vec::new(),
            cluster_healthcheck_period: limits::CLUSTER_HEALTH_CHECK_PERIOD,
            client_cert_expiration_seconds: 0,
            addon_driver: KubeClientDriver::Csr,
            addon_token_seconds: limits::TOKEN_SECONDS,
            addon_lease_period: limits::ADDON_LEASE_CHECK_PERIOD,
            work: work::Settings::new("", "", ""),
        }
    }

    /// The work half's settings for a hub. Records of what was applied carry the agent's name, which is kept in the secret:
    /// it stays the same when the hub's address changes. Agents of earlier versions whose id was not configured used the
    /// hub's hash instead; such records are adopted.
    pub(crate) fn work_settings(&self, names: &Names, hub_server: &str) -> work::Settings {
        let named = work::Settings::new(&names.cluster, hub_server, &names.agent);
        let former_agent_id = self.agent_id.is_empty().then(|| named.hub_hash.clone());
        let json_raw = self.feature_gates.enabled(feature_gates::RAW_FEEDBACK_JSON_STRING);
        let feedback = work::FeedbackSettings { json_raw, ..self.work.feedback };
        let work::Settings { cluster, hub_hash, agent_id, .. } = named;
        let offline = OfflineSettings { namespace: self.namespace.clone(), ..self.work.offline.clone() };
        let caches_executors = self.feature_gates.enabled(feature_gates::EXECUTOR_VALIDATING_CACHES);
        work::Settings {
            cluster,
            hub_hash,
            agent_id,
            former_agent_id,
            offline,
            feedback,
            host: self.host.clone(),
            caches_executors,
            ..self.work.clone()
        }
    }

    /// Where the agent's own credentials for the hub are kept.
    pub(crate) fn hub_secret(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.hub_kubeconfig_secret)
    }

    /// The secrets that only the agent may use.
    pub(crate) fn own_secrets(&self) -> Vec<ObjectKey> {
        let own = [self.hub_kubeconfig_secret.clone(), self.bootstrap_kubeconfig_secret.clone()];
        own.into_iter().chain(self.hubs.secrets()).map(|name| ObjectKey::new(&self.namespace, name)).collect()
    }

    /// Whether the agent selects its hub from a list.
    pub(crate) fn selects_hub(&self) -> bool {
        self.components.registration && self.feature_gates.enabled(feature_gates::MULTIPLE_HUBS)
    }

    /// The requested life time of certificates; `None` for the hub's default.
    pub(crate) fn certificate_seconds(&self) -> Option<i32> {
        Some(self.client_cert_expiration_seconds).filter(|seconds| *seconds != 0)
    }

    /// Validates the options that do not depend on anything else.
    ///
    /// # Errors
    /// [`OptionError`] if an option is invalid.
    pub fn validate(&self) -> Result<(), OptionError> {
        if !self.components.registration && !self.components.work {
            return Err(OptionError::NoComponent);
        }
        if self.cluster_healthcheck_period.is_zero() {
            return Err(OptionError::HealthCheckPeriod);
        }
        let seconds = self.client_cert_expiration_seconds;
        if seconds != 0 && seconds < limits::MIN_CERTIFICATE_SECONDS {
            return Err(OptionError::CertificateLifeTime(seconds));
        }
        if let driver @ KubeClientDriver::Other(_) = &self.addon_driver {
            return Err(OptionError::AddOnDriver(driver.clone()));
        }
        let seconds = self.addon_token_seconds;
        if !(limits::MIN_TOKEN_SECONDS..=limits::MAX_TOKEN_SECONDS).contains(&seconds) {
            return Err(OptionError::TokenLifeTime(seconds));
        }
        if self.selects_hub() {
            self.hubs.validate()?;
        }
        match self.spoke_external_server_urls.iter().find(|url| !is_https(url)) {
            Some(url) => Err(OptionError::ExternalUrl(url.clone())),
            None => Ok(()),
        }
    }
}

fn is_https(url: &str) -> bool {
    url.parse::<http::Uri>().is_ok_and(|url| url.scheme_str() == Some("https") && url.host().is_some())
}

/// An invalid option.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// Neither half is enabled.
    #[error("neither registration nor work is enabled, so there is nothing to run: enable one")]
    NoComponent,
    /// The health check period is 0.
    #[error("--cluster-healthcheck-period is 0: give a time such as 1m")]
    HealthCheckPeriod,
    /// The life time is too short.
    #[error(
        "--client-cert-expiration-seconds is {0}: give at least {min}, or 0 to leave it to the hub",
        min = limits::MIN_CERTIFICATE_SECONDS
    )]
    CertificateLifeTime(i32),
    /// There is no such registration driver for add-ons.
    #[error(
        "--addon-kubeclient-registration-auth is {driver:?}: give csr (client certificates) or token (tokens of service \
         accounts on the hub)",
        driver = .0.as_str()
    )]
    AddOnDriver(KubeClientDriver),
    /// There is nothing to select from.
    #[error(
        "--bootstrap-kubeconfigs names {files}, and with the feature gate MultipleHubs there must be at least two: name the \
         bootstrap kubeconfig of each hub, or leave the gate out and name the only hub with --bootstrap-kubeconfig",
        files = if *.0 == 1 { "1 file".to_owned() } else { format!("{} files", .0) }
    )]
    TooFewHubs(usize),
    /// A bootstrap kubeconfig is in the list twice.
    #[error("--bootstrap-kubeconfigs names {path} twice: name one bootstrap kubeconfig for each hub", path = .0.display())]
    SameHubFile(PathBuf),
    /// The agent would leave every hub at once.
    #[error("--hub-connection-timeout-seconds is 0: give a time in seconds, such as 600")]
    HubTimeout,
    /// The life time of tokens is too short or too long.
    #[error(
        "--addon-token-expiration-seconds is {0}: give at least {min} and at most {max}, which API servers take",
        min = limits::MIN_TOKEN_SECONDS,
        max = limits::MAX_TOKEN_SECONDS
    )]
    TokenLifeTime(i64),
    /// Not a valid address of an API server.
    #[error("--spoke-external-server-urls holds {0:?}: give addresses such as https://api.example.com:6443")]
    ExternalUrl(String),
}

/// The feature gates of the agent, for [`FeatureGates::parse`].
#[must_use]
pub fn known_gates() -> Vec<Known> {
    let sets = [GateSet::SpokeRegistration, GateSet::SpokeWork];
    let gates = sets.into_iter().flat_map(feature_gates::of);
    gates
        .map(|gate| {
            let built = BUILT_GATES.contains(&gate.name);
            Known { name: gate.name, default: gate.default, stage: gate.stage.switch(), built }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> AgentConfig {
        AgentConfig::new("/tmp/hub")
    }

    #[test]
    fn the_defaults_are_valid_and_report_claims() {
        assert_eq!(config().validate(), Ok(()));
        assert!(config().feature_gates.enabled(feature_gates::CLUSTER_CLAIM));
    }

    #[test]
    fn records_carry_the_agents_name_and_those_under_the_hubs_hash_are_its_own_unless_its_id_was_configured() {
        let names = Names { cluster: "c1".into(), agent: "9hdnf".into() };
        let settings = config().work_settings(&names, "https://hub");
        assert_eq!(settings.agent_id, "9hdnf");
        assert_eq!(settings.former_agent_id, Some(settings.hub_hash));
        let configured = AgentConfig { agent_id: "9hdnf".into(), ..config() };
        assert_eq!(configured.work_settings(&names, "https://hub").former_agent_id, None);
    }

    #[test]
    fn agents_of_add_ons_may_have_tokens_of_ten_minutes() {
        let driver = KubeClientDriver::Token;
        assert_eq!(AgentConfig { addon_driver: driver, addon_token_seconds: 600, ..config() }.validate(), Ok(()));
    }

    #[test]
    fn options_that_cannot_work_are_refused() {
        let nothing = Components { registration: false, work: false };
        let config = config();
        let invalid = [
            AgentConfig { components: nothing, ..config.clone() },
            AgentConfig { cluster_healthcheck_period: Duration::ZERO, ..config.clone() },
            AgentConfig { client_cert_expiration_seconds: 600, ..config.clone() },
            AgentConfig { addon_driver: "x509".into(), ..config.clone() },
            AgentConfig { addon_token_seconds: 599, ..config.clone() },
            AgentConfig { addon_token_seconds: limits::MAX_TOKEN_SECONDS + 1, ..config.clone() },
            AgentConfig { spoke_external_server_urls: vec!["http://a".into()], ..config },
        ];
        for config in invalid {
            assert!(config.validate().is_err(), "{config:?}");
        }
    }
}
