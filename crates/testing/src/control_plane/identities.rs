//! Kubeconfigs of other users than the administrator, and certificates of other servers.

use std::path::Path;

use anyhow::{Context as _, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use kube::config::{AuthInfo, Kubeconfig};

use super::ControlPlane;
use crate::kubeconfig::{certificate_login, kubeconfig, token_login, write_kubeconfig};

const DAY: i64 = 24 * 3600;

impl ControlPlane {
    /// Logs in as an existing service account, with a token for 24 hours.
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<Kubeconfig> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec { expiration_seconds: Some(DAY), ..TokenRequestSpec::default() },
            ..TokenRequest::default()
        };
        let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
        let answer = answer.with_context(|| {
            format!("failed to request a token for service account {namespace}/{name}: does it exist?")
        })?;
        let token = answer.status.context("the answer to a token request holds no token")?.token;
        Ok(self.kubeconfig_with(name, token_login(token)))
    }

    /// Writes a kubeconfig file that logs in as a service account; see
    /// [`ControlPlane::kubeconfig_for_service_account`].
    pub async fn write_login(&self, namespace: &str, account: &str, path: impl AsRef<Path>) -> Result<()> {
        write_kubeconfig(&self.kubeconfig_for_service_account(namespace, account).await?, path)
    }

    /// Logs in as `user` of `groups` with a client certificate signed by the cluster's authority;
    /// its rights are those that RBAC grants to these names.
    pub fn kubeconfig_for_user(&self, user: &str, groups: &[&str]) -> Result<Kubeconfig> {
        let pair = self.files.authority.client(user, groups)?;
        Ok(self.kubeconfig_with(user, certificate_login(&pair)))
    }

    /// A certificate and its key, both PEM, for a server that is reached under these DNS names and addresses, such as a
    /// webhook: signed by the cluster's authority, see [`ControlPlane::certificate_authority`].
    pub fn serving_certificate(&self, names: &[&str]) -> Result<(String, String)> {
        let all: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let pair = self.files.authority.server(names.first().unwrap_or(&"server"), &all)?;
        Ok((pair.certificate, pair.key))
    }

    fn kubeconfig_with(&self, user: &str, login: AuthInfo) -> Kubeconfig {
        kubeconfig(&self.name, &self.url(), self.certificate_authority(), user, login)
    }
}
