//! Adds certificate authorities that the hub publishes to the agent's kubeconfig: see `FollowedCa`.
//!
//! Reads one ConfigMap when the agent connects, when its secret changes, and every hour, and writes only if there is
//! something new. A hub that does not grant the right to read it, such as one of OCM, is asked as rarely, and nothing is
//! reported.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{Api, Client};
use ocm_api::secrets::{KEY_FOLLOWED_CA, KEY_KUBECONFIG};
use ocm_runtime::{Cache, Controller, ControllerBuilder, Error, Informers, ObjectKey, error::chain, write};
use tracing::{debug, info, warn};

use super::certificate::{save_secret, secret_at};
use crate::agent::{Connection, FollowedCa};

const PERIOD: Duration = Duration::from_secs(3600);
/// Where Kubernetes publishes the certificate authorities of its API server.
const NAMESPACE: &str = "kube-public";
const CONFIG_MAP: &str = "kube-root-ca.crt";
const KEY: &str = "ca.crt";

/// See the module.
pub(crate) struct HubCa {
    hub: Client,
    keeper: Client,
    secrets: Cache<Secret>,
    secret: ObjectKey,
    /// The connection in the bootstrap kubeconfig.
    base: Connection,
}

/// What the hub publishes, and the secret that it is added to.
pub(crate) struct Observed {
    secret: Arc<Secret>,
    published: String,
    base: Connection,
}

impl HubCa {
    pub(crate) fn new(hub: &Informers, management: &Informers, secret: ObjectKey, base: Connection) -> Self {
        let (keeper, secrets) = (management.client().clone(), secret_at(management, &secret));
        Self { hub: hub.client().clone(), keeper, secrets, secret, base }
    }

    /// What the hub publishes; `None` if it does not let the agent read that, or cannot be asked.
    async fn published(&self) -> Option<String> {
        let api: Api<ConfigMap> = Api::namespaced(self.hub.clone(), NAMESPACE);
        let map: Result<Option<ConfigMap>, Error> = write::get(&api, CONFIG_MAP).await;
        let map = map.inspect_err(|error| {
            debug!(error = %chain(error), "cannot read the certificate authorities that the hub publishes");
        });
        map.ok()??.data?.remove(KEY)
    }
}

impl Controller for HubCa {
    const NAME: &'static str = "hub-ca";
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Option<FollowedCa>;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        builder.watches(&self.secrets, |change| [ObjectKey::of(change.object().as_ref())]);
        builder.every(PERIOD, self.secret.clone());
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, Error> {
        let Some(secret) = self.secrets.get(key) else { return Ok(None) };
        let published = self.published().await;
        Ok(published.map(|published| Observed { secret, published, base: self.base.clone() }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Option<FollowedCa> {
        let known = observed.secret.data.as_ref().and_then(|data| FollowedCa::read(&data.get(KEY_FOLLOWED_CA)?.0));
        FollowedCa::learn(known.as_ref(), &observed.base, &observed.published, now)
    }

    async fn apply(&self, observed: &Observed, plan: Option<FollowedCa>) -> Result<(), Error> {
        let Some(followed) = plan else { return Ok(()) };
        let kubeconfig = match FollowedCa::extend(Some(&followed), &self.base).render() {
            Ok(kubeconfig) => kubeconfig,
            Err(error) => {
                warn!(error = %chain(&error), "cannot add the certificate authorities that the hub publishes");
                return Ok(());
            }
        };
        let data = [(KEY_KUBECONFIG, kubeconfig), (KEY_FOLLOWED_CA, followed.to_text())];
        let data: BTreeMap<_, _> = data.map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes()))).into();
        let api = Api::namespaced(self.keeper.clone(), &self.secret.namespace);
        let saved = save_secret(&api, &self.secret, Some(&observed.secret), &data, &[]).await?;
        self.secrets.record_write(saved);
        info!("the hub has published other certificate authorities: the kubeconfig trusts the new ones beside its own");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::secrets;
    use serde_json::json;

    use super::*;
    use crate::testing::Mock;

    #[tokio::test]
    async fn a_hub_that_does_not_let_the_agent_read_is_no_error() {
        const SECRETS: &str = "/api/v1/namespaces/agent/secrets";
        let denied = json!({"kind": "Status", "code": 403, "status": "Failure", "message": "", "reason": "Forbidden"});
        let hub = Mock::answering(vec![(403, denied)]);
        let key = ObjectKey::new("agent", secrets::HUB_KUBECONFIG);
        let secret = json!({"metadata": {"name": key.name, "namespace": "agent", "uid": "u", "resourceVersion": "1"}});
        let keeper = Mock::default().listing(SECRETS, &json!([secret]));
        let context = ocm_runtime::Context::new();
        let (hub_informers, keeper) =
            (Informers::new(hub.client(), context.clone()), Informers::new(keeper.client(), context));
        let controller = HubCa::new(&hub_informers, &keeper, key.clone(), Connection::default());
        controller.secrets.synced().await;
        assert!(controller.observe(&key).await.unwrap().is_none());
        assert_eq!(hub.asked(), ["GET /api/v1/namespaces/kube-public/configmaps/kube-root-ca.crt"]);
    }
}
