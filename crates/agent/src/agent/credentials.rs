//! The agent's credentials for the hub: stored in a secret, used from files, validated before use.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use ocm_api::secrets;
use ocm_runtime::{
    Cache, Class, Classified, Context, Controller, ControllerBuilder, Informers, ObjectKey, Requeue, client::Endpoint,
};
use tokio::sync::watch as signal;
use tracing::info;

use super::{
    AgentError,
    files::{FilesError, HubDir},
    hub_ca::FollowedCa,
    hub_kubeconfig::{self, Connection, ConnectionError, Invalid, Valid},
    hubs::SelectedHub,
    names::Names,
};
use crate::registration::certificate;

/// The resync period: how often the files are compared with the secret.
const RESYNC: Duration = Duration::from_secs(300);
/// The name of the health check, as in OCM.
const HEALTH_CHECK: &str = "hub-kube-config";
/// The certificate's name in metrics.
pub(super) const HUB_CERTIFICATE: &str = "hub-client";

/// The agent's credentials for the hub. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Credentials {
    context: Context,
    dir: HubDir,
    names: Names,
    bootstrap: Option<PathBuf>,
    /// The hub that was selected, for an agent with several.
    selected: Option<Connection>,
    /// Notifies of changed files.
    changed: signal::Sender<()>,
    /// When those in use expire; `None` while the agent has no valid ones.
    in_use: Arc<Mutex<Option<Timestamp>>>,
}

impl Credentials {
    pub(super) fn new(context: &Context, dir: HubDir, names: Names, bootstrap: Option<PathBuf>) -> Self {
        let changed = signal::Sender::new(());
        Self { context: context.clone(), dir, names, bootstrap, selected: None, changed, in_use: Arc::default() }
    }

    /// The same credentials, for an agent that has selected this hub.
    pub(super) fn for_hub(&self, hub: SelectedHub) -> Self {
        Self { bootstrap: Some(hub.bootstrap), selected: Some(hub.connection), ..self.clone() }
    }

    /// Connects with them.
    pub(super) fn load(&self) -> Result<(Connection, Endpoint), AgentError> {
        self.dir.consistently(|| {
            let kubeconfig = self.kubeconfig();
            Ok((Connection::read(&kubeconfig)?, Endpoint::load(&self.context, Some(&kubeconfig))?))
        })
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.dir.file(secrets::KEY_KUBECONFIG)
    }

    pub(super) fn bootstrap_path(&self) -> Option<&PathBuf> {
        self.bootstrap.as_ref()
    }

    /// The connection of the bootstrap kubeconfig, if there is one.
    pub(super) fn bootstrap(&self) -> Option<Result<Connection, ConnectionError>> {
        self.bootstrap.as_ref().map(|path| Connection::read(path))
    }

    /// A connection with the certificate authorities that were added to it.
    pub(super) fn extended(&self, connection: &Connection) -> Connection {
        let followed = self.dir.read(secrets::KEY_FOLLOWED_CA).and_then(|text| FollowedCa::read(&text));
        FollowedCa::extend(followed.as_ref(), connection)
    }

    /// The connection that they must be for: that of the bootstrap kubeconfig, or while this cannot be read, that of the
    /// selected hub. `None` if neither is known.
    pub(super) fn hub(&self) -> Option<Connection> {
        self.bootstrap().and_then(Result::ok).or_else(|| self.selected.clone())
    }

    /// Whether the files show that this agent has joined this hub under its present cluster name.
    pub(super) fn have_been_for(&self, hub: &Connection) -> bool {
        let is_same_hub = Connection::read(&self.kubeconfig()).is_ok_and(|own| own.server == hub.server);
        is_same_hub && self.dir.text(secrets::KEY_CLUSTER_NAME).as_ref() == Some(&self.names.cluster)
    }

    /// Whether they are valid now. A bootstrap kubeconfig that cannot be read does not invalidate them.
    pub(super) fn check(&self) -> Result<Valid, Invalid> {
        let bootstrap = self.hub();
        let now = self.context.clock().now();
        self.dir.consistently(|| {
            let extended = bootstrap.as_ref().map(|connection| self.extended(connection));
            match hub_kubeconfig::check(&self.dir, extended.as_ref(), &self.names, now) {
                // The kubeconfig follows the additions with the next certificate.
                Err(Invalid::OtherHub(_)) => hub_kubeconfig::check(&self.dir, bootstrap.as_ref(), &self.names, now),
                checked => checked,
            }
        })
    }

    /// Subscribes to changes of the files.
    pub(super) fn changes(&self) -> signal::Receiver<()> {
        self.changed.subscribe()
    }

    pub(super) fn use_until(&self, until: Option<Timestamp>) {
        until.into_iter().for_each(|until| self.context.metrics().certificate_expires(HUB_CERTIFICATE, until));
        *self.in_use.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Adds the health check. It fails while the agent uses expired credentials.
    pub(super) fn check_health_of(&self, context: &Context) {
        let credentials = self.clone();
        context.health().check(HEALTH_CHECK, move || {
            let until = *credentials.in_use.lock().unwrap_or_else(PoisonError::into_inner);
            match until.filter(|until| *until < credentials.context.clock().now()) {
                None => Ok(()),
                Some(until) => Err(format!(
                    "the client certificate for the hub expired at {until}, and the agent has not bootstrapped again \
                     yet: restart it if this lasts"
                )),
            }
        });
    }
}

/// Writes the secret's data into the files whenever it changes.
pub(super) struct HubKubeconfigFiles {
    secrets: Cache<Secret>,
    secret: ObjectKey,
    credentials: Credentials,
}

/// The data of the secret that differs from the files.
pub(super) struct Observed {
    outdated: BTreeMap<String, ByteString>,
}

impl Classified for FilesError {
    fn class(&self) -> Class {
        Class::Transient
    }
}

impl HubKubeconfigFiles {
    pub(super) fn new(management: &Informers, secret: ObjectKey, credentials: Credentials) -> Self {
        Self { secrets: certificate::secret_at(management, &secret), secret, credentials }
    }
}

impl Controller for HubKubeconfigFiles {
    const NAME: &'static str = "hub-kubeconfig-files";
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = BTreeMap<String, ByteString>;
    type Applied = bool;
    type Error = FilesError;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        builder.watches(&self.secrets, |change| [ObjectKey::of(change.object().as_ref())]);
        builder.every(RESYNC, self.secret.clone());
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, FilesError> {
        let Some(secret) = self.secrets.get(key) else { return Ok(None) };
        let data = secret.data.as_ref();
        Ok(data.map(|data| Observed { outdated: self.credentials.dir.outdated(data) }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Self::Plan {
        observed.outdated.clone()
    }

    async fn apply(&self, _: &Observed, plan: Self::Plan) -> Result<bool, FilesError> {
        if plan.is_empty() {
            return Ok(false);
        }
        self.credentials.dir.write(&plan)?;
        info!(dir = %self.credentials.dir.path().display(), "wrote new hub credentials");
        Ok(true)
    }

    async fn report(&self, _: &Observed, changed: bool, _: Timestamp) -> Result<Requeue, FilesError> {
        if changed {
            self.credentials.changed.send_replace(());
        }
        Ok(Requeue::OnChange)
    }
}
