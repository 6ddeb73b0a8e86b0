//! Exec plugins of kubeconfigs, run as client-go runs them.
//!
//! kube runs a plugin twice for each configuration, and does not renew client certificates.

use std::{
    collections::HashMap,
    io::{IsTerminal as _, stdin},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use rustls::{
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

/// How long a plugin may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Why a plugin provided no credential. The message never contains its output, which may hold a credential.
#[derive(Debug, thiserror::Error)]
#[error("credential plugin {command} of the kubeconfig {problem}")]
pub struct PluginError {
    command: String,
    problem: String,
}

/// A credential, and when it expires.
#[derive(Default)]
pub(super) struct Credential {
    pub(super) token: Option<String>,
    pub(super) identity: Option<Arc<CertifiedKey>>,
    pub(super) expires: Option<Timestamp>,
}

/// The program that provides the credentials of a user.
#[derive(Clone)]
pub(super) struct Plugin(ExecConfig);

/// What a plugin returns.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    api_version: Option<String>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

impl Plugin {
    /// Removes the plugin from a user. Returns it if the user has no other credentials, which take precedence.
    pub(super) fn take(user: &mut AuthInfo) -> Option<Self> {
        let has_others = user.username.is_some() || user.token.is_some() || user.token_file.is_some();
        let plugin = user.exec.take()?;
        (!has_others && user.auth_provider.is_none()).then_some(Self(plugin))
    }

    /// Runs the program.
    pub(super) async fn run(&self) -> Result<Credential, PluginError> {
        let output = timeout(LIMIT, self.output()).await;
        let output = output.map_err(|_| self.error(format!("did not exit within {} s", LIMIT.as_secs())))??;
        let text = String::from_utf8_lossy(&output);
        // JSON or YAML, as in client-go.
        let credential = ocm_apimachinery::yaml::from_str(&text);
        let credential: ExecCredential = credential.map_err(|_| self.error("did not return an ExecCredential"))?;
        self.credential(credential)
    }

    async fn output(&self) -> Result<Vec<u8>, PluginError> {
        let child = self.command()?.spawn();
        let child = child.map_err(|error| self.error(format!("failed to start: {error}{}", self.install_hint())))?;
        let output = child.wait_with_output().await.map_err(|error| self.error(format!("failed: {error}")))?;
        if !output.status.success() {
            return Err(self.error(format!("failed with {}", output.status)));
        }
        Ok(output.stdout)
    }

    fn command(&self) -> Result<Command, PluginError> {
        let Self(config) = self;
        let is_interactive = config.interactive_mode != Some(ExecInteractiveMode::Never) && stdin().is_terminal();
        if config.interactive_mode == Some(ExecInteractiveMode::Always) && !is_interactive {
            return Err(self.error("needs a terminal (interactiveMode: Always), and there is none"));
        }
        let name = config.command.as_ref().ok_or_else(|| self.error("has no command"))?;
        let mut command = Command::new(name);
        command.args(config.args.iter().flatten()).envs(config.env.iter().flatten().filter_map(variable));
        command.env("KUBERNETES_EXEC_INFO", self.exec_info(is_interactive).to_string());
        command.stdin(if is_interactive { Stdio::inherit() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        Ok(command)
    }

    fn exec_info(&self, is_interactive: bool) -> Value {
        let mut spec = json!({"interactive": is_interactive});
        if let Some(cluster) = self.0.cluster.as_ref().filter(|_| self.0.provide_cluster_info) {
            spec["cluster"] = json!(cluster);
        }
        json!({"apiVersion": self.0.api_version, "kind": "ExecCredential", "spec": spec})
    }

    fn credential(&self, credential: ExecCredential) -> Result<Credential, PluginError> {
        if credential.api_version != self.0.api_version {
            let (asked, found) = (&self.0.api_version, &credential.api_version);
            let (asked, found) = (asked.as_deref().unwrap_or("none"), found.as_deref().unwrap_or("none"));
            return Err(self.error(format!("was configured with apiVersion {asked} and returned {found}")));
        }
        let status = credential.status.unwrap_or_default();
        let identity = match (&status.client_certificate_data, &status.client_key_data) {
            (Some(certificate), Some(key)) => Some(self.identity(certificate, key)?),
            (None, None) => None,
            _ => return Err(self.error("returned a client certificate without a key, or a key without a certificate")),
        };
        if identity.is_none() && status.token.is_none() {
            return Err(self.error("returned neither a token nor a client certificate"));
        }
        let expires = status.expiration_timestamp.map(|text| text.parse());
        let expires =
            expires.transpose().map_err(|_| self.error("returned an expirationTimestamp that is not a time"))?;
        Ok(Credential { token: status.token, identity, expires })
    }

    fn identity(&self, certificate: &str, key: &str) -> Result<Arc<CertifiedKey>, PluginError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
        let chain = chain.map_err(|_| self.error("returned a client certificate that is not PEM"))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
        let key = key.map_err(|_| self.error("returned a client key that is not PEM"))?;
        let identity = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider());
        identity
            .map(Arc::new)
            .map_err(|error| self.error(format!("returned a client certificate that cannot be used: {error}")))
    }

    fn install_hint(&self) -> String {
        self.0.install_hint.as_ref().map_or_else(String::new, |hint| format!(" ({})", hint.trim()))
    }

    fn error(&self, problem: impl Into<String>) -> PluginError {
        PluginError { command: self.0.command.clone().unwrap_or_default(), problem: problem.into() }
    }
}

fn variable(entry: &HashMap<String, String>) -> Option<(&String, &String)> {
    Some((entry.get("name")?, entry.get("value")?))
}

#[cfg(test)]
mod tests;
