//! The connection to a cluster, and why a request over it failed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Client, config::KubeconfigError};
use ocm_runtime::{
    client::{self, ClientError},
    kubeconfig::SelectedContext,
};
use serde_json::{Value, json};

use crate::{
    args::GlobalArgs,
    cmd::Context,
    failure::{Failure, causes, root_cause},
    kubeconfig::{self, Found, Origin},
};

/// The field manager of what commands write, and their user agent.
pub(crate) const USER_AGENT: &str = concat!("clusteradm/", env!("CARGO_PKG_VERSION"));

/// A client, and where it came from for messages.
pub(crate) struct Connection {
    /// The client.
    pub(crate) client: Client,
    /// Address of the API server, without a slash at the end.
    pub(crate) server: String,
    /// The credentials, as in "context c of kubeconfig f".
    credentials: String,
}

/// Connects to the cluster that the flags choose. No request is made yet.
pub(crate) fn connect(context: &Context) -> Result<Connection, Failure> {
    let GlobalArgs { kubeconfig: file, context: name, .. } = &context.global;
    let Found { kubeconfig, origin } = kubeconfig::find(file.as_deref(), name.as_deref(), &context.environment)?;
    let names = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect::<Vec<_>>();
    let unusable = |error: &KubeconfigError| unusable(&origin, &names, error);
    let selected = SelectedContext::of(&kubeconfig, name.as_deref()).map_err(|error| unusable(&error))?;
    let mut config = selected.config().map_err(|error| unusable(&error))?;
    let credentials = match origin {
        Origin::Files(_) => format!("context {} of {origin}", selected.name),
        Origin::ServiceAccount => origin.to_string(),
    };
    let client = context
        .environment
        .proxies
        .complete(&mut config)
        .and_then(|()| client::connect(&config, USER_AGENT))
        .map_err(|error| Failure::new(format!("failed to use {credentials}: {}", root_cause(&error))))?;
    let server = client::without_password(&config.cluster_url).to_string().trim_end_matches('/').to_owned();
    Ok(Connection { client, server, credentials })
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
    /// Says why a request failed. `doing` completes "failed to".
    pub(crate) fn explain(&self, doing: &str, error: &kube::Error) -> Failure {
        let Self { server, credentials, .. } = self;
        match error {
            kube::Error::Api(status) if status.code == 401 => {
                Failure::new(format!("failed to {doing}: {server} does not accept the credentials"))
                    .hint(format!("renew the credentials of {credentials}, or choose another context with --context"))
            }
            kube::Error::Api(status) if status.code == 403 => Failure::new(format!(
                "failed to {doing}: {}",
                status.message
            ))
            .hint(format!(
                "{credentials} lacks a right that a hub administrator has, or the server does not allow this to anyone"
            )),
            kube::Error::Api(status) => Failure::new(format!("failed to {doing}: {}", status.message)),
            error if is_about_credentials(error) => Failure::new(format!("failed to {doing}: {}", root_cause(error)))
                .hint(format!("the credentials of {credentials} could not be obtained")),
            kube::Error::Service(_) | kube::Error::HyperError(_) => {
                Failure::new(format!("failed to {doing}: cannot reach {server}: {}", root_cause(error))).hint(format!(
                    "check that the server runs and is reachable from here; its address is from {credentials}"
                ))
            }
            error => Failure::new(format!("failed to {doing}: {}", root_cause(error))),
        }
    }
}

/// Such as an exec plugin that fails.
fn is_about_credentials(error: &kube::Error) -> bool {
    causes(error).any(|cause| {
        let is_of_plugin = matches!(cause.downcast_ref(), Some(ClientError::Plugin(_)));
        is_of_plugin || cause.is::<kube::client::AuthError>()
    })
}

/// How often a write that conflicts with another one is tried again at once.
pub(crate) const CONFLICTS: usize = 10;

/// Has the API server refuse a patch with a conflict if the object was changed or replaced after it was read.
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
            kube::Error::Service(_) | kube::Error::HyperError(_) if !is_about_credentials(error) => {
                Self::ForNow(failure)
            }
            _ => Self::ForGood(failure),
        }
    }

    /// The failure, for those who do not try again.
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
