//! Warns if neither the admission policies that are part of the hub's installation nor webhooks in their place exist.
//!
//! The API server enforces them, so the hub itself works without them, and nobody would notice that everyone who can create a
//! ManagedCluster can accept it. At the start and every few hours: do the policies and their bindings exist, by name? Or
//! a webhook configuration of the same name? → a warning in the log, and an event on the hub's namespace.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    admissionregistration::v1::{
        ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
    },
    core::v1::Namespace,
};
use kube::{Api, Resource, core::Status};
use ocm_api::webhooks::{CLUSTER_VALIDATORS, SET_BINDING_VALIDATORS};
use ocm_runtime::{
    Controller, ControllerBuilder, Requeue, ResultExt as _, error::chain, events::NewEvent, write::Writable,
};
use tracing::{info, warn};

use crate::{
    context::HubContext,
    error::{Error, Result},
};

/// The only key of the queue: all policies are checked together.
const KEY: &str = "admission-policies";
/// The time between two checks.
const RECHECK: Duration = Duration::from_hours(4);
/// The reason of the event.
const MISSING: &str = "AdmissionPoliciesMissing";
const INSTALL: &str = "kubectl apply --server-side -f deploy/hub.yaml";

/// A policy of `deploy/hub.yaml`. Its binding has the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    name: &'static str,
    /// What it enforces, to complete "it is not checked".
    enforces: &'static str,
}

const POLICIES: [Policy; 2] = [
    Policy { name: CLUSTER_VALIDATORS, enforces: "who may accept clusters and put them into cluster sets" },
    Policy { name: SET_BINDING_VALIDATORS, enforces: "who may bind cluster sets to namespaces" },
];

/// See the module.
#[derive(Debug)]
pub(crate) struct AdmissionController {
    hub: HubContext,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    /// These do not exist.
    Missing(Vec<Missing>),
    /// The API server has no such kind: it is older than Kubernetes 1.30.
    Unsupported,
    /// The hub may not read them, for this reason.
    Unreadable(String),
}

/// A policy or binding that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    kind: String,
    policy: Policy,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.policy.name)
    }
}

/// Whether an object exists.
enum Existence {
    Exists,
    Missing,
    /// Its kind does not exist.
    Unsupported,
    /// The hub may not read it.
    Unreadable(String),
}

impl AdmissionController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        Self { hub: hub.clone() }
    }

    async fn existence<K: Writable>(&self, name: &str) -> Result<Existence> {
        let api: Api<K> = Api::all(self.hub.client.clone());
        let found = api.get_metadata(name).await.while_trying_to("get", || format!("{} {name}", K::kind(&())));
        match found {
            Ok(_) => Ok(Existence::Exists),
            Err(error) if error.is_not_found() => Ok(absence(error.status(), name)),
            // Rights are granted together with the policies: there is no need to ask every minute.
            Err(error) if error.is_denied() => Ok(Existence::Unreadable(chain(&error))),
            Err(error) => Err(error.into()),
        }
    }

    async fn record(&self, note: String) {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(self.hub.config.namespace.clone());
        let event = NewEvent { type_: "Warning", reason: MISSING, note };
        if let Err(error) = self.hub.recorder.record(&self.hub.config.namespace, &namespace, event).await {
            warn!(error = %chain(&error), "failed to record an event");
        }
    }
}

impl Controller for AdmissionController {
    const NAME: &'static str = "admission-policies";
    type Key = &'static str;
    type Observed = Observed;
    type Plan = Option<String>;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, &'static str>) {
        builder.queue().add(KEY);
    }

    async fn observe(&self, _: &&'static str) -> Result<Option<Observed>> {
        let mut missing = Vec::new();
        for policy in POLICIES {
            let webhook = self.existence::<ValidatingWebhookConfiguration>(policy.name).await?;
            if matches!(webhook, Existence::Exists) {
                continue;
            }
            let found = [
                (ValidatingAdmissionPolicy::kind(&()), self.existence::<ValidatingAdmissionPolicy>(policy.name).await?),
                (
                    ValidatingAdmissionPolicyBinding::kind(&()),
                    self.existence::<ValidatingAdmissionPolicyBinding>(policy.name).await?,
                ),
            ];
            for (kind, existence) in found {
                match existence {
                    Existence::Exists => {}
                    Existence::Missing => missing.push(Missing { kind: kind.into_owned(), policy }),
                    Existence::Unsupported => return Ok(Some(Observed::Unsupported)),
                    Existence::Unreadable(cause) => return Ok(Some(Observed::Unreadable(cause))),
                }
            }
        }
        Ok(Some(Observed::Missing(missing)))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Option<String> {
        match observed {
            Observed::Missing(missing) if missing.is_empty() => None,
            Observed::Missing(missing) => Some(warning(missing)),
            Observed::Unsupported => Some(format!(
                "{} Use a hub whose Kubernetes is 1.30 or newer, which has ValidatingAdmissionPolicies, and install them \
                 with: {INSTALL}. {OTHERS}",
                unchecked(&POLICIES)
            )),
            Observed::Unreadable(cause) => Some(format!(
                "The hub cannot check whether its admission policies are installed: {cause}. Grant the right with: {INSTALL}."
            )),
        }
    }

    async fn apply(&self, _: &Observed, warning: Option<String>) -> Result<()> {
        match warning {
            Some(warning) => {
                warn!("{warning}");
                self.record(warning).await;
            }
            None => info!("the admission policies of the hub are installed"),
        }
        Ok(())
    }

    async fn report(&self, _: &Observed, (): (), _: Timestamp) -> Result<Requeue> {
        Ok(Requeue::After(RECHECK))
    }
}

/// Webhooks make the policies unnecessary.
const OTHERS: &str =
    "Or run ocm webhook, and have the API server call it: ocm webhooks | kubectl apply --server-side -f -.";

fn warning(missing: &[Missing]) -> String {
    let mut policies: Vec<_> = missing.iter().map(|missing| missing.policy).collect();
    policies.dedup();
    let names: Vec<_> = missing.iter().map(ToString::to_string).collect();
    format!("{} Missing: {}. Install what is missing with: {INSTALL}. {OTHERS}", unchecked(&policies), names.join(", "))
}

fn unchecked(policies: &[Policy]) -> String {
    let enforced: Vec<_> = policies.iter().map(|policy| policy.enforces).collect();
    format!("The API server does not check {}.", enforced.join(", and "))
}

/// An API server names in its answer the object that does not exist, unless it does not have its kind.
fn absence(answer: Option<&Status>, name: &str) -> Existence {
    let names = |answer: &Status| answer.details.as_ref().is_some_and(|details| details.name == name);
    if answer.is_some_and(names) { Existence::Missing } else { Existence::Unsupported }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ocm_apimachinery::yaml;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::now;

    /// Kind and name of what `deploy/hub.yaml` installs of the API group of admission.
    fn installed() -> Vec<(String, String)> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/hub.yaml");
        let objects = yaml::from_str_multi::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap();
        let text =
            |object: &Value, field: &str| object.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let admission =
            objects.iter().filter(|object| text(object, "/apiVersion").starts_with("admissionregistration"));
        admission.map(|object| (text(object, "/kind"), text(object, "/metadata/name"))).collect()
    }

    #[test]
    fn the_policies_and_bindings_of_the_installation_are_checked_and_no_others() {
        let checked = POLICIES.iter().flat_map(|policy| {
            let kinds = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
            kinds.map(|kind| (kind.to_owned(), policy.name.to_owned()))
        });
        assert_eq!(installed(), checked.collect::<Vec<_>>());
    }

    fn planned(observed: &Observed) -> Option<String> {
        AdmissionController::plan(observed, now())
    }

    #[test]
    fn the_warning_says_what_is_not_checked_what_is_missing_and_how_to_install_it() {
        assert_eq!(planned(&Observed::Missing(vec![])), None);
        let missing = |kind: &str, policy| Missing { kind: kind.into(), policy };
        let both = vec![
            missing("ValidatingAdmissionPolicy", POLICIES[0]),
            missing("ValidatingAdmissionPolicyBinding", POLICIES[0]),
        ];
        let warning = planned(&Observed::Missing(both)).unwrap();
        assert!(
            warning.starts_with("The API server does not check who may accept clusters and put them into"),
            "{warning}"
        );
        assert!(warning.contains(&format!("ValidatingAdmissionPolicyBinding {CLUSTER_VALIDATORS}. ")), "{warning}");
        assert!(warning.contains(INSTALL) && !warning.contains("who may bind"), "{warning}");
        let old = planned(&Observed::Unsupported).unwrap();
        assert!(old.contains("1.30 or newer") && old.contains("who may bind"), "{old}");
        let denied = planned(&Observed::Unreadable("failed to get it: no".into())).unwrap();
        assert!(denied.contains("failed to get it: no. Grant the right with: kubectl apply"), "{denied}");
    }

    #[test]
    fn a_kind_that_the_server_does_not_have_is_not_taken_for_a_missing_object() {
        let answer = |details: Value| -> Status {
            serde_json::from_value(json!({"status": "Failure", "code": 404, "message": "m", "details": details}))
                .unwrap()
        };
        assert!(matches!(absence(Some(&answer(json!({"name": "a", "kind": "k"}))), "a"), Existence::Missing));
        assert!(matches!(absence(Some(&answer(json!({}))), "a"), Existence::Unsupported));
    }
}
