//! What to say about checks that are not enforced, and when.

use jiff::{SignedDuration, Timestamp};

use super::{
    Observed,
    enforcement::{Check, State},
};

const INSTALL: &str = "kubectl apply --server-side -f deploy/hub.yaml";
/// Webhooks make the policies unnecessary.
const OTHERS: &str =
    "Or run ocm webhook, and have the API server call it: ocm webhooks | kubectl apply --server-side -f -.";
/// The time after which the same is said again: events are deleted after an hour or so.
const REPEAT: SignedDuration = SignedDuration::from_hours(4);

/// What was logged, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// `None` if everything was checked.
    pub(super) warning: Option<String>,
    pub(super) at: Timestamp,
}

/// What to show, and what to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// `None` if everything is checked.
    pub(super) warning: Option<String>,
    /// What is logged now.
    pub(super) say: Option<Said>,
}

pub(super) fn plan(observed: &Observed, now: Timestamp) -> Report {
    let warnings: Vec<_> = [unsupported, not_enforced, unknown].iter().filter_map(|of| of(&observed.states)).collect();
    let warning = (!warnings.is_empty()).then(|| warnings.join(" "));
    let is_said = |said: &Said| said.warning == warning && (warning.is_none() || now.duration_since(said.at) < REPEAT);
    let is_new = !observed.said.as_ref().is_some_and(is_said);
    Report { say: is_new.then(|| Said { warning: warning.clone(), at: now }), warning }
}

fn not_enforced(states: &[(Check, State)]) -> Option<String> {
    let gaps: Vec<_> = states.iter().filter_map(|(check, state)| Some((check, gaps_of(state)?))).collect();
    let causes: Vec<_> = gaps.iter().flat_map(|(_, gaps)| gaps.iter().map(String::as_str)).collect();
    let unchecked = unchecked(gaps.iter().map(|(check, _)| **check))?;
    Some(format!("{unchecked} {}. Install the policies with: {INSTALL}. {OTHERS}", causes.join(", ")))
}

fn gaps_of(state: &State) -> Option<&[String]> {
    if let State::Not(gaps) = state { Some(gaps) } else { None }
}

fn unsupported(states: &[(Check, State)]) -> Option<String> {
    let checks = states.iter().filter(|(_, state)| *state == State::Unsupported).map(|(check, _)| *check);
    let unchecked = unchecked(checks)?;
    Some(format!(
        "{unchecked} Use a hub whose Kubernetes is 1.30 or newer, which has ValidatingAdmissionPolicies, and install them with: \
         {INSTALL}. {OTHERS}"
    ))
}

/// One cause is enough: a missing right is missing for all.
fn unknown(states: &[(Check, State)]) -> Option<String> {
    let cause =
        states.iter().find_map(|(_, state)| if let State::Unknown(cause) = state { Some(cause) } else { None })?;
    Some(format!(
        "The hub cannot find out whether its admission policies are installed: {cause}. Grant the right with: {INSTALL}."
    ))
}

fn unchecked(checks: impl Iterator<Item = Check>) -> Option<String> {
    let enforced: Vec<_> = checks.map(|check| check.enforces).collect();
    (!enforced.is_empty()).then(|| format!("The API server does not check {}.", enforced.join(", and ")))
}
