//! Namespaces on the managed cluster that cluster sets of the hub require.
//!
//! A required namespace is created and labelled for the hub with the value `true`; when it is no longer required, the value
//! becomes `false`. Namespaces are never deleted.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{ObjectMeta, Patch, PatchParams},
};
use ocm_api::{
    cluster::v1::{ClusterSetManagedNamespaceConfig, ManagedCluster},
    conditions::managed_namespace,
    reasons,
};
use ocm_runtime::{
    Error, ResultExt as _, conditions as set,
    conditions::NewCondition,
    error::{chain, found},
    write,
};
use serde_json::json;

/// The label's value on required namespaces.
pub(super) const WANTED: &str = "true";
const NOT_WANTED: &str = "false";

/// What to do about a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It exists and is labelled.
    Keep(String),
    /// Create or label it.
    Ensure(String),
    /// Label it as no longer required.
    Release(String),
}

/// The outcome of an action.
pub(crate) struct Outcome {
    action: Action,
    result: Result<(), Error>,
}

impl Action {
    fn name(&self) -> &str {
        match self {
            Self::Keep(name) | Self::Ensure(name) | Self::Release(name) => name,
        }
    }
}

impl Outcome {
    /// The namespace and the error.
    pub(crate) fn into_failure(self) -> Option<(String, Error)> {
        let Self { action, result } = self;
        result.err().map(|error| (action.name().to_owned(), error))
    }
}

/// The actions, given the namespaces that carry the label now.
pub(crate) fn plan(cluster: &ManagedCluster, labelled: &BTreeSet<String>) -> Vec<Action> {
    let status = cluster.status.as_ref().filter(|_| !write::is_deleting(cluster));
    let entries = status.map(|status| status.managed_namespaces.as_slice()).unwrap_or_default();
    let required: BTreeSet<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    let released = labelled.difference(&required).cloned().map(Action::Release).collect::<Vec<_>>();
    let kept = required.into_iter().map(|name| match labelled.contains(&name) {
        true => Action::Keep(name),
        false => Action::Ensure(name),
    });
    kept.chain(released).collect()
}

/// Runs the actions. The failure of one does not stop the others.
pub(crate) async fn apply(namespaces: &Api<Namespace>, label: &str, actions: &[Action]) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(actions.len());
    for action in actions {
        let result = match action {
            Action::Keep(_) => Ok(()),
            Action::Ensure(name) => ensure(namespaces, label, name).await,
            Action::Release(name) => found(set_label(namespaces, label, name, NOT_WANTED).await).map(|_| ()),
        };
        outcomes.push(Outcome { action: action.clone(), result });
    }
    outcomes
}

async fn ensure(namespaces: &Api<Namespace>, label: &str, name: &str) -> Result<(), Error> {
    match found(set_label(namespaces, label, name, WANTED).await)? {
        Some(()) => Ok(()),
        None => write::create(namespaces, &labelled(label, name)).await.map(|_| ()),
    }
}

fn labelled(label: &str, name: &str) -> Namespace {
    let labels = [(label.to_owned(), WANTED.to_owned())];
    let metadata = ObjectMeta { name: Some(name.into()), labels: Some(labels.into()), ..ObjectMeta::default() };
    Namespace { metadata, ..Namespace::default() }
}

async fn set_label(namespaces: &Api<Namespace>, label: &str, name: &str, value: &str) -> Result<(), Error> {
    let patch = json!({"metadata": {"labels": {label: value}}});
    let patched = namespaces.patch_metadata(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.map(|_| ()).while_trying_to("label", || format!("namespace {name}"))
}

/// The condition of each namespace.
pub(crate) fn report(entries: &mut [ClusterSetManagedNamespaceConfig], outcomes: &[Outcome], now: Timestamp) {
    for entry in entries {
        let required =
            |outcome: &&Outcome| outcome.action.name() == entry.name && !matches!(outcome.action, Action::Release(_));
        if let Some(outcome) = outcomes.iter().find(required) {
            set::set(&mut entry.conditions, condition(&outcome.result), None, now);
        }
    }
}

fn condition(result: &Result<(), Error>) -> NewCondition {
    let type_ = managed_namespace::AVAILABLE;
    match result {
        Ok(()) => {
            NewCondition::is_true(type_, reasons::managed_namespace::APPLIED, "The namespace exists and is managed")
        }
        Err(error) => {
            let message = format!("The agent cannot create or label the namespace: {}", chain(error));
            NewCondition::is_false(type_, reasons::managed_namespace::APPLY_FAILED, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::cluster::v1::ManagedClusterStatus;

    use super::*;

    fn cluster(names: &[&str]) -> ManagedCluster {
        let entry = |name: &&str| ClusterSetManagedNamespaceConfig {
            cluster_set: "set".into(),
            name: (*name).into(),
            conditions: Vec::new(),
        };
        let managed_namespaces = names.iter().map(entry).collect();
        let status = Some(ManagedClusterStatus { managed_namespaces, ..ManagedClusterStatus::default() });
        ManagedCluster { status, ..ManagedCluster::default() }
    }

    fn labelled(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn required_namespaces_are_ensured_once_and_others_released() {
        let plan = plan(&cluster(&["a", "b", "a"]), &labelled(&["b", "c"]));
        assert_eq!(plan, [Action::Ensure("a".into()), Action::Keep("b".into()), Action::Release("c".into())]);
    }

    #[test]
    fn a_cluster_that_is_deleted_releases_all_of_them() {
        let mut cluster = cluster(&["a"]);
        cluster.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
        assert_eq!(plan(&cluster, &labelled(&["a"])), [Action::Release("a".into())]);
    }

    #[test]
    fn every_entry_says_how_its_namespace_fares() {
        let failure = Error::Incomplete { noun: "x".into(), field: "y" };
        let outcomes = [
            Outcome { action: Action::Ensure("a".into()), result: Ok(()) },
            Outcome { action: Action::Ensure("b".into()), result: Err(failure) },
        ];
        let mut entries = cluster(&["a", "b"]).status.unwrap().managed_namespaces;
        report(&mut entries, &outcomes, Timestamp::UNIX_EPOCH);
        let said: Vec<_> =
            entries.iter().map(|entry| (&*entry.conditions[0].status, &*entry.conditions[0].reason)).collect();
        assert_eq!(said, [("True", "NamespaceApplied"), ("False", "NamespaceApplyFailed")]);
    }
}
