//! Whether a policy with its binding, or a webhook, checks every change.

use k8s_openapi::{
    api::admissionregistration::v1::{
        RuleWithOperations, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhook,
        ValidatingWebhookConfiguration,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::Resource;
use ocm_api::{
    cluster,
    webhooks::{CLUSTER_VALIDATORS, SET_BINDING_VALIDATORS, WORK_VALIDATORS},
    work,
};

/// What must be checked of the changes of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Check {
    /// The kind, for the metric.
    pub(super) kind: &'static str,
    pub(super) group: &'static str,
    pub(super) resource: &'static str,
    /// The name of the policy of `deploy/hub.yaml`, of its binding, and of the configuration of the webhook.
    pub(super) name: &'static str,
    /// To complete "it is not checked".
    pub(super) enforces: &'static str,
}

pub(super) const CHECKS: [Check; 3] = [
    Check {
        kind: "ManagedCluster",
        group: cluster::GROUP,
        resource: "managedclusters",
        name: CLUSTER_VALIDATORS,
        enforces: "who may accept clusters and put them into cluster sets",
    },
    Check {
        kind: "ManagedClusterSetBinding",
        group: cluster::GROUP,
        resource: "managedclustersetbindings",
        name: SET_BINDING_VALIDATORS,
        enforces: "who may bind cluster sets to namespaces",
    },
    Check {
        kind: "ManifestWork",
        group: work::GROUP,
        resource: "manifestworks",
        name: WORK_VALIDATORS,
        enforces: "who may create works with which executor",
    },
];

/// An object that enforces, or why there is none.
#[derive(Clone, Debug)]
pub(super) enum Enforcement<K> {
    Exists(Box<K>),
    Missing,
    /// The API server has no such kind: it is older than Kubernetes 1.30.
    Unsupported,
    /// The hub may not read it, for this reason.
    Unreadable(String),
}

/// What was found for a check.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) webhooks: Enforcement<ValidatingWebhookConfiguration>,
    pub(super) policy: Enforcement<ValidatingAdmissionPolicy>,
    pub(super) binding: Enforcement<ValidatingAdmissionPolicyBinding>,
}

/// Whether a check is enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Enforced,
    /// It is not, for these reasons.
    Not(Vec<String>),
    /// It is not, and the API server has no policies.
    Unsupported,
    /// It is not known, for this reason.
    Unknown(String),
}

impl Found {
    pub(super) fn state(&self, check: Check) -> State {
        let webhook = match &self.webhooks {
            Enforcement::Exists(webhooks) => match webhook_gap(webhooks, check) {
                None => return State::Enforced,
                gap => gap,
            },
            _ => None,
        };
        let policy = gap(&self.policy, check.name, policy_gap);
        let binding = gap(&self.binding, check.name, |binding| binding_gap(binding, check.name));
        match (policy, binding) {
            (Gap::None, Gap::None) => State::Enforced,
            (Gap::Unknown(cause), _) | (_, Gap::Unknown(cause)) => State::Unknown(cause),
            (Gap::Unsupported, _) | (_, Gap::Unsupported) if webhook.is_none() => State::Unsupported,
            (policy, binding) => State::Not(policy.into_iter().chain(binding).chain(webhook).collect()),
        }
    }
}

/// Why an object does not enforce.
enum Gap {
    None,
    Some(String),
    Unsupported,
    Unknown(String),
}

impl IntoIterator for Gap {
    type Item = String;
    type IntoIter = std::option::IntoIter<String>;

    fn into_iter(self) -> Self::IntoIter {
        if let Self::Some(gap) = self { Some(gap) } else { None }.into_iter()
    }
}

fn gap<K: Resource<DynamicType = ()>>(
    found: &Enforcement<K>,
    name: &str,
    of: impl Fn(&K) -> Option<&'static str>,
) -> Gap {
    let kind = K::kind(&());
    match found {
        Enforcement::Exists(object) => of(object).map_or(Gap::None, |gap| Gap::Some(format!("{kind} {name} {gap}"))),
        Enforcement::Missing => Gap::Some(format!("{kind} {name} does not exist")),
        Enforcement::Unsupported => Gap::Unsupported,
        Enforcement::Unreadable(cause) => Gap::Unknown(cause.clone()),
    }
}

const FAILS_OPEN: &str = "allows every change that it fails to check (failurePolicy is not Fail)";

fn policy_gap(policy: &ValidatingAdmissionPolicy) -> Option<&'static str> {
    let spec = policy.spec.as_ref()?;
    fails_open(spec.failure_policy.as_deref()).then_some(FAILS_OPEN)
}

fn binding_gap(binding: &ValidatingAdmissionPolicyBinding, policy: &str) -> Option<&'static str> {
    let spec = binding.spec.clone().unwrap_or_default();
    if spec.policy_name.as_deref() != Some(policy) {
        return Some("binds another policy");
    }
    if !spec.validation_actions.iter().flatten().any(|action| action == "Deny") {
        return Some("does not deny (validationActions lacks Deny)");
    }
    spec.match_resources.is_some().then_some("is restricted to some objects (matchResources)")
}

/// `None` if one of the webhooks checks every change.
fn webhook_gap(configuration: &ValidatingWebhookConfiguration, check: Check) -> Option<String> {
    let gaps: Vec<_> = configuration.webhooks.iter().flatten().map(|webhook| gap_of(webhook, check)).collect();
    if gaps.iter().any(Option::is_none) {
        return None;
    }
    let gap = gaps.into_iter().flatten().next().unwrap_or("has no webhooks");
    Some(format!("ValidatingWebhookConfiguration {} {gap}", check.name))
}

fn gap_of(webhook: &ValidatingWebhook, check: Check) -> Option<&'static str> {
    let is_restricted = [&webhook.namespace_selector, &webhook.object_selector].into_iter().flatten().any(selects_some);
    if fails_open(webhook.failure_policy.as_deref()) {
        Some(FAILS_OPEN)
    } else if is_restricted || webhook.match_conditions.as_ref().is_some_and(|conditions| !conditions.is_empty()) {
        Some("is restricted to some objects (by a selector or matchConditions)")
    } else {
        let is_asked = |operation| webhook.rules.iter().flatten().any(|rule| covers(rule, check, operation));
        let is_complete = is_asked("CREATE") && is_asked("UPDATE");
        (!is_complete).then_some("is not called for every change (rules)")
    }
}

/// The default is `Fail`.
fn fails_open(policy: Option<&str>) -> bool {
    policy.is_some_and(|policy| policy != "Fail")
}

fn selects_some(selector: &LabelSelector) -> bool {
    *selector != LabelSelector::default()
}

fn covers(rule: &RuleWithOperations, check: Check, operation: &str) -> bool {
    let has = |list: &Option<Vec<String>>, wanted: &str| list.iter().flatten().any(|it| it == "*" || it == wanted);
    has(&rule.api_groups, check.group) && has(&rule.resources, check.resource) && has(&rule.operations, operation)
}
