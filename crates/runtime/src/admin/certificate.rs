//! The listener's certificate: generated at the start, or read from files and reloaded when they change.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use rustls::{
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tracing::{info, warn};

use crate::{
    error::chain,
    pki::{self, SelfSignedError},
};

/// How long a generated certificate is valid. No process runs that long, and no client trusts it anyway.
const YEARS: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
/// It is valid from a day before it was generated, since clocks differ.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The file does not exist or may not be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
    /// The file does not contain what it should.
    #[error("failed to find a {what} in {}", path.display())]
    Parse {
        /// What it should contain.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// The certificate and the key do not match.
    #[error("failed to use the certificate of {} with the key of {}", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What went wrong.
        #[source]
        source: rustls::Error,
    },
    /// No certificate could be generated.
    #[error("failed to generate a certificate")]
    Make(#[from] SelfSignedError),
    /// The generated certificate cannot be used.
    #[error("failed to use the generated certificate")]
    Made(#[source] rustls::Error),
}

/// The source of the certificate.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// It is generated, for this machine.
    SelfSigned { host: String },
    /// It is read from files.
    Files { certificate: PathBuf, key: PathBuf },
}

/// The certificate that is presented to clients.
#[derive(Debug)]
pub(super) struct Current {
    source: Source,
    shown: ArcSwap<CertifiedKey>,
    /// The content of the files when they were last read.
    read: Mutex<Option<Content>>,
}

/// The content of both files.
type Content = [Vec<u8>; 2];

impl Current {
    pub(super) fn new(source: Source, now: Timestamp) -> Result<Self, CertificateError> {
        let (shown, read) = match &source {
            Source::SelfSigned { host } => (self_signed(host, now)?, None),
            Source::Files { certificate, key } => {
                let content = [read(certificate)?, read(key)?];
                (parse(certificate, key, &content)?, Some(content))
            }
        };
        Ok(Self { source, shown: ArcSwap::from_pointee(shown), read: Mutex::new(read) })
    }

    /// Whether there are files that may change.
    pub(super) fn may_change(&self) -> bool {
        matches!(self.source, Source::Files { .. })
    }

    /// Uses what the files contain now, if they have changed. If that cannot be used, logs why and keeps the certificate: a
    /// writer may be half done.
    pub(super) fn reload(&self) {
        let Source::Files { certificate, key } = &self.source else { return };
        match self.reload_files(certificate, key) {
            Ok(false) => {}
            Ok(true) => info!(file = %certificate.display(), "reloaded the serving certificate"),
            Err(error) => {
                warn!(error = %chain(&error), "cannot reload the serving certificate, keeping the old one");
            }
        }
    }

    /// Returns whether the certificate has changed.
    fn reload_files(&self, certificate: &Path, key: &Path) -> Result<bool, CertificateError> {
        let now = [read(certificate)?, read(key)?];
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref() == Some(&now) {
            return Ok(false);
        }
        let parsed = parse(certificate, key, &now);
        // Files that cannot be used are not parsed again until they change.
        *known = Some(now);
        self.shown.store(Arc::new(parsed?));
        Ok(true)
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.shown.load_full())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(path).map_err(|source| CertificateError::Read { path: path.into(), source })
}

fn parse(certificate: &Path, key: &Path, content: &Content) -> Result<CertifiedKey, CertificateError> {
    let no_certificate = |source| CertificateError::Parse { what: "certificate", path: certificate.into(), source };
    let no_key = |source| CertificateError::Parse { what: "private key", path: key.into(), source };
    let chain = CertificateDer::pem_slice_iter(&content[0]).collect::<Result<Vec<_>, _>>().map_err(no_certificate)?;
    if chain.is_empty() {
        return Err(no_certificate(rustls::pki_types::pem::Error::NoItemsFound));
    }
    let private = PrivateKeyDer::from_pem_slice(&content[1]).map_err(no_key)?;
    let pair = |source| CertificateError::Pair { certificate: certificate.into(), key: key.into(), source };
    CertifiedKey::from_der(chain, private, &aws_lc_rs::default_provider()).map_err(pair)
}

fn self_signed(host: &str, now: Timestamp) -> Result<CertifiedKey, CertificateError> {
    let names = ["localhost", "127.0.0.1", "::1", host];
    let name = if host.is_empty() { names[0] } else { host };
    let dates = [now - DAY, now + YEARS];
    let (certificate, key) = pki::self_signed(name, &names, dates)?;
    CertifiedKey::from_der(vec![certificate], key, &aws_lc_rs::default_provider()).map_err(CertificateError::Made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::Bundle;

    /// A folder with a key pair, removed at the end.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ocm-runtime-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn source(&self) -> Source {
            Source::Files { certificate: self.0.join("tls.crt"), key: self.0.join("tls.key") }
        }

        fn write_pair(&self) {
            let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
            std::fs::write(self.0.join("tls.crt"), made.cert.pem()).unwrap();
            std::fs::write(self.0.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        }
    }

    fn shown(current: &Current) -> Vec<u8> {
        current.shown.load().cert[0].to_vec()
    }

    #[test]
    fn a_generated_certificate_is_valid_from_before_now_and_for_years() {
        let now: Timestamp = "2028-02-29T00:30:00Z".parse().unwrap();
        let current = Current::new(Source::SelfSigned { host: "not a host name".into() }, now).unwrap();
        let der =
            x509_cert::der::pem::encode_string("CERTIFICATE", x509_cert::der::pem::LineEnding::LF, &shown(&current));
        let bundle = Bundle::parse(der.unwrap().as_bytes()).unwrap();
        assert!(bundle.not_before() < now && bundle.not_after() > now + jiff::SignedDuration::from_hours(9 * 365 * 24));
        assert!(!current.may_change());
    }

    #[test]
    fn files_that_change_are_reloaded_once_they_match() {
        let folder = Folder::new("certificate-changes");
        folder.write_pair();
        let current = Current::new(folder.source(), Timestamp::UNIX_EPOCH).unwrap();
        let first = shown(&current);
        current.reload();
        assert_eq!(shown(&current), first);

        let key = std::fs::read(folder.0.join("tls.key")).unwrap();
        folder.write_pair();
        let new_key = std::fs::read(folder.0.join("tls.key")).unwrap();
        std::fs::write(folder.0.join("tls.key"), key).unwrap();
        current.reload();
        assert_eq!(shown(&current), first, "the key is still the old one");
        std::fs::write(folder.0.join("tls.key"), new_key).unwrap();
        current.reload();
        assert_ne!(shown(&current), first);
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let folder = Folder::new("certificate-errors");
        let error = || chain(&Current::new(folder.source(), Timestamp::UNIX_EPOCH).unwrap_err());
        assert!(error().contains("failed to read") && error().contains("tls.crt"), "{}", error());
        std::fs::write(folder.0.join("tls.crt"), "nothing").unwrap();
        std::fs::write(folder.0.join("tls.key"), "nothing").unwrap();
        assert!(error().contains("failed to find a certificate in"), "{}", error());
        folder.write_pair();
        std::fs::write(folder.0.join("tls.key"), "nothing").unwrap();
        assert!(error().contains("failed to find a private key in"), "{}", error());
    }
}
