//! The three objects that the hub keeps for the tokens of an add-on's agent.

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        core::v1::ServiceAccount,
        rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
    },
};
use kube::{Api, Client, Resource, ResourceExt as _, api::ObjectMeta};
use ocm_api::{
    identities,
    labels::{TOKEN_ADDON_NAME, TOKEN_INFRASTRUCTURE},
    rbac,
};
use ocm_runtime::{
    Cache, Change, Informers, ObjectKey,
    informer::{WatchFilter, Watchable},
};

/// Value of the label of all three.
const TRUE: &str = "true";
const RESOURCE: &str = "serviceaccounts/token";

/// One of the three kinds.
pub(super) trait TokenObject: Watchable + Resource<Scope = NamespaceResourceScope> + PartialEq {
    /// This object with what `desired` grants; `None` if it must be created again for that.
    fn with_grant_of(&self, desired: &Self) -> Option<Self>;

    /// Where the object is.
    fn api(&self, client: &Client) -> Api<Self> {
        Api::namespaced(client.clone(), &self.namespace().unwrap_or_default())
    }
}

impl TokenObject for ServiceAccount {
    fn with_grant_of(&self, _: &Self) -> Option<Self> {
        Some(self.clone())
    }
}

impl TokenObject for Role {
    fn with_grant_of(&self, desired: &Self) -> Option<Self> {
        Some(Self { rules: desired.rules.clone(), ..self.clone() })
    }
}

impl TokenObject for RoleBinding {
    fn with_grant_of(&self, desired: &Self) -> Option<Self> {
        let has_same_role = self.role_ref == desired.role_ref;
        has_same_role.then(|| Self { subjects: desired.subjects.clone(), ..self.clone() })
    }
}

/// Those of all add-ons.
pub(super) fn labelled<K: Watchable>(informers: &Informers) -> Cache<K> {
    informers.all(WatchFilter::labelled(format!("{TOKEN_INFRASTRUCTURE}={TRUE}")))
}

/// The add-ons that an object is and was kept for, according to its label.
pub(super) fn addons_of<K: Resource>(change: Change<'_, K>) -> Vec<ObjectKey> {
    let before = if let Change::Updated { old, .. } = change { addon_of(old.as_ref()) } else { None };
    before.into_iter().chain(addon_of(change.object().as_ref())).collect()
}

fn addon_of<K: Resource>(object: &K) -> Option<ObjectKey> {
    Some(ObjectKey::new(object.namespace()?, object.labels().get(TOKEN_ADDON_NAME)?.clone()))
}

/// Whether an object in the cluster's namespace was created for this add-on: it has both labels.
pub(super) fn is_own<K: Resource>(object: &K, addon: &str) -> bool {
    let has = |key: &str, value: &str| object.labels().get(key).is_some_and(|found| found == value);
    has(TOKEN_INFRASTRUCTURE, TRUE) && has(TOKEN_ADDON_NAME, addon)
}

/// The account whose tokens the add-on's agent gets.
pub(super) fn account(key: &ObjectKey) -> ServiceAccount {
    let metadata = meta(key, rbac::addon_token_service_account(&key.name));
    ServiceAccount { metadata, ..ServiceAccount::default() }
}

/// The right to create tokens of that account and of no other, and to wait for them at a gRPC server.
pub(crate) fn role(key: &ObjectKey) -> Role {
    let account = rbac::addon_token_service_account(&key.name);
    let create = PolicyRule { resource_names: Some(vec![account]), ..rule("create") };
    Role { metadata: meta(key, rbac::addon_token_role(&key.name)), rules: Some(vec![create, rule("subscribe")]) }
}

/// Gives that right to the cluster's agents.
pub(crate) fn binding(key: &ObjectKey) -> RoleBinding {
    let (name, cluster) = (rbac::addon_token_role(&key.name), &key.namespace);
    RoleBinding {
        metadata: meta(key, name.clone()),
        role_ref: RoleRef { api_group: rbac::API_GROUP.into(), kind: "Role".into(), name },
        subjects: Some(
            [identities::cluster_group(cluster), identities::cluster_aws_group(cluster)].map(group).to_vec(),
        ),
    }
}

fn meta(key: &ObjectKey, name: String) -> ObjectMeta {
    let labels = [(TOKEN_ADDON_NAME.to_owned(), key.name.clone()), (TOKEN_INFRASTRUCTURE.to_owned(), TRUE.to_owned())];
    ObjectMeta {
        name: Some(name),
        namespace: Some(key.namespace.clone()),
        labels: Some(labels.into()),
        ..ObjectMeta::default()
    }
}

fn rule(verb: &str) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec![RESOURCE.into()]),
        verbs: vec![verb.into()],
        ..PolicyRule::default()
    }
}

fn group(name: String) -> Subject {
    Subject { api_group: Some(rbac::API_GROUP.into()), kind: "Group".into(), name, namespace: None }
}
