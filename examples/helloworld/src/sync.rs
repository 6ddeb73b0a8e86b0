//! The agent: copies the ConfigMaps of its cluster's namespace on the hub.
//!
//! Copies carry a label, and only what carries it is ever written or deleted. They are owned by the agent's Deployment, so
//! that they go with the add-on; so does the agent's lease.

use std::sync::Arc;

use jiff::Timestamp;
use ocm_addon::{
    AddonError,
    api::addon::v1alpha1::ManagedClusterAddOn,
    command::Agent,
    k8s_openapi::{
        api::{apps::v1::Deployment, core::v1::ConfigMap},
        apimachinery::pkg::apis::meta::v1::OwnerReference,
    },
    kube::{Api, Client, Resource as _, ResourceExt as _, api::ObjectMeta},
    runtime::{Cache, Change, Controller, Error, Next, ObjectKey, Watches, Wiring, error::found, watch::Scope, write},
};
use tracing::{info, warn};

use crate::addon::AGENT;

/// On every copy.
const COPY: &str = "synced-from-hub";
/// In every namespace of every cluster, and each its own.
const OF_KUBERNETES: &str = "kube-root-ca.crt";

/// Runs the agent until it is asked to end.
pub(crate) async fn run(agent: Agent) -> Result<(), AddonError> {
    let owner = deployment(&agent.managed, &agent.namespace).await?;
    let lease = agent.lease_updater();
    owner.iter().fold(lease, |lease, owner| lease.owned_by(owner.clone())).spawn(&agent.context);
    let hub = Watches::new(agent.hub.clone(), agent.context.clone());
    let managed = Watches::new(agent.managed.clone(), agent.context.clone());
    let copying = Copying {
        addons: hub.within(&agent.cluster, Scope::named(&agent.addon)),
        originals: hub.within(&agent.cluster, Scope::all()),
        copies: managed.within(&agent.namespace, Scope::labelled(COPY)),
        api: Api::namespaced(agent.managed.clone(), &agent.namespace),
        place: Place {
            cluster: agent.cluster.clone(),
            addon: agent.addon.clone(),
            namespace: agent.namespace.clone(),
            owner,
        },
    };
    agent.context.run(copying, 2);
    agent.until_the_end().await;
    Ok(())
}

/// The agent's Deployment, which is not there when the agent is started by hand.
async fn deployment(managed: &Client, namespace: &str) -> Result<Option<OwnerReference>, Error> {
    let found: Option<Deployment> = write::get(&Api::namespaced(managed.clone(), namespace), AGENT).await?;
    Ok(found.and_then(|deployment| deployment.owner_ref(&())))
}

/// Where copies come from and go to.
#[derive(Clone, Debug)]
struct Place {
    cluster: String,
    addon: String,
    namespace: String,
    owner: Option<OwnerReference>,
}

/// See the module.
struct Copying {
    addons: Cache<ManagedClusterAddOn>,
    originals: Cache<ConfigMap>,
    copies: Cache<ConfigMap>,
    api: Api<ConfigMap>,
    place: Place,
}

/// A ConfigMap on the hub, and its copy.
#[derive(Debug)]
struct Observed {
    original: Option<Arc<ConfigMap>>,
    copy: Option<Arc<ConfigMap>>,
    place: Place,
}

/// What to do with a copy.
#[derive(Debug, PartialEq)]
enum Plan {
    Nothing,
    Create(Box<ConfigMap>),
    Update { old: Arc<ConfigMap>, new: Box<ConfigMap> },
    Delete(Arc<ConfigMap>),
}

impl Controller for Copying {
    const NAME: &'static str = "config-maps";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = ();
    type Error = Error;

    fn wire(&self, wiring: &mut Wiring<'_, String>) {
        wiring.needs(&self.addons);
        wiring.on(&self.originals, name);
        wiring.on(&self.copies, name);
    }

    async fn observe(&self, name: &String) -> Result<Option<Observed>, Error> {
        let addon = self.addons.get(&ObjectKey::new(&*self.place.cluster, &*self.place.addon));
        if addon.is_none_or(|addon| write::is_deleting(&*addon)) {
            // The add-on leaves, and takes the copies with it.
            return Ok(None);
        }
        let original = self.originals.get(&ObjectKey::new(&*self.place.cluster, name));
        let copy = self.copies.get(&ObjectKey::new(&*self.place.namespace, name));
        Ok(Some(Observed { original, copy, place: self.place.clone() }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        match (&observed.original, &observed.copy) {
            (None, None) => Plan::Nothing,
            (None, Some(copy)) => Plan::Delete(copy.clone()),
            (Some(original), None) => Plan::Create(Box::new(copied(original, empty(original, &observed.place)))),
            (Some(original), Some(copy)) => {
                let new = copied(original, ConfigMap::clone(copy));
                if new == **copy { Plan::Nothing } else { Plan::Update { old: copy.clone(), new: Box::new(new) } }
            }
        }
    }

    async fn apply(&self, _: &Observed, plan: Plan) -> Result<(), Error> {
        let written = match plan {
            Plan::Nothing => return Ok(()),
            Plan::Create(new) => self.create(&new).await?,
            Plan::Update { old, new } => found(write::patch(&self.api, &*old, &*new).await)?.flatten(),
            Plan::Delete(copy) => {
                info!(name = copy.name_any(), "deleted the copy of a ConfigMap");
                return write::delete(&self.api, &*copy).await;
            }
        };
        if let Some(copy) = written {
            info!(name = copy.name_any(), "copied a ConfigMap");
            self.copies.learn(copy);
        }
        Ok(())
    }

    async fn report(&self, _: &Observed, (): (), _: Timestamp) -> Result<Next, Error> {
        Ok(Next::Change)
    }
}

impl Copying {
    /// Makes a copy, unless somebody else has a ConfigMap of that name here.
    async fn create(&self, new: &ConfigMap) -> Result<Option<ConfigMap>, Error> {
        let error = match write::create(&self.api, new).await {
            Ok(created) => return Ok(Some(created)),
            Err(error) if error.is_conflict() => error,
            Err(error) => return Err(error),
        };
        match write::get(&self.api, &new.name_any()).await? {
            Some(foreign) if !foreign.labels().contains_key(COPY) => {
                warn!(name = new.name_any(), "not copied: a ConfigMap of that name is here and is no copy");
                Ok(None)
            }
            _ => Err(error),
        }
    }
}

fn name(change: Change<'_, ConfigMap>) -> Option<String> {
    Some(change.object().name_any()).filter(|name| name != OF_KUBERNETES)
}

fn empty(original: &ConfigMap, place: &Place) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(original.name_any()),
        namespace: Some(place.namespace.clone()),
        labels: Some([(COPY.to_owned(), String::new())].into()),
        owner_references: place.owner.clone().map(|owner| vec![OwnerReference { controller: None, ..owner }]),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

/// A copy with what is in the original.
fn copied(original: &ConfigMap, copy: ConfigMap) -> ConfigMap {
    let ConfigMap { data, binary_data, .. } = original.clone();
    ConfigMap { data, binary_data, ..copy }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        let owner =
            OwnerReference { name: AGENT.into(), uid: "u".into(), controller: Some(true), ..Default::default() };
        Place { cluster: "c1".into(), addon: "helloworld".into(), namespace: "default".into(), owner: Some(owner) }
    }

    fn original(value: &str) -> Arc<ConfigMap> {
        let data = Some([("key".to_owned(), value.to_owned())].into());
        let metadata = ObjectMeta { name: Some("a".into()), namespace: Some("c1".into()), ..ObjectMeta::default() };
        Arc::new(ConfigMap { metadata, data, ..ConfigMap::default() })
    }

    fn plan(original: Option<Arc<ConfigMap>>, copy: Option<Arc<ConfigMap>>) -> Plan {
        Copying::plan(&Observed { original, copy, place: place() }, Timestamp::UNIX_EPOCH)
    }

    fn copy_of(value: &str) -> Arc<ConfigMap> {
        match plan(Some(original(value)), None) {
            Plan::Create(copy) => Arc::new(*copy),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_copy_is_in_the_agents_namespace_says_that_it_is_one_and_goes_with_the_agent() {
        let copy = copy_of("x");
        assert_eq!((copy.name_any().as_str(), copy.namespace().as_deref()), ("a", Some("default")));
        assert!(copy.labels().contains_key("synced-from-hub"));
        assert_eq!(copy.owner_references()[0].uid, "u");
        assert_eq!(copy.data, original("x").data);
    }

    #[test]
    fn a_copy_follows_its_original_and_goes_when_it_goes() {
        assert_eq!(plan(Some(original("x")), Some(copy_of("x"))), Plan::Nothing);
        let changed = plan(Some(original("y")), Some(copy_of("x")));
        assert!(matches!(changed, Plan::Update { new, .. } if new.data == original("y").data));
        assert_eq!(plan(None, Some(copy_of("x"))), Plan::Delete(copy_of("x")));
        assert_eq!(plan(None, None), Plan::Nothing);
    }

    #[test]
    fn what_kubernetes_has_in_every_namespace_is_not_copied() {
        let mut own = ConfigMap::clone(&original("x"));
        own.metadata.name = Some("kube-root-ca.crt".into());
        assert_eq!(name(Change::Added(&Arc::new(own))), None);
        assert_eq!(name(Change::Added(&original("x"))), Some("a".into()));
    }
}
