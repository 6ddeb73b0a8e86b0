//! A kind that the managed cluster may not serve: its CRD may be installed later, or never.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kube::{Api, Client};
use ocm_runtime::{Cache, Error, error::chain, informer::Watchable};
use tracing::warn;

use crate::registration::list_one;

/// How often it checks whether the cluster serves the kind.
const RECHECK: Duration = Duration::from_secs(60);
/// How soon it checks again if the cluster did not answer.
const RETRY: Duration = Duration::from_secs(5);

/// The informer for a kind that may be missing. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct OptionalKind<K> {
    state: Arc<Mutex<State<K>>>,
}

#[derive(Clone, Debug)]
enum State<K> {
    /// The feature gate is off.
    Off,
    /// Not known yet whether the cluster serves the kind.
    Unknown,
    /// The cluster does not serve the kind, or the agent may not list it.
    Missing,
    Watched(Cache<K>),
}

impl<K: Watchable> OptionalKind<K> {
    pub(super) fn new(is_on: bool) -> Self {
        let state = if is_on { State::Unknown } else { State::Off };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    pub(super) fn is_on(&self) -> bool {
        !matches!(self.state(), State::Off)
    }

    /// Whether it is known what the cluster has.
    pub(super) fn is_ready(&self) -> bool {
        match self.state() {
            State::Off | State::Missing => true,
            State::Unknown => false,
            State::Watched(cache) => cache.is_synced(),
        }
    }

    /// The objects; none if the cluster does not serve the kind.
    pub(super) fn list(&self) -> Vec<Arc<K>> {
        match self.state() {
            State::Watched(cache) => cache.list(),
            State::Off | State::Unknown | State::Missing => Vec::new(),
        }
    }

    pub(super) fn watch(&self, cache: Cache<K>) {
        self.set(State::Watched(cache));
    }

    /// Waits until the cluster serves the kind and the agent may list it. Logs what is missing, and calls `on_missing` at each
    /// check that finds it missing.
    pub(super) async fn served(&self, client: &Client, on_missing: impl Fn()) {
        let api = Api::<K>::all(client.clone());
        let mut is_logged = false;
        while let Err(error) = list_one(&api).await {
            let pause = match advice::<K>(&error) {
                Some(advice) => {
                    if !std::mem::replace(&mut is_logged, true) {
                        warn!(error = chain(&error), "reporting no {}: {advice}", K::plural(&()));
                    }
                    self.set(State::Missing);
                    on_missing();
                    RECHECK
                }
                None => {
                    warn!(error = chain(&error), retry_in = ?RETRY, "cannot check whether the cluster serves {}", K::plural(&()));
                    RETRY
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    fn state(&self) -> State<K> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: State<K>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// What an administrator of the managed cluster should do so that the kind is reported; `None` if the failure says nothing
/// about that.
fn advice<K: Watchable>(error: &Error) -> Option<String> {
    let (plural, group) = (K::plural(&()), K::group(&()));
    if error.is_not_found() {
        Some(format!(
            "this cluster does not serve them. Install the CRD {plural}.{group} ({group}_{plural}.yaml in crds/); the agent \
             notices within a minute"
        ))
    } else if error.is_denied() {
        Some(format!(
            "the agent's service account may not list them. Grant it get, list and watch on {plural}.{group} \
             (deploy/agent.yaml does)"
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::about::v1alpha1::ClusterProperty;

    use super::*;

    fn answer(code: u16) -> Error {
        let status = kube::core::Status::failure("no", "").with_code(code).boxed();
        Error::Request { verb: "list", noun: "c".into(), source: Box::new(kube::Error::Api(status)) }
    }

    #[test]
    fn a_kind_that_is_missing_or_forbidden_is_named_with_what_to_do() {
        let missing = advice::<ClusterProperty>(&answer(404)).unwrap();
        assert!(missing.contains("clusterproperties.about.k8s.io (about.k8s.io_clusterproperties.yaml"), "{missing}");
        let forbidden = advice::<ClusterProperty>(&answer(403)).unwrap();
        assert!(forbidden.contains("get, list and watch on clusterproperties.about.k8s.io"), "{forbidden}");
        assert_eq!(advice::<ClusterProperty>(&answer(500)), None);
    }

    #[test]
    fn a_kind_whose_gate_is_off_is_not_waited_for() {
        assert!(OptionalKind::<ClusterProperty>::new(false).is_ready());
        assert!(!OptionalKind::<ClusterProperty>::new(true).is_ready());
    }
}
