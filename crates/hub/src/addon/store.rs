//! What the add-on controllers share: where add-ons are installed, and what was decided on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::ControlFlow,
    sync::Arc,
};

use kube::ResourceExt as _;
use ocm_api::addon::v1alpha1::ManagedClusterAddOn;
use ocm_runtime::{Change, Context, Informers, ObjectKey, informer::View};

use super::{
    decision::{Decision, Desired, DesiredState, Failures, Installed, controller::DecisionController},
    facts::{self, Management},
    sources,
};
use crate::{context::HubContext, decisions::DecisionTracker, observable::Observable};

/// How many add-ons are decided on at a time.
const WORKERS: usize = 2;

/// What has changed in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreEvent {
    /// What is desired of an installation: namespace and name of its ManagedClusterAddOn.
    Desired(ObjectKey),
    /// How far an add-on has come.
    Progress {
        /// Its name.
        addon: String,
    },
    /// An add-on could not be installed on a cluster.
    Failure {
        /// Its name.
        addon: String,
    },
}

/// See the module. Cheap to clone; up to date as long as a clone exists.
#[derive(Clone)]
pub(crate) struct AddOnStore {
    shared: Arc<Observable<State, StoreEvent>>,
    tracker: DecisionTracker,
    managements: View<Management>,
}

/// What is known of each add-on, by name.
#[derive(Debug, Default)]
pub(super) struct State {
    addons: BTreeMap<String, AddOn>,
}

#[derive(Debug, Default)]
struct AddOn {
    installed: Arc<Installed>,
    failures: Failures,
    decision: Option<Arc<Decision>>,
}

impl fmt::Debug for AddOnStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddOnStore").finish_non_exhaustive()
    }
}

impl AddOnStore {
    pub(crate) fn new(informers: &Informers, tracker: DecisionTracker) -> Self {
        let managements = sources::managements(informers).view(Management::of);
        let store = Self { shared: Arc::default(), tracker, managements };
        let shared = Arc::downgrade(&store.shared);
        sources::addons(informers).subscribe(move |change| {
            let Some(shared) = shared.upgrade() else { return ControlFlow::Break(()) };
            shared.state().take(change);
            ControlFlow::Continue(())
        });
        store
    }

    /// Starts the controller that decides, unless it runs already. The controllers that carry decisions out call this, for
    /// nothing happens without decisions, whichever of them are chosen to run.
    pub(crate) fn start_deciding(&self, context: &Context, hub: &HubContext) {
        if self.shared.is_first_start() {
            context.run(DecisionController::new(hub, self.clone()), WORKERS);
        }
    }

    pub(crate) fn tracker(&self) -> &DecisionTracker {
        &self.tracker
    }

    /// Calls `listener` for everything that is decided already, and then for every event.
    pub(crate) fn listen(&self, listener: impl Fn(&StoreEvent) + Send + 'static) {
        self.shared.listen(State::everything, listener);
    }

    /// The add-ons that follow a placement.
    pub(crate) fn followers(&self, placement: &ObjectKey) -> Vec<String> {
        let follows = |management: &Management| management.followed().iter().any(|one| one.placement == *placement);
        self.managements.read(|all| {
            all.iter().filter(|(_, management)| follows(management)).map(|(key, _)| key.name.clone()).collect()
        })
    }

    /// Where an add-on is installed.
    pub(crate) fn installed(&self, addon: &str) -> Arc<Installed> {
        self.shared.state().addons.get(addon).map(|addon| addon.installed.clone()).unwrap_or_default()
    }

    /// Why an add-on could not be installed.
    pub(crate) fn failures(&self, addon: &str) -> Failures {
        self.shared.state().addons.get(addon).map(|addon| addon.failures.clone()).unwrap_or_default()
    }

    /// What is decided on an add-on.
    pub(crate) fn decision(&self, addon: &str) -> Option<Arc<Decision>> {
        self.shared.state().addons.get(addon)?.decision.clone()
    }

    /// What is desired of an installation.
    pub(crate) fn desired(&self, key: &ObjectKey) -> Option<Desired> {
        self.decision(&key.name)?.desired.get(&*key.namespace).cloned()
    }

    /// The installations on a cluster, those that are only desired included.
    pub(crate) fn on_cluster(&self, cluster: &str) -> Vec<ObjectKey> {
        let state = self.shared.state();
        let here = state.addons.iter().filter(|(_, addon)| addon.is_on(cluster));
        here.map(|(name, _)| ObjectKey::new(cluster, name.clone())).collect()
    }

    /// The add-ons on a cluster that follow placements.
    pub(crate) fn followers_on(&self, cluster: &str) -> Vec<ObjectKey> {
        let mut keys = self.on_cluster(cluster);
        let follows = |name: &str| {
            let management = self.managements.get(&ObjectKey::new("", name));
            management.is_some_and(|management| management.follows_placements())
        };
        keys.retain(|key| follows(&key.name));
        keys
    }

    /// Publishes a decision.
    pub(super) fn publish(&self, addon: &str, decision: Decision) {
        let events = self.shared.state().publish(addon, decision);
        self.shared.notify(&events);
    }

    /// Records why an add-on could not be installed on a cluster, until it is or need not be.
    pub(crate) fn record_failure(&self, installation: &ObjectKey, reason: String) {
        let event = self.shared.state().record_failure(installation, reason);
        self.shared.notify(event.as_slice());
    }
}

impl AddOn {
    fn is_on(&self, cluster: &str) -> bool {
        self.installed.contains_key(cluster)
            || self.decision.as_ref().is_some_and(|decision| decision.desired.contains_key(cluster))
    }

    fn is_empty(&self) -> bool {
        self.installed.is_empty() && self.decision.is_none()
    }
}

impl State {
    /// Takes in a change of an installation.
    fn take(&mut self, change: Change<'_, ManagedClusterAddOn>) {
        let addon = change.object();
        let (cluster, name) = (addon.namespace().unwrap_or_default(), addon.name_any());
        let is_configured = (!matches!(change, Change::Deleted(_))).then(|| facts::is_configured(addon));
        self.set_installed(&name, &cluster, is_configured);
    }

    /// An add-on is installed on a cluster, and configured or not; `None` if it is not installed.
    pub(super) fn set_installed(&mut self, name: &str, cluster: &str, is_configured: Option<bool>) {
        let addon = self.addons.entry(name.to_owned()).or_default();
        if addon.installed.get(cluster).copied() != is_configured {
            let installed = Arc::make_mut(&mut addon.installed);
            match is_configured {
                Some(is_configured) => _ = installed.insert(cluster.into(), is_configured),
                None => _ = installed.remove(cluster),
            }
        }
        addon.failures.remove(cluster);
        self.forget_if_empty(name);
    }

    /// Publishes a decision; what has changed by it.
    pub(super) fn publish(&mut self, name: &str, decision: Decision) -> Vec<StoreEvent> {
        let addon = self.addons.entry(name.to_owned()).or_default();
        let is_wanted = |cluster: &str| {
            decision.desired.get(cluster).is_some_and(|desired| desired.state == DesiredState::Installed)
        };
        addon.failures.retain(|cluster, _| is_wanted(cluster));
        let before = addon.decision.take().unwrap_or_default();
        let mut events = changes(name, &before, &decision);
        if before.progress != decision.progress {
            events.push(StoreEvent::Progress { addon: name.to_owned() });
        }
        addon.decision = decision.progress.is_some().then(|| Arc::new(decision));
        self.forget_if_empty(name);
        events
    }

    pub(super) fn record_failure(&mut self, key: &ObjectKey, reason: String) -> Option<StoreEvent> {
        let addon = self.addons.get_mut(&key.name)?;
        if addon.installed.contains_key(&*key.namespace) {
            return None;
        }
        let known = addon.failures.entry(key.namespace.as_str().into()).or_default();
        let is_new = *known != reason;
        *known = reason;
        is_new.then(|| StoreEvent::Failure { addon: key.name.clone() })
    }

    fn everything(&self) -> Vec<StoreEvent> {
        let decided = self.addons.iter().filter_map(|(name, addon)| Some((name, addon.decision.as_ref()?)));
        decided
            .flat_map(|(name, decision)| {
                let progress = StoreEvent::Progress { addon: name.clone() };
                changes(name, &Decision::default(), decision).into_iter().chain([progress])
            })
            .collect()
    }

    fn forget_if_empty(&mut self, name: &str) {
        if self.addons.get(name).is_some_and(AddOn::is_empty) {
            self.addons.remove(name);
        }
    }
}

/// The installations of which something else is desired than before.
fn changes(addon: &str, before: &Decision, after: &Decision) -> Vec<StoreEvent> {
    let clusters: BTreeSet<_> = before.desired.keys().chain(after.desired.keys()).collect();
    let changed = clusters.into_iter().filter(|cluster| before.desired.get(*cluster) != after.desired.get(*cluster));
    changed.map(|cluster| StoreEvent::Desired(ObjectKey::new(&**cluster, addon))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addon::decision::Progress;

    fn decision(clusters: &[(&str, DesiredState)]) -> Decision {
        let desired = |state: &DesiredState| Desired { owner: "uid".into(), state: *state, refusal: None };
        Decision {
            desired: clusters.iter().map(|(cluster, state)| ((*cluster).into(), desired(state))).collect(),
            progress: Some(vec![Progress { selected: clusters.len(), ..Progress::default() }]),
            recheck_after: None,
        }
    }

    /// The installations that a decision touches, and whether it is another progress.
    fn published(state: &mut State, decision: Decision) -> (Vec<String>, bool) {
        let events = state.publish("a", decision);
        let touched = events.iter().filter_map(|event| match event {
            StoreEvent::Desired(key) => Some(key.to_string()),
            _ => None,
        });
        (touched.collect(), events.contains(&StoreEvent::Progress { addon: "a".into() }))
    }

    fn key(cluster: &str) -> ObjectKey {
        ObjectKey::new(cluster, "a")
    }

    #[test]
    fn a_decision_touches_the_installations_of_which_something_else_is_desired() {
        let (mut state, installed) = (State::default(), DesiredState::Installed);
        let first = decision(&[("c1", installed), ("c2", installed)]);
        assert_eq!(published(&mut state, first.clone()), (vec!["c1/a".into(), "c2/a".into()], true));
        assert_eq!(published(&mut state, first), (vec![], false), "nothing has changed");
        let second = decision(&[("c2", DesiredState::Kept), ("c3", installed)]);
        assert_eq!(published(&mut state, second), (vec!["c1/a".into(), "c2/a".into(), "c3/a".into()], false));
        assert_eq!(published(&mut state, Decision::default()), (vec!["c2/a".into(), "c3/a".into()], true));
        assert!(state.addons.is_empty(), "nothing is kept of what is not managed: {state:?}");
    }

    #[test]
    fn a_listener_that_comes_late_gets_everything() {
        let mut state = State::default();
        state.publish("a", decision(&[("c1", DesiredState::Installed)]));
        state.set_installed("b", "c9", Some(true));
        let expected = [StoreEvent::Desired(key("c1")), StoreEvent::Progress { addon: "a".into() }];
        assert_eq!(state.everything(), expected);
    }

    #[test]
    fn a_failure_is_kept_until_it_is_installed_or_need_not_be() {
        let mut state = State::default();
        let both = [("c1", DesiredState::Installed), ("c2", DesiredState::Installed)];
        state.publish("a", decision(&both));
        for cluster in ["c1", "c2"] {
            assert!(state.record_failure(&key(cluster), "no".into()).is_some());
            assert!(state.record_failure(&key(cluster), "no".into()).is_none(), "nothing new");
        }
        state.set_installed("a", "c1", Some(false));
        assert!(state.record_failure(&key("c1"), "no".into()).is_none(), "it is installed");
        assert_eq!(state.addons["a"].failures.len(), 1);
        state.publish("a", decision(&both[..1]));
        assert!(state.addons["a"].failures.is_empty());
    }

    #[test]
    fn nothing_is_kept_of_installations_that_are_gone() {
        let mut state = State::default();
        state.set_installed("a", "c1", Some(true));
        assert!(state.addons["a"].is_on("c1"));
        state.set_installed("a", "c1", None);
        assert!(state.addons.is_empty(), "{state:?}");
    }
}
