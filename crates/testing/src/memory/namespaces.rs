//! Namespaces: objects can be created only in existing ones, and are deleted with them.

use serde_json::{Value, json};

use super::call::Call;
use super::failure::Failure;
use super::kinds::Kind;
use super::store::{Key, State};
use super::{create, meta};

const INITIAL: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

fn id(kinds: &[Kind]) -> Option<usize> {
    kinds.iter().position(|kind| *kind == Kind::NAMESPACE)
}

fn key(kinds: &[Kind], name: &str) -> Option<Key> {
    Some(Key { kind: id(kinds)?, namespace: String::new(), name: name.into() })
}

pub(super) fn create_initial(kinds: &[Kind], state: &mut State) {
    for name in INITIAL {
        let Some(key) = key(kinds, name) else { return };
        let mut namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}});
        create::complete(&Kind::NAMESPACE, &mut namespace);
        state.put(key, namespace);
    }
}

pub(super) fn complete(namespace: &mut Value) {
    let name = json!(meta::text(namespace, "name"));
    namespace["metadata"]["labels"][NAME_LABEL] = name;
    namespace["spec"] = json!({"finalizers": ["kubernetes"]});
    namespace["status"] = json!({"phase": "Active"});
}

/// Fails unless something may be created in the call's namespace.
pub(super) fn check_accepts(kinds: &[Kind], state: &State, call: &Call, name: &str) -> Result<(), Failure> {
    let Some(key) = key(kinds, &call.namespace).filter(|_| call.kind.namespaced) else { return Ok(()) };
    let namespace = state.get(&key).ok_or_else(|| Failure::not_found(&Kind::NAMESPACE, &call.namespace))?;
    match meta::is_deleting(&namespace) {
        true => Err(Failure::terminating(&call.kind, name, &call.namespace)),
        false => Ok(()),
    }
}

/// Removes a namespace that is being deleted and has no finalizers any more.
pub(super) fn finish(kinds: &[Kind], state: &mut State, namespace: &str) {
    let Some(key) = key(kinds, namespace).filter(|_| !namespace.is_empty()) else { return };
    let ready = state.get(&key).is_some_and(|found| meta::is_deleting(&found) && meta::finalizers(&found).is_empty());
    if ready && state.within(namespace).is_empty() {
        state.remove(&key);
    }
}
