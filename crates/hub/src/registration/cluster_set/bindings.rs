//! Reports for every binding of a cluster set whether the set exists.
//!
//! A binding changes, or a set comes or goes → does a set of the name in `spec.clusterSet` exist? → condition `Bound`.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, ResourceExt as _};
use ocm_api::{
    cluster::v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
    conditions::set_binding::BOUND,
    reasons::set_binding as reasons,
};
use ocm_apimachinery::labels::is_dns_name;
use ocm_runtime::{
    Cache, Change, ControllerBuilder, ObjectKey, Requeue, StatusController,
    conditions::{self, NewCondition},
    informer::View,
    write,
};

use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct SetBindingController {
    hub: HubContext,
    bindings: Cache<ManagedClusterSetBinding>,
    /// The set that each binding names.
    bound: View<String>,
    sets: Cache<ManagedClusterSet>,
    existing: View<()>,
}

/// A binding, and whether its set exists.
#[derive(Debug)]
pub(crate) struct Observed {
    binding: Arc<ManagedClusterSetBinding>,
    set_exists: bool,
}

impl SetBindingController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let (bindings, sets) = (caches::set_bindings(&hub.informers), caches::sets(&hub.informers));
        let bound = bindings.view(|binding| Some(binding.spec.cluster_set.clone()));
        Self { bound, existing: sets.view(|_| Some(())), bindings, sets, hub: hub.clone() }
    }

    /// A set that the cache lacks is read: the watch of bindings may be ahead of that of sets.
    async fn set_exists(&self, name: &str) -> Result<bool> {
        if self.existing.get(&ObjectKey::new("", name)).is_some() {
            return Ok(true);
        }
        if !is_dns_name(name) {
            return Ok(false);
        }
        let sets: Api<ManagedClusterSet> = Api::all(self.hub.client.clone());
        Ok(write::get(&sets, name).await?.is_some())
    }
}

impl StatusController for SetBindingController {
    const NAME: &'static str = "cluster-set-binding";
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Option<NewCondition>;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        builder.watches(&self.bindings, |change| {
            let exists = !matches!(change, Change::Deleted(_));
            exists.then(|| ObjectKey::of(change.object().as_ref()))
        });
        let bound = self.bound.clone();
        builder.watches(&self.sets, move |change| match change {
            Change::Added(set) | Change::Deleted(set) => bindings_of(&bound, &set.name_any()),
            Change::Updated { .. } => Vec::new(),
        });
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>> {
        let Some(binding) = self.bindings.get(key).filter(|binding| !write::is_deleting(binding.as_ref())) else {
            return Ok(None);
        };
        let set_exists = self.set_exists(&binding.spec.cluster_set).await?;
        Ok(Some(Observed { binding, set_exists }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Option<NewCondition> {
        let condition = condition(&observed.binding, observed.set_exists);
        let said = observed.binding.status.as_ref().and_then(|status| conditions::find(&status.conditions, BOUND));
        let is_said = |said: &Condition| {
            // OCM says it without a message, which is never wrong.
            let is_message = said.message.is_empty() || said.message == condition.message;
            said.status == condition.status && said.reason == condition.reason && is_message
        };
        (!said.is_some_and(is_said)).then_some(condition)
    }

    async fn report(&self, observed: &Observed, condition: Option<NewCondition>, now: Timestamp) -> Result<Requeue> {
        let Some(condition) = condition else { return Ok(Requeue::OnChange) };
        let binding = &observed.binding;
        let mut new = ManagedClusterSetBinding::clone(binding);
        conditions::set(&mut new.status.get_or_insert_default().conditions, condition, None, now);
        let namespace = binding.namespace().unwrap_or_default();
        let api: Api<ManagedClusterSetBinding> = Api::namespaced(self.hub.client.clone(), &namespace);
        if let Some(written) = write::patch_status(&api, binding, &new).await? {
            self.bindings.record_write(written);
        }
        Ok(Requeue::OnChange)
    }
}

fn condition(binding: &ManagedClusterSetBinding, set_exists: bool) -> NewCondition {
    let (name, set) = (binding.name_any(), &binding.spec.cluster_set);
    let otherwise = (name != *set)
        .then(|| format!("placements go by a binding's name, here {name}: name it like the set it binds"));
    if set_exists {
        let message = match otherwise {
            None => format!("Placements in this namespace may choose from ManagedClusterSet {set}"),
            Some(otherwise) => format!("ManagedClusterSet {set} exists, but {otherwise}"),
        };
        return NewCondition::is_true(BOUND, reasons::CLUSTER_SET_BOUND, message);
    }
    let message = match otherwise {
        None => format!("ManagedClusterSet {set} does not exist: create it, or bind another one"),
        Some(otherwise) => format!("ManagedClusterSet {set} does not exist, and {otherwise}"),
    };
    NewCondition::is_false(BOUND, reasons::CLUSTER_SET_NOT_FOUND, message)
}

fn bindings_of(bound: &View<String>, set: &str) -> Vec<ObjectKey> {
    bound.read(|all| all.iter().filter(|(_, bound)| *bound == set).map(|(key, _)| key.clone()).collect())
}

#[cfg(test)]
mod tests {
    use ocm_api::cluster::v1beta2::{ManagedClusterSetBindingSpec, ManagedClusterSetBindingStatus};

    use super::*;
    use crate::testing::now;

    fn binding() -> ManagedClusterSetBinding {
        ManagedClusterSetBinding::new("ns", "s", ManagedClusterSetBindingSpec { cluster_set: "s".into() })
    }

    fn plan(binding: ManagedClusterSetBinding, set_exists: bool) -> Option<NewCondition> {
        SetBindingController::plan(&Observed { binding: Arc::new(binding), set_exists }, now())
    }

    #[test]
    fn a_binding_is_bound_when_its_set_exists() {
        let bound = plan(binding(), true).unwrap();
        assert_eq!((bound.type_, bound.status, bound.reason), ("Bound", "True", "ClusterSetBound"));
        let missing = plan(binding(), false).unwrap();
        assert_eq!((missing.status, missing.reason), ("False", "ClusterSetNotFound"));
        assert!(missing.message.contains("ManagedClusterSet s does not exist"));
    }

    fn said(mut binding: ManagedClusterSetBinding, condition: NewCondition) -> ManagedClusterSetBinding {
        binding.status = Some(ManagedClusterSetBindingStatus { conditions: vec![condition.at(now(), None)] });
        binding
    }

    #[test]
    fn what_is_said_already_is_not_said_again_be_it_without_words() {
        let theirs = said(binding(), NewCondition::is_true(BOUND, reasons::CLUSTER_SET_BOUND, ""));
        assert_eq!(plan(theirs.clone(), true), None);
        assert!(plan(theirs, false).is_some());
        let ours = said(binding(), plan(binding(), true).unwrap());
        assert_eq!(plan(ours, true), None);
    }

    #[test]
    fn a_binding_that_is_edited_to_another_set_no_longer_names_the_former() {
        let mut edited = said(binding(), plan(binding(), true).unwrap());
        edited.spec.cluster_set = "other".into();
        let message = plan(edited, true).unwrap().message;
        assert!(
            message.contains("ManagedClusterSet other exists, but") && message.contains("name, here s"),
            "{message}"
        );
    }

    #[test]
    fn a_binding_that_is_not_named_like_its_set_says_what_placements_go_by() {
        let mut unlike = binding();
        unlike.spec.cluster_set = "other".into();
        let bound = plan(unlike.clone(), true).unwrap();
        assert_eq!((bound.status, bound.reason), ("True", "ClusterSetBound"));
        let missing = plan(unlike, false).unwrap();
        assert_eq!((missing.status, missing.reason), ("False", "ClusterSetNotFound"));
        for message in [bound.message, missing.message] {
            assert!(message.contains("placements go by a binding's name, here s: name it like"), "{message}");
        }
    }
}
