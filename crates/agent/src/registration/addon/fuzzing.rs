//! What fuzz targets reach of reading the registrations and tokens of add-ons. Only builds by cargo-fuzz have it.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use ocm_api::{
    addon::v1alpha1::{KubeClientDriver, ManagedClusterAddOn},
    secrets,
};
use ocm_runtime::{ObjectKey, pki::Subject};

use super::{
    Settings,
    target::{Credential, Desired, Target},
    token,
};

/// The namespace of the agent whose add-ons are read.
pub const NAMESPACE: &str = "agent";

/// The secrets of an add-on, and whom their certificates are for, or `None` for a token; and why registrations get none.
pub fn credentials(
    addon: &ManagedClusterAddOn,
    driver: KubeClientDriver,
) -> (Vec<(ObjectKey, Option<Subject>)>, Vec<String>) {
    let settings = Settings {
        cluster: "c1".into(),
        own_secrets: [secrets::HUB_KUBECONFIG, secrets::BOOTSTRAP_HUB_KUBECONFIG]
            .map(|name| ObjectKey::new(NAMESPACE, name))
            .into(),
        driver,
        kubeconfig: String::new(),
        certificate_seconds: None,
        token_seconds: 600,
        lease_period: Duration::from_secs(30),
    };
    let (targets, refused) = match settings.desired(addon) {
        Desired::Driver => {
            let ready = settings.with_driver(addon);
            assert!(settings.has_driver(&ready) && !settings.has_stale_condition(&ready));
            return (Vec::new(), Vec::new());
        }
        Desired::Unchanged { targets } => (targets, Vec::new()),
        Desired::Credentials { targets, refused } => {
            (targets, refused.certificate.into_iter().chain(refused.token).collect())
        }
    };
    (targets.into_iter().map(of_target).collect(), refused)
}

fn of_target(target: Target) -> (ObjectKey, Option<Subject>) {
    let secret = target.secret().clone();
    match target.credential {
        Credential::Certificate(certificate) => (secret, Some(certificate.subject)),
        Credential::Token(_) => (secret, None),
    }
}

/// The uid in a message of condition `TokenInfrastructureReady`.
pub fn uid_in(message: &str) -> Option<&str> {
    token::uid_in(message)
}

/// The time until a token is renewed, and the second when it expires; `None` if it cannot be used.
pub fn check_token(token: &str, uid: &str, second: i64) -> Option<(Duration, i64)> {
    let now = Timestamp::from_second(second).unwrap_or(if second < 0 { Timestamp::MIN } else { Timestamp::MAX });
    token::check(token, uid, now).ok().map(|valid| (valid.renew_in, valid.expires.as_second()))
}

/// A token with these claims.
pub fn token_of(claims: &[u8]) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
}
