//! The way to the cluster: finds the kubeconfig, connects, and explains why a request failed.

use std::{env, path::PathBuf};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use crate::{
    args::GlobalArgs,
    failure::{Failure, root_cause},
};

/// A client, and where it came from for messages.
pub(crate) struct Connection {
    /// The client.
    pub(crate) client: Client,
    /// Address of the API server, without a slash at the end.
    pub(crate) server: String,
    /// Which context of which kubeconfig it came from.
    origin: String,
}

/// Connects to the cluster that the flags choose. No request is made yet.
pub(crate) async fn connect(global: &GlobalArgs) -> Result<Connection, Failure> {
    let source = source(global)?;
    let kubeconfig = source.read().map_err(|error| unreadable(&source, &error))?;
    let origin = origin(global, &source, &kubeconfig);
    let options = KubeConfigOptions { context: global.context.clone(), ..KubeConfigOptions::default() };
    let contexts = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect::<Vec<_>>();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| unusable(&source, &contexts, &error))?;
    config.connect_timeout = Some(global.timeout().min(config.connect_timeout.unwrap_or(global.timeout())));
    config.read_timeout = Some(global.timeout());
    config.reset_reader_on_write = true;
    let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let client = Client::try_from(config)
        .map_err(|error| Failure::new(format!("failed to use {origin}: {}", root_cause(&error))))?;
    Ok(Connection { client, server, origin })
}

/// Where the kubeconfig is read from.
enum Source {
    Flag(PathBuf),
    Variable,
    Home(PathBuf),
}

impl Source {
    fn read(&self) -> Result<Kubeconfig, KubeconfigError> {
        match self {
            Self::Flag(file) | Self::Home(file) => Kubeconfig::read_from(file),
            Self::Variable => Ok(Kubeconfig::from_env()?.unwrap_or_default()),
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(file) | Self::Home(file) => write!(f, "{}", file.display()),
            Self::Variable => write!(f, "{}", env::var("KUBECONFIG").unwrap_or_else(|_| "$KUBECONFIG".to_owned())),
        }
    }
}

fn source(global: &GlobalArgs) -> Result<Source, Failure> {
    if let Some(file) = &global.kubeconfig {
        return Ok(Source::Flag(file.clone()));
    }
    if env::var_os("KUBECONFIG").is_some_and(|files| !files.is_empty()) {
        return Ok(Source::Variable);
    }
    let home = env::home_dir().ok_or_else(|| Failure::new("no kubeconfig: there is no home directory").hint(CHOOSE))?;
    Ok(Source::Home(home.join(".kube/config")))
}

const CHOOSE: &str = "name the kubeconfig of the hub with --kubeconfig or in $KUBECONFIG";

fn origin(global: &GlobalArgs, source: &Source, kubeconfig: &Kubeconfig) -> String {
    match global.context.as_ref().or(kubeconfig.current_context.as_ref()) {
        Some(context) => format!("context {context} of {source}"),
        None => source.to_string(),
    }
}

fn unreadable(source: &Source, error: &KubeconfigError) -> Failure {
    match error {
        KubeconfigError::ReadConfig(cause, file) => {
            Failure::new(format!("failed to read kubeconfig {}: {cause}", file.display())).hint(CHOOSE)
        }
        error => Failure::new(format!("failed to read kubeconfig {source}: {}", root_cause(error)))
            .hint("the file must be a kubeconfig as kubectl writes it; try `kubectl config view` with it"),
    }
}

fn unusable(source: &Source, contexts: &[String], error: &KubeconfigError) -> Failure {
    let choose = if contexts.is_empty() {
        "it has no contexts; name another kubeconfig with --kubeconfig or in $KUBECONFIG".to_owned()
    } else {
        format!("choose one of its contexts with --context: {}", contexts.join(", "))
    };
    match error {
        KubeconfigError::CurrentContextNotSet => {
            Failure::new(format!("kubeconfig {source} has no current context")).hint(choose)
        }
        KubeconfigError::LoadContext(name) => {
            Failure::new(format!("kubeconfig {source} has no context {name}")).hint(choose)
        }
        error => Failure::new(format!("failed to use kubeconfig {source}: {error}")).hint(choose),
    }
}

impl Connection {
    /// Says why a request failed. `doing` completes "failed to".
    pub(crate) fn explain(&self, doing: &str, error: &kube::Error) -> Failure {
        let Self { server, origin, .. } = self;
        match error {
            kube::Error::Api(status) if status.code == 401 => {
                Failure::new(format!("failed to {doing}: {server} does not accept the credentials"))
                    .hint(format!("renew the credentials of {origin}, or choose another context with --context"))
            }
            kube::Error::Api(status) if status.code == 403 => {
                Failure::new(format!("failed to {doing}: {}", status.message))
                    .hint(format!("this takes the rights of a hub administrator, which {origin} has not"))
            }
            kube::Error::Api(status) => Failure::new(format!("failed to {doing}: {}", status.message)),
            kube::Error::Auth(_) => Failure::new(format!("failed to {doing}: {}", root_cause(error)))
                .hint(format!("the credentials of {origin} could not be had")),
            kube::Error::Service(_) | kube::Error::HyperError(_) => {
                Failure::new(format!("failed to {doing}: cannot reach {server}: {}", root_cause(error))).hint(format!(
                    "check that the server runs and is reachable from here; its address is from {origin}"
                ))
            }
            error => Failure::new(format!("failed to {doing}: {}", root_cause(error))),
        }
    }
}
