//! The user of a request: the subject of a client certificate.

use anyhow::{Context as _, Result};
use http::{HeaderMap, HeaderName, HeaderValue};
use x509_cert::{
    Certificate,
    der::{
        Decode as _,
        asn1::{PrintableStringRef, Utf8StringRef},
        oid::db::rfc4519::{COMMON_NAME, ORGANIZATION_NAME},
    },
};

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// User and groups of a client certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    user: String,
    groups: Vec<String>,
}

impl Identity {
    /// Reads the subject of a certificate that has been verified.
    pub(super) fn of(certificate: &[u8]) -> Result<Self> {
        let certificate = Certificate::from_der(certificate).context("failed to read a client certificate")?;
        let mut identity = Self::default();
        for attribute in certificate.tbs_certificate.subject.0.iter().flat_map(|names| names.0.iter()) {
            let value = &attribute.value;
            let text = value
                .decode_as::<Utf8StringRef<'_>>()
                .map(|text| text.to_string())
                .or_else(|_| value.decode_as::<PrintableStringRef<'_>>().map(|text| text.to_string()))
                .context("failed to read a name in a client certificate")?;
            match attribute.oid {
                COMMON_NAME => identity.user = text,
                ORGANIZATION_NAME => identity.groups.push(text),
                _ => {}
            }
        }
        Ok(identity)
    }

    /// Makes a request of the administrator impersonate this identity.
    pub(super) fn impersonate(&self, headers: &mut HeaderMap) -> Result<()> {
        headers.insert(USER, HeaderValue::from_str(&self.user)?);
        for group in &self.groups {
            headers.append(GROUP, HeaderValue::from_str(group)?);
        }
        Ok(())
    }
}
