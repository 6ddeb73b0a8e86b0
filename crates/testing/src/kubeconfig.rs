//! Kubeconfigs as values, and clients made from them.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};
use kube::{Client, Config};

use crate::pki::Pair;

/// A client for the current context of a kubeconfig, for the Tokio runtime that this is called on.
pub async fn client_for(kubeconfig: &Kubeconfig) -> Result<Client> {
    let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default())
        .await
        .context("failed to read the kubeconfig")?;
    Client::try_from(config).context("failed to build a client from the kubeconfig")
}

/// Writes a kubeconfig to a new file that only this user can read, which replaces one of the same name. JSON, which is
/// YAML as well.
pub fn write_kubeconfig(kubeconfig: &Kubeconfig, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let text = serde_json::to_string_pretty(kubeconfig)?;
    replace(path, &text).with_context(|| format!("failed to write the kubeconfig {}", path.display()))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_added_extension("new");
    let _ = fs::remove_file(&temporary);
    let file = File::options().create_new(true).write(true).mode(0o600).open(&temporary);
    file.and_then(|mut file| file.write_all(text.as_bytes()))?;
    fs::rename(&temporary, path)
}

/// A kubeconfig with one cluster, one user and one context, which is the current one.
pub(crate) fn kubeconfig(name: &str, server: &str, authority: &str, user: &str, login: AuthInfo) -> Kubeconfig {
    Kubeconfig {
        api_version: Some("v1".into()),
        kind: Some("Config".into()),
        clusters: vec![cluster(name, server, authority)],
        auth_infos: vec![NamedAuthInfo { name: user.into(), auth_info: Some(login), ..NamedAuthInfo::default() }],
        contexts: vec![context(name, user)],
        current_context: Some(name.into()),
        ..Kubeconfig::default()
    }
}

/// Logging in with a client certificate.
pub(crate) fn certificate_login(pair: &Pair) -> AuthInfo {
    AuthInfo {
        client_certificate_data: Some(STANDARD.encode(&pair.certificate)),
        client_key_data: Some(STANDARD.encode(&pair.key).into()),
        ..AuthInfo::default()
    }
}

/// Logging in with a bearer token.
pub(crate) fn token_login(token: String) -> AuthInfo {
    AuthInfo { token: Some(token.into()), ..AuthInfo::default() }
}

fn cluster(name: &str, server: &str, authority: &str) -> NamedCluster {
    NamedCluster {
        name: name.into(),
        cluster: Some(Cluster {
            server: Some(server.into()),
            certificate_authority_data: Some(STANDARD.encode(authority)),
            ..Cluster::default()
        }),
        ..NamedCluster::default()
    }
}

fn context(name: &str, user: &str) -> NamedContext {
    NamedContext {
        name: name.into(),
        context: Some(Context { cluster: name.into(), user: Some(user.into()), ..Context::default() }),
        ..NamedContext::default()
    }
}
