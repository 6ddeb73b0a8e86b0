//! Why objects cannot be applied, and what to tell the owner of the work.

use kube::core::Status;
use ocm_api::reasons;
use ocm_runtime::{Class, Classified, Error, error::chain};

use super::apply::FieldConflict;
use crate::work::{
    executor::ExecutorError, manifest::ManifestError, retry::Retry, strategy::StrategyError, update::UpdateError,
};

/// Why an object could not be applied.
#[derive(Debug, thiserror::Error)]
pub(in crate::work) enum ApplyError {
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    #[error(transparent)]
    Update(#[from] UpdateError),
    #[error(transparent)]
    FieldConflict(#[from] FieldConflict),
    #[error("the managed cluster does not know {kind} of {api_version}: install its CRD, then this is retried")]
    UnknownKind { kind: String, api_version: String },
    #[error("{0} lives in a namespace: set metadata.namespace in the manifest")]
    NoNamespace(String),
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error(transparent)]
    Request(#[from] Error),
}

impl Classified for ApplyError {
    fn class(&self) -> Class {
        match self {
            // Only an edit of the work helps.
            Self::Manifest(_) | Self::Strategy(_) | Self::Update(_) | Self::NoNamespace(_) => Class::Invalid,
            Self::FieldConflict(_) => Class::Refused,
            Self::UnknownKind { .. } => Class::Transient,
            Self::Executor(error) => error.class(),
            Self::Request(error) => error.class(),
        }
    }
}

impl ApplyError {
    /// When the object is applied again.
    pub(in crate::work) fn retry(&self) -> Retry {
        match self {
            // Rights are granted at any moment, and no event says so.
            Self::Executor(ExecutorError::Denied(_)) => Retry::InAMinute,
            _ => Retry::after(self.class()),
        }
    }

    /// The reason of the object's condition `Applied`.
    pub(in crate::work) fn reason(&self) -> &'static str {
        match self {
            Self::Strategy(StrategyError::IgnoreFields { .. }) => reasons::manifest::SSA_IGNORE_FIELD_ERROR,
            _ => reasons::manifest::APPLY_FAILED,
        }
    }

    /// The error for the owner of the work: what is wrong and what to do.
    pub(in crate::work) fn explain(&self) -> String {
        match self {
            Self::Request(error) => explain(error),
            _ => chain(self),
        }
    }
}

/// A failed request for the owner of the work: what is wrong and what to do.
pub(in crate::work) fn explain(error: &Error) -> String {
    let text = chain(error);
    match error.status().and_then(Denial::of) {
        Some(Denial::Rights) => {
            let rule = error.status().and_then(|status| missing_rule(&status.message));
            let rule = rule.map(|rule| format!(" and the rule {rule}")).unwrap_or_default();
            format!("{text}. {}{rule}", Denial::Rights.next_step())
        }
        Some(denial) => format!("{text}. {}", denial.next_step()),
        None if error.code() == Some(422) => {
            format!("{text}. Correct the manifest; it is applied again every few minutes")
        }
        None if error.is_not_found() && text.contains("namespaces ") => {
            format!("{text}. Create the namespace, or add it to this work")
        }
        None => text,
    }
}

/// The rule of a role that grants the right that the API server names in its refusal.
fn missing_rule(message: &str) -> Option<String> {
    let (_, right) = message.split_once(" cannot ")?;
    let (verb, right) = right.split_once(" resource \"")?;
    let (resource, right) = right.split_once("\" in API group \"")?;
    let (group, _) = right.split_once('"')?;
    Some(format!("apiGroups: [{group:?}], resources: [{resource:?}], verbs: [{verb:?}]"))
}

/// Who refused a request that is well-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Denial {
    /// The agent lacks a right.
    Rights,
    /// The agent may not grant rights that it does not have.
    Escalation,
    Quota,
    TerminatingNamespace,
    Policy,
    Webhook,
    /// Another admission plugin.
    Admission,
}

impl Denial {
    fn of(status: &Status) -> Option<Self> {
        let message = status.message.as_str();
        if message.contains("admission webhook ") && message.contains(" denied the request") {
            return Some(Self::Webhook);
        }
        if message.contains("ValidatingAdmissionPolicy ") && message.contains(" denied request") {
            return Some(Self::Policy);
        }
        (status.code == 403).then(|| Self::of_forbidden(status))
    }

    fn of_forbidden(status: &Status) -> Self {
        let message = status.message.as_str();
        let mut causes = status.details.iter().flat_map(|details| &details.causes);
        if causes.any(|cause| cause.reason == "NamespaceTerminating") {
            Self::TerminatingNamespace
        } else if message.contains("is attempting to grant RBAC permissions") {
            Self::Escalation
        } else if message.contains("User \"") && message.contains(" cannot ") {
            Self::Rights
        } else if message.contains("exceeded quota") || message.contains("failed quota") {
            Self::Quota
        } else {
            Self::Admission
        }
    }

    fn next_step(self) -> &'static str {
        match self {
            Self::Rights => {
                "Grant the agent's service account this right, for example by a ClusterRole with the label \
                 open-cluster-management.io/aggregate-to-work=true"
            }
            Self::Escalation => {
                "Grant the agent's service account these rights as well, or the verbs escalate and bind"
            }
            Self::Quota => "Raise the ResourceQuota of the namespace, or request less",
            Self::TerminatingNamespace => "The namespace is being deleted: this is retried until it exists again",
            Self::Policy => "Change the manifest so that the policy allows it, or the policy on the managed cluster",
            Self::Webhook => "Change the manifest so that the webhook allows it, or the webhook's configuration",
            Self::Admission => "Change the manifest so that the managed cluster admits it",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answer(code: u16, message: &str, details: &Value) -> Error {
        let status = json!({"status": "Failure", "code": code, "message": message, "details": details});
        let source = Box::new(kube::Error::Api(serde_json::from_value(status).unwrap()));
        Error::Request { verb: "create", noun: "ConfigMap ns/a".into(), source }
    }

    fn next_step(code: u16, message: &str, details: &Value) -> String {
        explain(&answer(code, message, details))
    }

    #[test]
    fn rights_are_to_be_granted_only_where_rights_are_missing() {
        let rbac = "configmaps is forbidden: User \"agent\" cannot create resource \"configmaps\" in API group \"\" in the \
                    namespace \"ns\"";
        assert!(next_step(403, rbac, &json!({})).contains("aggregate-to-work"));
        let escalation = "clusterroles.rbac.authorization.k8s.io \"a\" is forbidden: user \"agent\" (groups=[]) is \
                          attempting to grant RBAC permissions not currently held:\n{}";
        assert!(next_step(403, escalation, &json!({})).contains("escalate"));
    }

    #[test]
    fn a_missing_right_is_named_as_the_rule_that_grants_it() {
        let message = "deployments.apps \"a\" is forbidden: User \"system:serviceaccount:ns:agent\" cannot patch resource \
                       \"deployments\" in API group \"apps\" in the namespace \"shop\"";
        let text = next_step(403, message, &json!({}));
        assert!(
            text.ends_with(r#"and the rule apiGroups: ["apps"], resources: ["deployments"], verbs: ["patch"]"#),
            "{text}"
        );
        assert_eq!(missing_rule("User \"agent\" cannot get path \"/metrics\""), None);
    }

    #[test]
    fn what_admission_denies_names_who_denied_it() {
        let terminating = "configmaps \"a\" is forbidden: unable to create new content in namespace ns because it is \
                           being terminated";
        let cause =
            json!({"causes": [{"reason": "NamespaceTerminating", "message": "", "field": "metadata.namespace"}]});
        let policy = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
        let cases = [
            (403, terminating, cause, "namespace is being deleted"),
            (403, "pods \"a\" is forbidden: exceeded quota: q, requested: pods=1", json!({}), "ResourceQuota"),
            (403, "pods \"a\" is forbidden: failed quota: q: must specify cpu", json!({}), "ResourceQuota"),
            (403, "admission webhook \"w.io\" denied the request: no", json!({}), "the webhook allows it"),
            (400, "admission webhook \"w.io\" denied the request: no", json!({}), "the webhook allows it"),
            (403, policy, json!({}), "the policy allows it"),
            (422, policy, json!({}), "the policy allows it"),
            (403, "pods \"a\" is forbidden: violates PodSecurity \"restricted\"", json!({}), "cluster admits it"),
            (422, "ConfigMap \"a\" is invalid: data: Invalid value", json!({}), "Correct the manifest"),
        ];
        for (code, message, details, expected) in cases {
            let text = next_step(code, message, &details);
            assert!(text.contains(expected) && !text.contains("aggregate-to-work"), "{text}");
        }
    }

    #[test]
    fn a_missing_namespace_is_to_be_created() {
        let text = next_step(404, "namespaces \"ns\" not found", &json!({}));
        assert!(text.ends_with("Create the namespace, or add it to this work"), "{text}");
    }
}
