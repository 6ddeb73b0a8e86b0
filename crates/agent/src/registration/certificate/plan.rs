//! What to do about the certificate. Pure.

use std::{fmt, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, core::v1::Secret};
use ocm_api::{
    limits,
    secrets::{KEY_TLS_CERT, KEY_TLS_KEY},
};
use ocm_runtime::pki::{Bundle, Subject};

use super::{
    csr::{self, Answer},
    desired::DesiredCertificate,
};

/// Renewal starts earlier by up to this share of the threshold, at random.
const RENEWAL_JITTER: f64 = 0.25;
/// After how long an approved request without a certificate is reported.
const SIGNING_PATIENCE: Duration = Duration::from_secs(60);
/// The shortest time until the next pass.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// How long a renewal waits for its approval before the agent reports it: the hub approves within seconds.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);
/// How long a request with a proof by the former certificate waits before the agent reports it: the hub approves within
/// seconds, if its policy allows that.
const RECOVERY_PATIENCE: Duration = Duration::from_secs(60);

/// The state of the request.
#[derive(Clone, Default)]
pub(crate) enum State {
    #[default]
    Idle,
    Pending(Pending),
    Issued(Credentials),
}

impl State {
    pub(super) fn pending_name(&self) -> Option<String> {
        match self {
            Self::Pending(pending) => Some(pending.name.clone()),
            Self::Idle | Self::Issued(_) => None,
        }
    }

    /// Records since when the agent waits for a request.
    pub(super) fn waits_since(&mut self, now: Timestamp) {
        if let Self::Pending(pending) = self {
            pending.since.get_or_insert(now);
        }
    }
}

/// A request without outcome yet. No `Debug`: it holds the key.
#[derive(Clone)]
pub(crate) struct Pending {
    pub(crate) name: String,
    pub(crate) key: String,
    /// Since when the agent waits; set with the first report.
    pub(crate) since: Option<Timestamp>,
}

/// A certificate and its key. No `Debug`: it holds the key.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) certificate: Vec<u8>,
    pub(crate) bundle: Bundle,
    pub(crate) key: String,
}

/// The input of `plan`.
pub(crate) struct Observed {
    pub(crate) desired: Arc<DesiredCertificate>,
    pub(crate) secret: Option<Arc<Secret>>,
    pub(crate) state: State,
    /// The pending request as the hub has it.
    pub(crate) request: Option<Arc<CertificateSigningRequest>>,
    /// For how long this agent has known the pending request as approved and not signed.
    pub(crate) unsigned_for: Duration,
    /// How many requests of the cluster itself, or of the add-on, the hub has.
    pub(crate) requests_on_hub: usize,
    /// A number from 0 to 1.
    pub(crate) random: f64,
}

/// What to do.
pub(crate) enum Plan {
    /// The request has no outcome yet.
    Wait,
    /// The request is approved, and is to be signed within this time.
    Signing { left: Duration },
    /// The request is approved, and nothing signs it.
    Unsigned { request: String },
    /// The renewal has waited for its approval for too long.
    Overdue { request: String, since: Timestamp },
    /// The hub is to approve the request by its proof within this time, if its policy allows that.
    Recovering { left: Duration },
    /// The hub has not approved the request in spite of its proof.
    Unrecovered { request: String, since: Timestamp },
    /// The request is refused; the agent waits until it is deleted.
    Refused(Refusal),
    /// The certificate is valid.
    Keep { renew_in: Duration, bundle: Bundle },
    /// Request a certificate.
    Request,
    /// A certificate is needed, but the hub has too many requests already.
    Halt,
    /// Save the issued certificate.
    Save(Credentials),
    /// The request yielded no certificate.
    Restart(Cause),
}

/// A request that the hub has refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(super) request: String,
    said: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, said } = self;
        let separator = if said.is_empty() { "" } else { ": " };
        write!(f, "the hub has refused certificate signing request {request}{separator}{said}")
    }
}

/// Why a request yielded no certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It was deleted.
    Gone(String),
    /// The issued certificate cannot be used.
    Unusable {
        /// The request.
        request: String,
        /// What is wrong with the certificate.
        cause: String,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(request) => write!(f, "certificate signing request {request} was deleted on the hub"),
            Self::Unusable { request, cause } => {
                write!(f, "the certificate issued for request {request} cannot be used: {cause}")
            }
        }
    }
}

pub(super) fn plan(observed: &Observed, now: Timestamp) -> Plan {
    match &observed.state {
        State::Idle => idle(observed, now),
        State::Pending(pending) => answered(pending, observed, now),
        State::Issued(credentials) => Plan::Save(credentials.clone()),
    }
}

fn answered(pending: &Pending, observed: &Observed, now: Timestamp) -> Plan {
    let Some(request) = &observed.request else { return Plan::Restart(Cause::Gone(pending.name.clone())) };
    let certificate = match csr::answer(request) {
        Answer::NotYet => return waiting(pending, observed, now),
        Answer::Unsigned => return unsigned(pending, observed.unsigned_for),
        Answer::No(said) => return Plan::Refused(Refusal { request: pending.name.clone(), said: csr::said(said) }),
        Answer::Issued(certificate) => certificate,
    };
    match usable(certificate, &pending.key, &observed.desired.subject) {
        Ok(bundle) => Plan::Save(Credentials { certificate: certificate.to_vec(), bundle, key: pending.key.clone() }),
        Err(cause) => Plan::Restart(Cause::Unusable { request: pending.name.clone(), cause }),
    }
}

fn unsigned(pending: &Pending, since: Duration) -> Plan {
    match SIGNING_PATIENCE.saturating_sub(since) {
        Duration::ZERO => Plan::Unsigned { request: pending.name.clone() },
        left => Plan::Signing { left },
    }
}

/// First certificates and those of add-ons are approved by people or by managers, in their time.
fn waiting(pending: &Pending, observed: &Observed, now: Timestamp) -> Plan {
    if observed.request.as_deref().is_some_and(csr::has_proof) {
        return recovering(pending, now);
    }
    let is_renewal = || observed.desired.addon.is_none() && present(observed).is_some_and(|it| !it.is_expired(now));
    match pending.since.filter(|since| now.duration_since(*since) >= PATIENCE && is_renewal()) {
        Some(since) => Plan::Overdue { request: pending.name.clone(), since },
        None => Plan::Wait,
    }
}

fn recovering(pending: &Pending, now: Timestamp) -> Plan {
    let since = pending.since.unwrap_or(now);
    let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    match RECOVERY_PATIENCE.saturating_sub(waited) {
        Duration::ZERO => Plan::Unrecovered { request: pending.name.clone(), since },
        left => Plan::Recovering { left },
    }
}

/// The certificate in the secret.
fn present(observed: &Observed) -> Option<Bundle> {
    Bundle::parse(&observed.secret.as_ref()?.data.as_ref()?.get(KEY_TLS_CERT)?.0).ok()
}

fn usable(certificate: &[u8], key: &str, subject: &Subject) -> Result<Bundle, String> {
    let bundle = Bundle::parse(certificate).map_err(|error| error.to_string())?;
    bundle.check_key(key).map_err(|error| error.to_string())?;
    match bundle.is_for(subject) {
        true => Ok(bundle),
        false => Err("the certificate is for somebody else".into()),
    }
}

fn idle(observed: &Observed, now: Timestamp) -> Plan {
    match time_to_renewal(observed, now) {
        Some((renew_in, bundle)) if !renew_in.is_zero() => {
            Plan::Keep { renew_in: renew_in.max(SHORTEST_PAUSE), bundle }
        }
        _ if observed.requests_on_hub >= limits::MAX_CLUSTER_CSRS => Plan::Halt,
        _ => Plan::Request,
    }
}

/// The time until renewal, and the certificate; `None` if the secret's data is not valid.
fn time_to_renewal(observed: &Observed, now: Timestamp) -> Option<(Duration, Bundle)> {
    let data = observed.secret.as_ref()?.data.as_ref()?;
    let additional = observed.desired.additional(observed.secret.as_deref());
    if additional.iter().any(|(key, value)| data.get(key) != Some(value)) {
        return None;
    }
    let bundle = Bundle::parse(&data.get(KEY_TLS_CERT)?.0).ok()?;
    bundle.check_key(std::str::from_utf8(&data.get(KEY_TLS_KEY)?.0).ok()?).ok()?;
    let good = bundle.is_for(&observed.desired.subject) && !bundle.is_expired(now);
    good.then(|| (until_share_left(&bundle, renewal_share(observed.random), now), bundle))
}

/// The share of the life time that is left when a certificate is renewed.
fn renewal_share(random: f64) -> f64 {
    limits::CERTIFICATE_RENEWAL_SHARE * (1.0 + RENEWAL_JITTER * random)
}

fn until_share_left(bundle: &Bundle, share: f64, now: Timestamp) -> Duration {
    let total = bundle.not_after().duration_since(bundle.not_before()).as_secs_f64();
    let left = bundle.remaining(now) - share;
    Duration::try_from_secs_f64(left * total).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
pub(super) mod tests;
