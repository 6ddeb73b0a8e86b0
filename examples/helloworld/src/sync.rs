//! The agent: copies the ConfigMaps of its cluster's namespace on the hub.
//!
//! Copies carry a label, and only objects with that label are written or deleted. The agent's service account owns them and
//! the agent's lease, so that they are deleted with the add-on.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use ocm_addon::{
    AddonError,
    api::addon::v1alpha1::ManagedClusterAddOn,
    command::Agent,
    k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference},
    kube::{Api, ResourceExt as _, api::ObjectMeta},
    runtime::{
        Cache, Change, Controller, ControllerBuilder, Error, Informers, ObjectKey, Requeue, WatchFilter, chain, write,
    },
};
use tracing::{info, warn};

/// Label of every copy.
const COPY: &str = "synced-from-hub";
/// Exists in every namespace of every cluster, with contents of its own.
const OF_KUBERNETES: &str = "kube-root-ca.crt";

/// How soon a copy is tried again whose name a ConfigMap of somebody else has.
const RETRY: Duration = Duration::from_secs(10 * 60);

/// Runs the agent until it is asked to end.
pub(crate) async fn run(agent: Agent) -> Result<(), AddonError> {
    agent.lease_updater().spawn(&agent.context);
    if let Err(error) = check_addon(&agent).await {
        warn!(error = %chain(&error), "cannot ask the hub for the add-on; its informers try again");
    }
    let hub = Informers::new(agent.hub.clone(), agent.context.clone());
    let managed = Informers::new(agent.managed.clone(), agent.context.clone());
    let copying = Copying {
        addons: hub.namespaced(&agent.cluster, WatchFilter::named(&agent.addon)),
        originals: hub.namespaced(&agent.cluster, WatchFilter::all()),
        copies: managed.namespaced(&agent.namespace, WatchFilter::labelled(COPY)),
        api: Api::namespaced(agent.managed.clone(), &agent.namespace),
        place: Place {
            cluster: agent.cluster.clone(),
            addon: agent.addon.clone(),
            namespace: agent.namespace.clone(),
            owner: agent.owner.clone(),
        },
    };
    agent.context.run(copying, 2);
    agent.until_the_end().await;
    Ok(())
}

async fn check_addon(agent: &Agent) -> Result<(), Error> {
    let api: Api<ManagedClusterAddOn> = Api::namespaced(agent.hub.clone(), &agent.cluster);
    if write::get(&api, &agent.addon).await?.is_none() {
        let (addon, cluster) = (&agent.addon, &agent.cluster);
        warn!(addon, cluster, "the hub has no such add-on on this cluster: nothing is copied until there is one");
    }
    Ok(())
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
    type Applied = Requeue;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.waits_for(&self.addons);
        builder.watches(&self.originals, name);
        builder.watches(&self.copies, name);
    }

    async fn observe(&self, name: &String) -> Result<Option<Observed>, Error> {
        let addon = self.addons.get(&ObjectKey::new(&*self.place.cluster, &*self.place.addon));
        if addon.is_none_or(|addon| write::is_deleting(&*addon)) {
            // The copies are deleted with the add-on.
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

    async fn apply(&self, _: &Observed, plan: Plan) -> Result<Requeue, Error> {
        let written = match plan {
            Plan::Nothing => None,
            Plan::Create(new) => match self.create(&new).await? {
                Some(copy) => Some(copy),
                // No event reports its deletion.
                None => return Ok(Requeue::After(RETRY)),
            },
            Plan::Update { old, new } => write::patch(&self.api, &*old, &*new).await?,
            Plan::Delete(copy) => {
                write::delete(&self.api, &*copy).await?;
                info!(name = copy.name_any(), "deleted the copy of a ConfigMap");
                None
            }
        };
        if let Some(copy) = written {
            info!(name = copy.name_any(), "copied a ConfigMap");
            self.copies.record_write(copy);
        }
        Ok(Requeue::OnChange)
    }

    async fn report(&self, _: &Observed, applied: Requeue, _: Timestamp) -> Result<Requeue, Error> {
        Ok(applied)
    }
}

impl Copying {
    /// Creates a copy; `None` if somebody else has a ConfigMap of that name.
    async fn create(&self, new: &ConfigMap) -> Result<Option<ConfigMap>, Error> {
        let error = match write::create(&self.api, new).await {
            Ok(created) => return Ok(Some(created)),
            Err(error) if error.is_conflict() => error,
            Err(error) => return Err(error),
        };
        match write::get(&self.api, &new.name_any()).await? {
            Some(known) if known.labels().contains_key(COPY) => Err(error),
            // Somebody removed the label, so the informer lacks it.
            Some(known) if self.place.owns(&known) => {
                let mut ours = copied(new, known.clone());
                ours.labels_mut().insert(COPY.into(), String::new());
                Ok(Some(write::patch(&self.api, &known, &ours).await?.unwrap_or(ours)))
            }
            Some(_) => {
                warn!(name = new.name_any(), "not copied: a ConfigMap of that name exists and is not a copy");
                Ok(None)
            }
            None => Err(error),
        }
    }
}

impl Place {
    fn owns(&self, copy: &ConfigMap) -> bool {
        let uid = self.owner.as_ref().map(|owner| &owner.uid);
        uid.is_some_and(|uid| copy.owner_references().iter().any(|owner| owner.uid == *uid))
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
        owner_references: place.owner.clone().map(|owner| vec![owner]),
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
        let owner = OwnerReference { name: "helloworld-agent-sa".into(), uid: "u".into(), ..Default::default() };
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
    fn a_copy_is_in_the_agents_namespace_labelled_and_owned_by_the_agent() {
        let copy = copy_of("x");
        assert_eq!((copy.name_any().as_str(), copy.namespace().as_deref()), ("a", Some("default")));
        assert!(copy.labels().contains_key("synced-from-hub"));
        assert_eq!(copy.owner_references()[0].uid, "u");
        assert_eq!(copy.data, original("x").data);
    }

    #[test]
    fn a_copy_follows_its_original_and_is_deleted_with_it() {
        assert_eq!(plan(Some(original("x")), Some(copy_of("x"))), Plan::Nothing);
        let changed = plan(Some(original("y")), Some(copy_of("x")));
        assert!(matches!(changed, Plan::Update { new, .. } if new.data == original("y").data));
        assert_eq!(plan(None, Some(copy_of("x"))), Plan::Delete(copy_of("x")));
        assert_eq!(plan(None, None), Plan::Nothing);
    }

    #[test]
    fn the_config_map_that_kubernetes_creates_in_every_namespace_is_not_copied() {
        let mut own = ConfigMap::clone(&original("x"));
        own.metadata.name = Some("kube-root-ca.crt".into());
        assert_eq!(name(Change::Added(&Arc::new(own))), None);
        assert_eq!(name(Change::Added(&original("x"))), Some("a".into()));
    }
}
