//! What can be wrong with the fields of a kubeconfig context, said with the field and what to do about it.
//!
//! Nothing here shows what a field contains: it may be a secret.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Uri;
use kube::config::{AuthInfo, Cluster};
use rustls::{
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    sign::CertifiedKey,
};

use super::{SelectedContext, certificates};
use crate::client::proxy;

/// A field that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}: {advice}")]
pub struct FieldError {
    /// The field, such as `cluster.server`.
    field: &'static str,
    problem: String,
    advice: &'static str,
}

impl FieldError {
    fn new(field: &'static str, problem: impl Into<String>, advice: &'static str) -> Self {
        Self { field, problem: problem.into(), advice }
    }

    /// The field, and what is wrong with it.
    #[must_use]
    pub fn problem(&self) -> String {
        format!("{} {}", self.field, self.problem)
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        self.advice
    }
}

/// A field with content, and the field that names a file with the same content instead.
struct Pair {
    inline: &'static str,
    file: &'static str,
}

const AUTHORITY: Pair = Pair { inline: "cluster.certificate-authority-data", file: "cluster.certificate-authority" };
const CERTIFICATE: Pair = Pair { inline: "user.client-certificate-data", file: "user.client-certificate" };
const KEY: Pair = Pair { inline: "user.client-key-data", file: "user.client-key" };

/// Content, and the field that it is from.
type Content = (&'static str, Vec<u8>);

/// Checks the fields of a context.
pub(super) fn check(context: &SelectedContext) -> Result<(), FieldError> {
    check_cluster(&context.cluster)?;
    check_login(&context.user)?;
    check_certificate(&context.user)
}

fn check_cluster(cluster: &Cluster) -> Result<(), FieldError> {
    check_server(cluster.server.as_deref().unwrap_or_default())?;
    let authority =
        AUTHORITY.read(cluster.certificate_authority_data.as_deref(), cluster.certificate_authority.as_deref())?;
    if let Some((field, _)) = authority.filter(|(_, pem)| certificates(pem).is_empty()) {
        let advice = "give the certificate authority of the server, or the server's own certificate, in PEM";
        return Err(FieldError::new(field, "contains no certificate in PEM", advice));
    }
    let proxy = cluster.proxy_url.as_deref().filter(|url| !url.is_empty());
    if let Some(Err(problem)) = proxy.map(proxy::uri) {
        let advice =
            "give a URL such as http://proxy.example.com:3128, with special characters of a password percent-encoded";
        return Err(FieldError::new("cluster.proxy-url", problem, advice));
    }
    let name = cluster.tls_server_name.as_deref().filter(|name| !name.is_empty());
    if name.is_some_and(|name| ServerName::try_from(name).is_err()) {
        let advice = "give the name that is in the server's certificate, without a port, or leave it out";
        return Err(FieldError::new("cluster.tls-server-name", "is not a host name", advice));
    }
    Ok(())
}

fn check_server(server: &str) -> Result<(), FieldError> {
    const ADVICE: &str = "give the address of the API server, such as https://hub.example.com:6443";
    let error = |problem| Err(FieldError::new("cluster.server", problem, ADVICE));
    if server.is_empty() {
        return error("is missing");
    }
    match server.parse::<Uri>() {
        Err(_) => error("is not a URL"),
        Ok(uri) if !matches!(uri.scheme_str(), Some("https" | "http")) => error("does not begin with https://"),
        Ok(_) => Ok(()),
    }
}

/// As in client-go, a user is somebody with a name or with a token.
fn check_login(user: &AuthInfo) -> Result<(), FieldError> {
    let is_given = |field: &Option<String>| field.as_deref().is_some_and(|text| !text.is_empty());
    if is_given(&user.username) && (user.token.is_some() || is_given(&user.token_file)) {
        let advice = "give a token, or a user name and a password";
        return Err(FieldError::new("user.username", "is given together with a token", advice));
    }
    if user.exec.as_ref().is_some_and(|plugin| plugin.command.as_deref().unwrap_or_default().is_empty()) {
        let advice = "give the program that prints the credentials";
        return Err(FieldError::new("user.exec.command", "is missing", advice));
    }
    Ok(())
}

/// Certificate and key are readable, and belong together.
fn check_certificate(user: &AuthInfo) -> Result<(), FieldError> {
    let certificate = CERTIFICATE.read(user.client_certificate_data.as_deref(), user.client_certificate.as_deref())?;
    match (certificate, KEY.read(inline_key(user).as_deref(), user.client_key.as_deref())?) {
        (None, None) => Ok(()),
        (Some(_), None) => Err(FieldError::new(KEY.inline, "is missing", "give the key of the client certificate")),
        (None, Some(_)) => {
            Err(FieldError::new(CERTIFICATE.inline, "is missing", "give the client certificate of the key"))
        }
        (Some(certificate), Some(key)) => check_identity(certificate, key),
    }
}

/// The serialized user shows it, unlike the field.
fn inline_key(user: &AuthInfo) -> Option<String> {
    serde_json::to_value(user).ok()?.get("client-key-data")?.as_str().map(str::to_owned)
}

fn check_identity((field, certificate): Content, (key_field, key): Content) -> Result<(), FieldError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| {
        FieldError::new(field, "contains no certificate in PEM", "give the client certificate, in PEM")
    })?;
    let key = PrivateKeyDer::from_pem_slice(&key);
    let key = key.map_err(|_| FieldError::new(key_field, "contains no private key in PEM", "give the key, in PEM"))?;
    CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map(drop).map_err(|error| {
        let advice = "give the key that the client certificate was issued for";
        FieldError::new(key_field, format!("cannot be used with {field} ({error})"), advice)
    })
}

impl Pair {
    /// What one of the two fields says; the content itself takes precedence.
    fn read(&self, inline: Option<&str>, file: Option<&str>) -> Result<Option<Content>, FieldError> {
        if let Some(text) = inline.filter(|text| !text.is_empty()) {
            let text: String = text.split_whitespace().collect();
            let content = STANDARD.decode(text).map_err(|_| {
                FieldError::new(self.inline, "is not base64", "encode the PEM with base64 -w0, or name a file instead")
            })?;
            return Ok(Some((self.inline, content)));
        }
        let Some(file) = file.filter(|file| !file.is_empty()) else { return Ok(None) };
        match std::fs::read(file) {
            Ok(content) => Ok(Some((self.file, content))),
            Err(error) => {
                let advice = "put the file there, or give its content inline";
                Err(FieldError::new(self.file, format!("names {file}, which cannot be read ({error})"), advice))
            }
        }
    }
}

#[cfg(test)]
mod tests;
