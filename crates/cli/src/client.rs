//! The connection to a cluster, and why a request over it failed.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Client, Config, config::KubeconfigError};
use ocm_runtime::{
    Clock,
    client::{self, Problem},
    kubeconfig::{FieldError, SelectedContext},
};
use serde_json::{Value, json};

use crate::{
    args::GlobalArgs,
    cmd::Context,
    environment::Environment,
    failure::{Failure, root_cause},
    kubeconfig::{self, Found, Origin},
};

/// The field manager of what commands write, and their user agent.
pub(crate) const USER_AGENT: &str = concat!("clusteradm/", env!("CARGO_PKG_VERSION"));

/// A client, and its origin for messages.
pub(crate) struct Connection {
    /// The client.
    pub(crate) client: Client,
    /// Address of the API server, without a slash at the end.
    pub(crate) server: String,
    /// The credentials, as in "context c of kubeconfig f".
    pub(crate) credentials: String,
    /// What the client was built from.
    config: Config,
    /// Whether the proxy is named by the environment, and not by the kubeconfig.
    has_proxy_of_environment: bool,
    in_pod: bool,
}

/// Connects to the cluster that the flags choose. No request is made yet.
pub(crate) fn connect(context: &Context) -> Result<Connection, Failure> {
    let GlobalArgs { kubeconfig: file, context: name, .. } = &context.global;
    let found = kubeconfig::find(file.as_deref(), name.as_deref(), &context.environment)?;
    connect_to(&found, name.as_deref(), &context.environment)
}

/// Connects to the cluster of a context, or of the current one. No request is made yet.
pub(crate) fn connect_to(found: &Found, name: Option<&str>, environment: &Environment) -> Result<Connection, Failure> {
    let Found { kubeconfig, origin } = found;
    let names = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect::<Vec<_>>();
    let unusable = |error: &KubeconfigError| unusable(origin, &names, error);
    let selected = SelectedContext::of(kubeconfig, name).map_err(|error| unusable(&error))?;
    let credentials = match origin {
        Origin::Files(_) => format!("context {} of {origin}", selected.name),
        Origin::ServiceAccount => origin.to_string(),
    };
    let bad_field = |error: FieldError| {
        Failure::new(format!("failed to use {credentials}: {}", error.problem())).hint(error.advice())
    };
    selected.check().map_err(bad_field)?;
    let mut config = selected.config().map_err(|error| unusable(&error))?;
    let has_proxy_of_environment = config.proxy_url.is_none();
    let client = environment
        .proxies
        .complete(&mut config)
        .and_then(|()| client::connect(&config, USER_AGENT))
        .map_err(|error| Failure::new(format!("failed to use {credentials}: {}", root_cause(&error))))?;
    let server = client::without_password(&config.cluster_url).to_string().trim_end_matches('/').to_owned();
    let in_pod = environment.service_account.is_some();
    Ok(Connection { client, server, credentials, config, has_proxy_of_environment, in_pod })
}

fn unusable(origin: &Origin, contexts: &[String], error: &KubeconfigError) -> Failure {
    let choose = if contexts.is_empty() {
        "it has no contexts; name another kubeconfig with --kubeconfig or in $KUBECONFIG".to_owned()
    } else {
        format!("choose one of its contexts with --context: {}", contexts.join(", "))
    };
    match error {
        KubeconfigError::CurrentContextNotSet => Failure::new(format!("{origin} has no current context")).hint(choose),
        KubeconfigError::LoadContext(name) => Failure::new(format!("{origin} has no context {name}")).hint(choose),
        error => Failure::new(format!("failed to use {origin}: {}", root_cause(error))).hint(choose),
    }
}

impl Connection {
    /// Explains why a request failed. `doing` completes "failed to".
    pub(crate) fn explain(&self, doing: &str, error: &kube::Error) -> Failure {
        let Self { server, credentials, .. } = self;
        let problem = self.problem(error);
        let failed = |cause: &str| Failure::new(format!("failed to {doing}: {cause}"));
        match &problem {
            Problem::Unauthorized { .. } => failed(&format!("{server}: {problem}"))
                .hint(format!("renew the credentials of {credentials}, or choose another context with --context")),
            Problem::Answer { code: 403, message } => failed(message).hint(format!(
                "{credentials} lacks a right that a hub administrator has, or the server does not allow this to anyone"
            )),
            Problem::Answer { message, .. } => failed(message),
            Problem::Credentials(message) => {
                failed(message).hint(format!("the credentials of {credentials} could not be obtained"))
            }
            problem if is_about_the_network(error) => failed(&format!("cannot reach {server}: {problem}"))
                .hint(format!("{} (its address is from {credentials})", self.hint(problem))),
            problem => failed(&problem.to_string()),
        }
    }

    /// Why a request failed.
    pub(crate) fn problem(&self, error: &kube::Error) -> Problem {
        Problem::of(error).with_expiry(self.expiry(), Clock::System.now())
    }

    /// What to do about it.
    pub(crate) fn hint(&self, problem: &Problem) -> String {
        problem.hint(&client::without_password(&self.config.cluster_url), self.in_pod)
    }

    /// When the credentials expire, if they contain that.
    pub(crate) fn expiry(&self) -> Option<Timestamp> {
        client::expiry(&self.config.auth_info)
    }

    /// Whether the address leads to this machine only.
    pub(crate) fn is_loopback(&self) -> bool {
        client::is_loopback(&self.config.cluster_url)
    }

    /// The proxy, and where it is named.
    pub(crate) fn proxy(&self) -> Option<String> {
        let source = if self.has_proxy_of_environment { "the environment" } else { "the kubeconfig" };
        let proxy = client::without_password(self.config.proxy_url.as_ref()?).to_string();
        Some(format!("{} of {source}", proxy.trim_end_matches('/')))
    }
}

/// Such as an exec plugin that fails.
fn is_about_credentials(error: &kube::Error) -> bool {
    matches!(Problem::of(error), Problem::Credentials(_))
}

fn is_about_the_network(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_))
}

/// How often a write is retried at once after a conflict.
pub(crate) const CONFLICTS: usize = 10;

/// Makes the API server refuse a patch with a conflict if the object was changed or replaced after it was read.
pub(crate) fn unchanged(metadata: &ObjectMeta) -> Value {
    json!({ "uid": metadata.uid, "resourceVersion": metadata.resource_version })
}

/// Why a request failed, and whether another one may succeed.
#[derive(Debug)]
pub(crate) enum Failed {
    /// An object was changed after it was read.
    Conflict(Failure),
    /// The hub could not be reached, or was overloaded.
    ForNow(Failure),
    ForGood(Failure),
}

impl Failed {
    /// The failure of a request that ended with this error.
    pub(crate) fn of(error: &kube::Error, failure: Failure) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 409 => Self::Conflict(failure),
            kube::Error::Api(status) if matches!(status.code, 429 | 500..=599) => Self::ForNow(failure),
            error if is_about_the_network(error) && !is_about_credentials(error) => Self::ForNow(failure),
            _ => Self::ForGood(failure),
        }
    }

    /// The failure, for callers that do not retry.
    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Self::Conflict(failure) | Self::ForNow(failure) | Self::ForGood(failure) => failure,
        }
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self::ForGood(failure)
    }
}
