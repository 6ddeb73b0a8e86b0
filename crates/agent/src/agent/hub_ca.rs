//! Follows the certificate authority of the hub where the known one vouches for the new one.
//!
//! Kubernetes publishes the authorities of its API server in the ConfigMap `kube-root-ca.crt` of every namespace. The agent
//! reads that of `kube-public` over its own connection, which is verified with the authorities that it has, and adds those
//! that are new to its kubeconfig, before the API server presents a certificate of one of them. It replaces nothing: the
//! address that the agent uses may have another authority than the one that is published.
//!
//! The additions are kept beside the kubeconfig, with a hash of the connection in the bootstrap kubeconfig that they were
//! learned with. If an administrator changes that connection, they no longer count.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use ocm_runtime::pki::Authorities;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::hub_kubeconfig::Connection;

/// The additions to the certificate authorities of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowedCa {
    /// A hash of the connection.
    base: String,
    /// PEM.
    certificates: String,
}

impl FollowedCa {
    /// The additions in the secret or in a file; `None` if there are none that can be read.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    pub(crate) fn to_text(&self) -> String {
        // Strings always serialize.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The connection with the additions, if they were learned with it.
    pub(crate) fn extend(followed: Option<&Self>, base: &Connection) -> Connection {
        match followed.filter(|followed| followed.base == hash(base)) {
            Some(followed) => followed.added_to(base).unwrap_or_else(|| base.clone()),
            None => base.clone(),
        }
    }

    fn added_to(&self, base: &Connection) -> Option<Connection> {
        let mut pem = own_authorities(base)?;
        pem.push_str(&self.certificates);
        Some(Connection { ca_data: Some(STANDARD.encode(pem)), ..base.clone() })
    }

    /// The additions after `published` was read over a connection that is verified with the authorities of `base` and those
    /// `known`; `None` if nothing changes. Expired ones are dropped.
    pub(crate) fn learn(known: Option<&Self>, base: &Connection, published: &str, now: Timestamp) -> Option<Self> {
        let own = Authorities::read(&own_authorities(base)?, now);
        let before = known.filter(|known| known.base == hash(base));
        let former = before.map(|known| known.certificates.as_str()).unwrap_or_default();
        let all = Authorities::read(&format!("{former}\n{published}"), now).without(&own);
        let learned = Self { base: hash(base), certificates: all.to_pem() };
        let is_same = before.map_or(learned.certificates.is_empty(), |before| *before == learned);
        (!is_same).then_some(learned)
    }
}

/// Those in the kubeconfig itself, PEM with a line break at the end. A file is maintained by those who provide it, and a
/// connection without any is verified with those of the system, or not at all: the agent follows neither.
fn own_authorities(base: &Connection) -> Option<String> {
    let is_verified = base.server.starts_with("https://");
    let data = base.ca_data.as_ref().filter(|_| is_verified)?;
    let mut pem = String::from_utf8(STANDARD.decode(data).ok()?).ok()?;
    if !pem.ends_with('\n') {
        pem.push('\n');
    }
    Some(pem)
}

fn hash(base: &Connection) -> String {
    let Connection { name, server, ca_file, ca_data, proxy, .. } = base;
    let text = serde_json::json!([name, server, ca_file, ca_data, proxy]).to_string();
    STANDARD.encode(Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    fn now() -> Timestamp {
        "2026-06-01T00:00:00Z".parse().unwrap()
    }

    /// The certificate of an authority, or of a server, that is valid until the start of this year.
    fn certificate(is_ca: bool, until: i32) -> String {
        let mut params = CertificateParams::default();
        params.is_ca = if is_ca { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::NoCa };
        (params.not_before, params.not_after) = (date_time_ymd(2025, 1, 1), date_time_ymd(until, 1, 1));
        // rcgen ends lines as Windows does.
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem().replace('\r', "")
    }

    fn authority() -> String {
        certificate(true, 2030)
    }

    fn base(pem: &str) -> Connection {
        let server = "https://hub:6443".into();
        Connection { name: "hub".into(), server, ca_data: Some(STANDARD.encode(pem)), ..Connection::default() }
    }

    fn trusted(connection: &Connection) -> String {
        String::from_utf8(STANDARD.decode(connection.ca_data.as_ref().unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn a_new_authority_is_added_to_the_present_one_once() {
        let (old, new) = (authority(), authority());
        let (base, published) = (base(&old), format!("{old}{new}"));
        assert_eq!(FollowedCa::learn(None, &base, &old, now()), None, "nothing is new");
        let learned = FollowedCa::learn(None, &base, &published, now()).unwrap();
        let extended = FollowedCa::extend(Some(&learned), &base);
        assert_eq!(trusted(&extended), format!("{old}{new}"));
        assert_eq!((&extended.name, &extended.server), (&base.name, &base.server));
        // Neither again nor when the old one is no longer published, which may be the one that verifies the address in use.
        for published in [published, new] {
            assert_eq!(FollowedCa::learn(Some(&learned), &base, &published, now()), None);
        }
        assert_eq!(FollowedCa::read(learned.to_text().as_bytes()), Some(learned));
        assert_eq!(FollowedCa::read(b"{}"), None);
    }

    #[test]
    fn what_was_added_stays_until_it_has_expired() {
        let (old, second, third) = (authority(), certificate(true, 2027), authority());
        let base = base(&old);
        let learned = FollowedCa::learn(None, &base, &second, now()).unwrap();
        let learned = FollowedCa::learn(Some(&learned), &base, &third, now()).unwrap();
        assert_eq!(trusted(&FollowedCa::extend(Some(&learned), &base)), format!("{old}{second}{third}"));
        let later = "2028-01-01T00:00:00Z".parse().unwrap();
        let learned = FollowedCa::learn(Some(&learned), &base, &third, later).unwrap();
        assert_eq!(trusted(&FollowedCa::extend(Some(&learned), &base)), format!("{old}{third}"));
    }

    #[test]
    fn only_authorities_that_have_not_expired_are_added() {
        let base = base(&authority());
        for published in [certificate(false, 2030), certificate(true, 2026), "hello".into(), String::new()] {
            assert_eq!(FollowedCa::learn(None, &base, &published, now()), None, "{published}");
        }
    }

    #[test]
    fn a_connection_that_is_not_verified_with_authorities_of_the_kubeconfig_is_not_followed() {
        let (base, new) = (base(&authority()), authority());
        let plain = Connection { server: "http://hub:8080".into(), ..base.clone() };
        let of_system = Connection { ca_data: None, ..base.clone() };
        let of_file = Connection { ca_file: Some("ca.crt".into()), ..of_system.clone() };
        for base in [plain, of_system, of_file] {
            assert_eq!(FollowedCa::learn(None, &base, &new, now()), None, "{base:?}");
        }
        assert!(FollowedCa::learn(None, &base, &new, now()).is_some());
    }

    #[test]
    fn additions_end_when_the_bootstrap_kubeconfig_changes_its_connection() {
        let (old, new) = (base(&authority()), authority());
        let learned = FollowedCa::learn(None, &old, &new, now()).unwrap();
        let moved = Connection { server: "https://other:6443".into(), ..old.clone() };
        for other in [base(&authority()), moved] {
            assert_eq!(FollowedCa::extend(Some(&learned), &other), other);
        }
        assert_eq!(FollowedCa::extend(None, &old), old);
    }
}
