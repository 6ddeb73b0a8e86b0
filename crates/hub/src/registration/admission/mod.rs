//! Reports what the API server does not check because neither the admission policies that are part of the hub's installation
//! nor webhooks in their place are installed.
//!
//! The API server enforces them, so the hub itself works without them, and nobody would notice that everyone who can create a
//! ManagedCluster can accept it. At the start and every few minutes: does a policy with its binding, or a webhook, check every
//! change ([`enforcement`])? → a metric, a warning of `/readyz`, and when that changes or was said long ago, a warning in
//! the log and an event on the hub's namespace ([`report`]).

mod enforcement;
mod report;
#[cfg(test)]
mod tests;

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    admissionregistration::v1::{
        ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
    },
    core::v1::Namespace,
};
use kube::{Api, core::Status};
use ocm_runtime::{
    Context, Controller, ControllerBuilder, Requeue, ResultExt as _, error::chain, events::NewEvent, write::Writable,
};
use tracing::{info, warn};

use self::{
    enforcement::{CHECKS, Check, Enforcement, Found, State},
    report::{Report, Said},
};
use crate::{
    context::HubContext,
    error::{Error, Result},
};

/// The only key of the queue: all checks are looked up together.
const KEY: &str = "admission-policies";
/// The time between two lookups.
const RECHECK: Duration = Duration::from_mins(10);
/// The reason of the event.
const MISSING: &str = "AdmissionPoliciesMissing";

/// See the module.
#[derive(Debug)]
pub(crate) struct AdmissionController {
    hub: HubContext,
    context: Context,
    said: Mutex<Option<Said>>,
}

/// What enforces each check, and what was logged last.
#[derive(Debug)]
pub(crate) struct Observed {
    states: Vec<(Check, State)>,
    said: Option<Said>,
}

impl AdmissionController {
    pub(crate) fn new(context: &Context, hub: &HubContext) -> Self {
        Self { hub: hub.clone(), context: context.clone(), said: Mutex::default() }
    }

    async fn state(&self, check: Check) -> Result<State> {
        let found = Found {
            webhooks: self.get::<ValidatingWebhookConfiguration>(check.name).await?,
            policy: self.get::<ValidatingAdmissionPolicy>(check.name).await?,
            binding: self.get::<ValidatingAdmissionPolicyBinding>(check.name).await?,
        };
        Ok(found.state(check))
    }

    async fn get<K: Writable>(&self, name: &str) -> Result<Enforcement<K>> {
        let api: Api<K> = Api::all(self.hub.client.clone());
        let found = api.get(name).await.while_trying_to("get", || format!("{} {name}", K::kind(&())));
        match found {
            Ok(object) => Ok(Enforcement::Exists(Box::new(object))),
            Err(error) if error.is_not_found() => Ok(absence(error.status(), name)),
            // Rights are granted together with the policies: there is no need to ask every minute.
            Err(error) if error.is_denied() => Ok(Enforcement::Unreadable(chain(&error))),
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

    /// Metrics and readiness of the process.
    fn show(&self, states: &[(Check, State)], warning: Option<&String>) {
        for (check, state) in states {
            self.context.metrics().admission_enforced(check.kind, Some(*state == State::Enforced));
        }
        self.context.health().warn(KEY, warning.cloned());
    }
}

/// What a process that no longer leads knows is out of date.
impl Drop for AdmissionController {
    fn drop(&mut self) {
        CHECKS.iter().for_each(|check| self.context.metrics().admission_enforced(check.kind, None));
        self.context.health().warn(KEY, None);
    }
}

impl Controller for AdmissionController {
    const NAME: &'static str = "admission-policies";
    type Key = &'static str;
    type Observed = Observed;
    type Plan = Report;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, &'static str>) {
        builder.queue().add(KEY);
    }

    async fn observe(&self, _: &&'static str) -> Result<Option<Observed>> {
        let mut states = Vec::new();
        for check in CHECKS {
            states.push((check, self.state(check).await?));
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Some(Observed { states, said }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Report {
        report::plan(observed, now)
    }

    async fn apply(&self, observed: &Observed, report: Report) -> Result<()> {
        self.show(&observed.states, report.warning.as_ref());
        if let Some(said) = report.say {
            match &said.warning {
                Some(warning) => {
                    warn!("{warning}");
                    self.record(warning.clone()).await;
                }
                None => info!("who may accept clusters, bind cluster sets and use executors is checked"),
            }
            *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
        }
        Ok(())
    }

    async fn report(&self, _: &Observed, (): (), _: Timestamp) -> Result<Requeue> {
        Ok(Requeue::After(RECHECK))
    }
}

/// An API server names in its answer the object that does not exist, unless it does not have its kind.
fn absence<K>(answer: Option<&Status>, name: &str) -> Enforcement<K> {
    let names = |answer: &Status| answer.details.as_ref().is_some_and(|details| details.name == name);
    if answer.is_some_and(names) { Enforcement::Missing } else { Enforcement::Unsupported }
}
