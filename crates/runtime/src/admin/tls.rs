//! The TLS configuration of the listener: versions, cipher suites, certificate.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
    crypto::{CryptoProvider, aws_lc_rs},
    version::{TLS12, TLS13},
};
use tracing::warn;

use super::certificate::{CertificateError, Current, Source};
use crate::Clock;

/// TLS options, as on a command line.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// A file with the certificate, and those that it was issued by, in PEM.
    pub cert_file: Option<PathBuf>,
    /// The file with its private key, in PEM.
    pub key_file: Option<PathBuf>,
    /// The oldest version to accept, such as `VersionTLS12` or `TLSv1.2`; empty for 1.2.
    pub min_version: String,
    /// The cipher suites of TLS 1.2, by their IANA names; empty for all that are supported.
    pub cipher_suites: Vec<String>,
    /// A name of this machine, for the certificate that is generated if none is given.
    pub host: String,
}

/// Why the options cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A certificate without its key, or the other way round.
    #[error("a certificate and its key belong together: {missing} is missing")]
    Half {
        /// The flag that was not given.
        missing: &'static str,
    },
    /// The version does not exist.
    #[error("unknown TLS version {0:?}: it is one of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13")]
    Version(String),
    /// The cipher suite does not exist.
    #[error("unknown cipher suite {name:?}: {known}")]
    Suite {
        /// The name as given.
        name: String,
        /// The names that can be used.
        known: String,
    },
    /// No cipher suite is left.
    #[error("none of the requested cipher suites is supported: {0}")]
    NoSuite(String),
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The settings contradict each other.
    #[error("failed to set up TLS")]
    Rustls(#[from] rustls::Error),
}

/// The TLS configuration of a listener.
#[derive(Clone, Debug)]
pub struct Tls {
    pub(super) config: Arc<ServerConfig>,
    pub(super) certificate: Arc<Current>,
}

impl Tls {
    /// Checks the options and reads the certificate. `clock` dates a generated one.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(options: &TlsOptions, clock: &Clock) -> Result<Self, TlsError> {
        let versions = versions(&options.min_version)?;
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites = cipher_suites(&options.cipher_suites, &provider)?;
        let certificate = Arc::new(Current::new(source(options)?, clock.now())?);
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(versions)?
            .with_no_client_auth()
            .with_cert_resolver(certificate.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), certificate })
    }
}

fn source(options: &TlsOptions) -> Result<Source, TlsError> {
    match (&options.cert_file, &options.key_file) {
        (Some(certificate), Some(key)) => Ok(Source::Files { certificate: certificate.clone(), key: key.clone() }),
        (None, None) => Ok(Source::SelfSigned { host: options.host.clone() }),
        (Some(_), None) => Err(TlsError::Half { missing: "--tls-private-key-file" }),
        (None, Some(_)) => Err(TlsError::Half { missing: "--tls-cert-file" }),
    }
}

type Versions = &'static [&'static SupportedProtocolVersion];
const FROM_12: Versions = &[&TLS12, &TLS13];
const FROM_13: Versions = &[&TLS13];

/// TLS 1.0 and 1.1 are not supported: if they are requested, 1.2 is used, which all clients support.
fn versions(oldest: &str) -> Result<Versions, TlsError> {
    match oldest {
        "" | "VersionTLS12" | "TLSv1.2" => Ok(FROM_12),
        "VersionTLS13" | "TLSv1.3" => Ok(FROM_13),
        "VersionTLS10" | "VersionTLS11" | "TLSv1.0" | "TLSv1.1" => {
            warn!(asked = oldest, "versions before TLS 1.2 are not supported, using TLS 1.2 and newer");
            Ok(FROM_12)
        }
        other => Err(TlsError::Version(other.into())),
    }
}

/// Suites of TLS 1.2 that Go knows, and that are too weak to be supported here.
const WEAK: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// As in Go, the list is for TLS 1.2: the suites of TLS 1.3 are always enabled.
fn cipher_suites(asked: &[String], provider: &CryptoProvider) -> Result<Vec<SupportedCipherSuite>, TlsError> {
    let all = &provider.cipher_suites;
    if asked.is_empty() {
        return Ok(all.clone());
    }
    let mut chosen: Vec<_> = all.iter().filter(|suite| suite.tls13().is_some()).copied().collect();
    let mut is_any_known = false;
    for name in asked.iter().map(|name| name.trim()) {
        match all.iter().find(|suite| is_called(**suite, name)) {
            Some(suite) => {
                is_any_known = true;
                if !chosen.contains(suite) {
                    chosen.push(*suite);
                }
            }
            None if WEAK.contains(&name) => warn!(suite = name, "this cipher suite is too weak and is ignored"),
            None => return Err(TlsError::Suite { name: name.into(), known: known(all) }),
        }
    }
    if is_any_known { Ok(chosen) } else { Err(TlsError::NoSuite(known(all))) }
}

fn known(all: &[SupportedCipherSuite]) -> String {
    let names: Vec<_> = all.iter().filter_map(|suite| iana_name(*suite)).collect();
    format!("it can be {}", names.join(", "))
}

/// The names of TLS 1.3 suites begin with the version here, and not with IANA.
fn iana_name(suite: SupportedCipherSuite) -> Option<String> {
    Some(suite.suite().as_str()?.replacen("TLS13_", "TLS_", 1))
}

/// Go also has two names without their last part.
fn is_called(suite: SupportedCipherSuite, name: &str) -> bool {
    iana_name(suite).is_some_and(|own| own == name || own == format!("{name}_SHA256") && name.ends_with("_POLY1305"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls(options: &TlsOptions) -> Result<Tls, TlsError> {
        Tls::new(options, &Clock::System)
    }

    fn suites(names: &[&str]) -> Result<Vec<String>, TlsError> {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let provider = aws_lc_rs::default_provider();
        let chosen = cipher_suites(&names, &provider)?;
        Ok(chosen.into_iter().filter(|suite| suite.tls13().is_none()).filter_map(iana_name).collect())
    }

    #[test]
    fn cipher_suites_of_tls_1_2_are_chosen_by_their_iana_names() {
        let name = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        assert_eq!(suites(&[name, "TLS_AES_128_GCM_SHA256"]).unwrap(), [name]);
        assert_eq!(
            suites(&["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"]).unwrap(),
            ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"]
        );
        assert!(suites(&[]).unwrap().len() > 2);
    }

    #[test]
    fn weak_suites_are_left_out_and_unknown_ones_refused() {
        let good = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
        assert_eq!(suites(&["TLS_RSA_WITH_AES_128_CBC_SHA", good]).unwrap(), [good]);
        assert!(matches!(suites(&["TLS_RSA_WITH_AES_128_CBC_SHA"]), Err(TlsError::NoSuite(_))));
        let error = suites(&["TLS_MADE_UP"]).unwrap_err().to_string();
        assert!(error.contains("TLS_MADE_UP") && error.contains(good), "{error}");
    }

    #[test]
    fn versions_are_read_in_both_forms_and_never_older_than_1_2() {
        for (asked, count) in [("", 2), ("VersionTLS10", 2), ("TLSv1.1", 2), ("VersionTLS12", 2), ("TLSv1.3", 1)] {
            assert_eq!(versions(asked).unwrap().len(), count, "{asked}");
        }
        assert!(versions("SSLv3").unwrap_err().to_string().contains("VersionTLS12"));
    }

    #[test]
    fn half_a_key_pair_is_refused_with_the_flag_that_is_missing() {
        let file = Some(PathBuf::from("/some/file"));
        let error = tls(&TlsOptions { cert_file: file.clone(), ..TlsOptions::default() }).unwrap_err().to_string();
        assert!(error.contains("--tls-private-key-file"), "{error}");
        let error = tls(&TlsOptions { key_file: file, ..TlsOptions::default() }).unwrap_err().to_string();
        assert!(error.contains("--tls-cert-file"), "{error}");
    }

    #[test]
    fn no_option_is_required() {
        assert!(tls(&TlsOptions::default()).is_ok());
    }
}
