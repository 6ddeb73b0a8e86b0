//! How a hub's API server calls the webhooks for admission.
//!
//! Every call that fails is a refusal (`failurePolicy: Fail`), and nothing is asked about status.

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference, ValidatingWebhook,
        ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use ocm_api::{
    cluster, namespaces,
    webhooks::{
        CLUSTER_MUTATORS, CLUSTER_VALIDATORS, PORT, REGISTRATION_SERVICE, REPLICA_SET_VALIDATORS, REVIEW_VERSIONS,
        SET_BINDING_VALIDATORS, WORK_SERVICE, WORK_VALIDATORS,
    },
    work,
};

use super::admission::Webhook;

/// How long API servers wait for an answer, in seconds.
const TIMEOUT: i32 = 10;

/// Where the API server reaches the webhooks.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The base of their URLs, such as `https://10.0.0.5:9443`; none for the service in the hub's namespace.
    pub url: Option<String>,
    /// The authority of their certificate, in PEM; none for those that the API server's machine trusts.
    pub authority: Option<Vec<u8>>,
    /// Whether ManifestWorkReplicaSets are checked, too. Webhooks without that feature gate do not serve it, and all changes of
    /// such sets would be refused.
    pub replica_sets: bool,
}

/// The configurations of all webhooks for admission.
#[derive(Clone, Debug)]
pub struct Configurations {
    /// Those that change objects.
    pub mutating: Vec<MutatingWebhookConfiguration>,
    /// Those that only check them.
    pub validating: Vec<ValidatingWebhookConfiguration>,
}

/// A webhook, and what it is asked about.
struct Installed {
    webhook: Webhook,
    /// Its own name, and that of its configuration.
    name: &'static str,
    service: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
}

const MUTATING: [Installed; 1] = [Installed {
    webhook: Webhook::MutateCluster,
    name: CLUSTER_MUTATORS,
    service: REGISTRATION_SERVICE,
    group: cluster::GROUP,
    version: "*",
    resource: "managedclusters",
}];

const VALIDATING: [Installed; 3] = [
    Installed { webhook: Webhook::ValidateCluster, name: CLUSTER_VALIDATORS, ..MUTATING[0] },
    Installed {
        webhook: Webhook::ValidateSetBinding,
        name: SET_BINDING_VALIDATORS,
        service: REGISTRATION_SERVICE,
        group: cluster::GROUP,
        version: "v1beta2",
        resource: "managedclustersetbindings",
    },
    Installed {
        webhook: Webhook::ValidateWork,
        name: WORK_VALIDATORS,
        service: WORK_SERVICE,
        group: work::GROUP,
        version: "*",
        resource: "manifestworks",
    },
];

/// Only on request: OCM has no such configuration.
const REPLICA_SETS: Installed = Installed {
    webhook: Webhook::ValidateReplicaSet,
    name: REPLICA_SET_VALIDATORS,
    resource: "manifestworkreplicasets",
    ..VALIDATING[2]
};

/// The configurations for webhooks that are reached at `target`.
#[must_use]
pub fn configurations(target: &Target) -> Configurations {
    Configurations {
        mutating: MUTATING.iter().map(|installed| mutating(target, installed)).collect(),
        validating: validated(target).map(|installed| validating(target, installed)).collect(),
    }
}

fn validated(target: &Target) -> impl Iterator<Item = &'static Installed> {
    VALIDATING.iter().chain(target.replica_sets.then_some(&REPLICA_SETS))
}

fn mutating(target: &Target, installed: &Installed) -> MutatingWebhookConfiguration {
    let webhook = MutatingWebhook {
        name: installed.name.into(),
        admission_review_versions: review_versions(),
        client_config: client_config(target, installed),
        failure_policy: Some("Fail".into()),
        rules: Some(vec![rule(installed)]),
        side_effects: "None".into(),
        timeout_seconds: Some(TIMEOUT),
        ..MutatingWebhook::default()
    };
    MutatingWebhookConfiguration { metadata: metadata(installed.name), webhooks: Some(vec![webhook]) }
}

fn validating(target: &Target, installed: &Installed) -> ValidatingWebhookConfiguration {
    let webhook = ValidatingWebhook {
        name: installed.name.into(),
        admission_review_versions: review_versions(),
        client_config: client_config(target, installed),
        failure_policy: Some("Fail".into()),
        rules: Some(vec![rule(installed)]),
        side_effects: "None".into(),
        timeout_seconds: Some(TIMEOUT),
        ..ValidatingWebhook::default()
    };
    ValidatingWebhookConfiguration { metadata: metadata(installed.name), webhooks: Some(vec![webhook]) }
}

fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }
}

fn review_versions() -> Vec<String> {
    REVIEW_VERSIONS.map(str::to_owned).to_vec()
}

fn client_config(target: &Target, Installed { webhook, service, .. }: &Installed) -> WebhookClientConfig {
    let url = target.url.as_ref().map(|base| format!("{}{}", base.trim_end_matches('/'), webhook.path()));
    let service = url.is_none().then(|| ServiceReference {
        name: (*service).into(),
        namespace: namespaces::HUB.into(),
        path: Some(webhook.path().into()),
        port: Some(PORT),
    });
    WebhookClientConfig { ca_bundle: target.authority.clone().map(ByteString), service, url }
}

/// What a webhook is asked about.
fn rule(Installed { group, version, resource, .. }: &Installed) -> RuleWithOperations {
    let list = |text: &str| Some(vec![text.to_owned()]);
    RuleWithOperations {
        api_groups: list(group),
        api_versions: list(version),
        resources: list(resource),
        operations: Some(vec!["CREATE".into(), "UPDATE".into()]),
        scope: None,
    }
}
