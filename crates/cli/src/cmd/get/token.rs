//! `clusteradm get token`: a token that agents can register with, and the join command that uses it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{Secret, ServiceAccount},
};
use kube::api::{Api, PostParams};
use ocm_api::{namespaces, rbac};
use serde_json::json;

use crate::{client::Connection, cmd::Context, failure::Failure, hub, output::secret_file};

/// How long the token of a service account is valid.
const VALID_SECONDS: i64 = 3600;
const BOOTSTRAP_TOKEN_NAMESPACE: &str = "kube-system";
const BOOTSTRAP_TOKEN_SECRET: &str = "bootstrap-token-ocmhub";

/// Flags of `get token`.
#[derive(Args, Debug)]
pub(crate) struct TokenArgs {
    /// Show the Kubernetes bootstrap token in secret kube-system/bootstrap-token-ocmhub, instead of a new token of service
    /// account open-cluster-management/agent-registration-bootstrap, which is valid for one hour
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true)]
    use_bootstrap_token: bool,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = TokenFormat::Text)]
    output: TokenFormat,
    /// Write the output to this file as well, which only its owner may read
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TokenFormat {
    /// The token and the command to run on the managed cluster
    Text,
    /// The token and the hub's address
    Json,
}

/// Runs the command.
pub(crate) async fn run(args: &TokenArgs, context: &Context) -> Result<(), Failure> {
    context.announce_dry_run("get token");
    let hub = hub::connect(context).await?;
    let Some(token) = token(&hub, args.use_bootstrap_token, context).await? else {
        return Ok(());
    };
    let text = match args.output {
        TokenFormat::Text => text(&context.header, &token, &hub.server),
        TokenFormat::Json => json(&token, &hub.server),
    };
    if let Some(file) = args.output_file.as_deref().filter(|_| !context.global.dry_run) {
        secret_file::write(file, &text)
            .map_err(|error| Failure::new(format!("failed to write {}: {error}", file.display())))?;
    }
    context.print(&text)
}

async fn token(hub: &Connection, use_bootstrap_token: bool, context: &Context) -> Result<Option<String>, Failure> {
    if use_bootstrap_token {
        bootstrap_token(hub).await.map(Some)
    } else if context.global.dry_run {
        require_service_account(hub).await?;
        context.note(&format!("would ask for a token of service account {}", service_account()));
        Ok(None)
    } else {
        service_account_token(hub).await.map(Some)
    }
}

fn service_account() -> String {
    format!("{}/{}", namespaces::OPERATOR, rbac::BOOTSTRAP_SERVICE_ACCOUNT)
}

async fn service_account_token(hub: &Connection) -> Result<String, Failure> {
    let accounts = Api::<ServiceAccount>::namespaced(hub.client.clone(), namespaces::OPERATOR);
    let request = TokenRequest {
        spec: TokenRequestSpec { expiration_seconds: Some(VALID_SECONDS), ..TokenRequestSpec::default() },
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(rbac::BOOTSTRAP_SERVICE_ACCOUNT, &PostParams::default(), &request)
        .await
        .map_err(|error| no_service_account(hub, &error))?;
    answer.status.map(|status| status.token).filter(|token| !token.is_empty()).ok_or_else(|| {
        Failure::new(format!("{} answered the request for a token of {} without one", hub.server, service_account()))
    })
}

async fn require_service_account(hub: &Connection) -> Result<(), Failure> {
    let accounts = Api::<ServiceAccount>::namespaced(hub.client.clone(), namespaces::OPERATOR);
    let account = accounts.get_metadata(rbac::BOOTSTRAP_SERVICE_ACCOUNT).await;
    account.map(drop).map_err(|error| no_service_account(hub, &error))
}

fn no_service_account(hub: &Connection, error: &kube::Error) -> Failure {
    if matches!(error, kube::Error::Api(status) if status.code == 404) {
        return Failure::new(format!(
            "service account {}, with which agents register, does not exist",
            service_account()
        ))
        .hint("create it and its roles: kubectl apply --server-side -f deploy/hub.yaml");
    }
    hub.explain(&format!("get a token of service account {}", service_account()), error)
}

async fn bootstrap_token(hub: &Connection) -> Result<String, Failure> {
    let name = format!("{BOOTSTRAP_TOKEN_NAMESPACE}/{BOOTSTRAP_TOKEN_SECRET}");
    let secrets = Api::<Secret>::namespaced(hub.client.clone(), BOOTSTRAP_TOKEN_NAMESPACE);
    let secret = secrets
        .get_opt(BOOTSTRAP_TOKEN_SECRET)
        .await
        .map_err(|error| hub.explain(&format!("read secret {name}"), &error))?
        .ok_or_else(|| {
            Failure::new(format!("no bootstrap token: secret {name} does not exist"))
                .hint("create one whose extra group is system:bootstrappers:managedcluster, or leave out --use-bootstrap-token")
        })?;
    bootstrap_token_of(&secret).map_err(|problem| Failure::new(format!("secret {name} contains no token: {problem}")))
}

/// The token in a secret of type bootstrap.kubernetes.io/token: `<token-id>.<token-secret>`.
fn bootstrap_token_of(secret: &Secret) -> Result<String, String> {
    let value = |key: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key)).ok_or(format!("it has no key {key}"))?;
        let text = std::str::from_utf8(&bytes.0).map_err(|_| format!("the value of {key} is not text"))?;
        Ok::<_, String>(text.trim().to_owned())
    };
    Ok(format!("{}.{}", value("token-id")?, value("token-secret")?))
}

fn text(header: &str, token: &str, server: &str) -> String {
    format!(
        "token={token}\nplease log on spoke and run:\n\
         {header} join --hub-token {token} --hub-apiserver {server} --wait --cluster-name <cluster_name>\n"
    )
}

fn json(token: &str, server: &str) -> String {
    format!("{}\n", json!({ "hub-token": token, "hub-apiserver": server }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_token_and_the_join_command() {
        let expected = "\
token=abc
please log on spoke and run:
clusteradm join --hub-token abc --hub-apiserver https://hub:6443 --wait --cluster-name <cluster_name>
";
        assert_eq!(text("clusteradm", "abc", "https://hub:6443"), expected);
    }

    #[test]
    fn json_has_upstreams_keys() {
        let value: serde_json::Value = serde_json::from_str(&json("abc", "https://hub:6443")).unwrap();
        assert_eq!(value, json!({ "hub-token": "abc", "hub-apiserver": "https://hub:6443" }));
    }

    #[test]
    fn a_bootstrap_token_is_its_id_and_its_secret() {
        let secret = |data| serde_json::from_value::<Secret>(json!({ "data": data })).unwrap();
        let whole = secret(json!({ "token-id": "b2NtaHVi", "token-secret": "czNjcmV0" }));
        assert_eq!(bootstrap_token_of(&whole).unwrap(), "ocmhub.s3cret");
        let half = secret(json!({ "token-id": "b2NtaHVi" }));
        assert_eq!(bootstrap_token_of(&half).unwrap_err(), "it has no key token-secret");
    }
}
