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
    cluster::GROUP,
    namespaces,
    webhooks::{
        CLUSTER_MUTATORS, CLUSTER_VALIDATORS, PORT, REGISTRATION_SERVICE, REVIEW_VERSIONS, SET_BINDING_VALIDATORS,
    },
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
}

/// The configurations of all webhooks for admission.
#[derive(Clone, Debug)]
pub struct Configurations {
    /// Those that change objects.
    pub mutating: Vec<MutatingWebhookConfiguration>,
    /// Those that only check them.
    pub validating: Vec<ValidatingWebhookConfiguration>,
}

/// The configurations for webhooks that are reached at `target`.
#[must_use]
pub fn configurations(target: &Target) -> Configurations {
    let mutating = vec![mutating(target, CLUSTER_MUTATORS, Webhook::MutateCluster)];
    let validating =
        [(CLUSTER_VALIDATORS, Webhook::ValidateCluster), (SET_BINDING_VALIDATORS, Webhook::ValidateSetBinding)];
    let validating = validating.into_iter().map(|(name, webhook)| self::validating(target, name, webhook)).collect();
    Configurations { mutating, validating }
}

fn mutating(target: &Target, name: &str, webhook: Webhook) -> MutatingWebhookConfiguration {
    let webhook = MutatingWebhook {
        name: name.into(),
        admission_review_versions: review_versions(),
        client_config: client_config(target, webhook),
        failure_policy: Some("Fail".into()),
        rules: Some(vec![rule(webhook)]),
        side_effects: "None".into(),
        timeout_seconds: Some(TIMEOUT),
        ..MutatingWebhook::default()
    };
    MutatingWebhookConfiguration { metadata: metadata(name), webhooks: Some(vec![webhook]) }
}

fn validating(target: &Target, name: &str, webhook: Webhook) -> ValidatingWebhookConfiguration {
    let webhook = ValidatingWebhook {
        name: name.into(),
        admission_review_versions: review_versions(),
        client_config: client_config(target, webhook),
        failure_policy: Some("Fail".into()),
        rules: Some(vec![rule(webhook)]),
        side_effects: "None".into(),
        timeout_seconds: Some(TIMEOUT),
        ..ValidatingWebhook::default()
    };
    ValidatingWebhookConfiguration { metadata: metadata(name), webhooks: Some(vec![webhook]) }
}

fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }
}

fn review_versions() -> Vec<String> {
    REVIEW_VERSIONS.map(str::to_owned).to_vec()
}

fn client_config(target: &Target, webhook: Webhook) -> WebhookClientConfig {
    let url = target.url.as_ref().map(|base| format!("{}{}", base.trim_end_matches('/'), webhook.path()));
    let service = url.is_none().then(|| ServiceReference {
        name: REGISTRATION_SERVICE.into(),
        namespace: namespaces::HUB.into(),
        path: Some(webhook.path().into()),
        port: Some(PORT),
    });
    WebhookClientConfig { ca_bundle: target.authority.clone().map(ByteString), service, url }
}

/// What a webhook is asked about.
fn rule(webhook: Webhook) -> RuleWithOperations {
    let (version, resource) = match webhook {
        Webhook::MutateCluster | Webhook::ValidateCluster => ("*", "managedclusters"),
        Webhook::ValidateSetBinding => ("v1beta2", "managedclustersetbindings"),
    };
    let list = |text: &str| Some(vec![text.to_owned()]);
    RuleWithOperations {
        api_groups: list(GROUP),
        api_versions: list(version),
        resources: list(resource),
        operations: Some(vec!["CREATE".into(), "UPDATE".into()]),
        scope: None,
    }
}
