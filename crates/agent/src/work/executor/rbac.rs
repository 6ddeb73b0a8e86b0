//! Which service accounts a change of an RBAC object concerns.

use std::ops::ControlFlow;

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject};
use ocm_runtime::{
    Cache, Change, Informers, ObjectKey,
    informer::{View, WatchFilter, Watchable},
};

use super::subject::ServiceAccount;

const HINT: &str = "grant the agent's service account list and watch on it, or switch off the feature gate \
                    ExecutorValidatingCaches; until then, the rights of executors are asked for in every pass";

/// The RBAC objects of the managed cluster.
#[derive(Clone, Debug)]
pub(super) struct Rbac {
    roles: Cache<Role>,
    cluster_roles: Cache<ClusterRole>,
    role_bindings: Cache<RoleBinding>,
    cluster_role_bindings: Cache<ClusterRoleBinding>,
}

/// Some of the subjects of bindings. Whose kind is not one of these is no service account.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Subjects {
    /// With the namespace of their RoleBinding: it grants rights there only, and is that of service accounts without one. `None`
    /// for those of ClusterRoleBindings.
    all: Vec<(Subject, Option<String>)>,
}

/// What is needed of a binding.
#[derive(Clone, Debug, PartialEq)]
struct Binding {
    role: RoleRef,
    subjects: Subjects,
}

impl Subjects {
    /// Whether a service account is among them, by itself or as one of a group, with rights to objects in this namespace; empty for
    /// objects without a namespace.
    pub(super) fn include(&self, account: &ServiceAccount, namespace: &str) -> bool {
        let grants_here = |bound: Option<&str>| bound.is_none_or(|bound| bound == namespace);
        let mut bound = self.all.iter().map(|(subject, bound)| (subject, bound.as_deref()));
        bound.any(|(subject, bound)| grants_here(bound) && is(subject, bound, account))
    }

    fn of(subjects: Option<&Vec<Subject>>, namespace: Option<&String>) -> Self {
        Self { all: subjects.into_iter().flatten().map(|subject| (subject.clone(), namespace.cloned())).collect() }
    }

    fn and(mut self, more: Self) -> Self {
        self.all.extend(more.all);
        self
    }
}

fn is(subject: &Subject, namespace: Option<&str>, account: &ServiceAccount) -> bool {
    match subject.kind.as_str() {
        "ServiceAccount" => {
            let namespace = subject.namespace.as_deref().filter(|own| !own.is_empty()).or(namespace);
            subject.name == account.name && namespace == Some(&account.namespace)
        }
        "User" => subject.name == account.user(),
        "Group" => account.groups().contains(&subject.name),
        _ => false,
    }
}

impl Rbac {
    /// Watches all. `changed` is called with the subjects whose rights may have changed, until it breaks.
    pub(super) fn watch(
        informers: &Informers,
        changed: impl Fn(&Subjects) -> ControlFlow<()> + Clone + Send + 'static,
    ) -> Self {
        let rbac = Self {
            roles: informers.optional(WatchFilter::all(), HINT),
            cluster_roles: informers.optional(WatchFilter::all(), HINT),
            role_bindings: informers.optional(WatchFilter::all(), HINT),
            cluster_role_bindings: informers.optional(WatchFilter::all(), HINT),
        };
        rbac.subscribe(changed);
        rbac
    }

    /// Whether every change from now on is noticed.
    pub(super) fn is_synced(&self) -> bool {
        self.roles.is_synced()
            && self.cluster_roles.is_synced()
            && self.role_bindings.is_synced()
            && self.cluster_role_bindings.is_synced()
    }

    fn subscribe(&self, changed: impl Fn(&Subjects) -> ControlFlow<()> + Clone + Send + 'static) {
        let namespaced = self.role_bindings.view(|binding| Some(of_role_binding(binding)));
        let everywhere = self.cluster_role_bindings.view(|binding| Some(of_cluster_role_binding(binding)));
        subscribe(&self.role_bindings, changed.clone(), |change| {
            let subjects = |binding: &RoleBinding| of_role_binding(binding).subjects;
            of_both(change, differ, subjects)
        });
        subscribe(&self.cluster_role_bindings, changed.clone(), |change| {
            let subjects = |binding: &ClusterRoleBinding| of_cluster_role_binding(binding).subjects;
            of_both(change, |old, new| of_cluster_role_binding(old) != of_cluster_role_binding(new), subjects)
        });
        let of_namespace = namespaced.clone();
        subscribe(&self.roles, changed.clone(), move |change| {
            let key = ObjectKey::of(change.object().as_ref());
            of_both(
                change,
                |old, new| old.rules != new.rules,
                |_| bound(&of_namespace, "Role", &key.name, Some(&key.namespace)),
            )
        });
        subscribe(&self.cluster_roles, changed, move |change| {
            let name = ObjectKey::of(change.object().as_ref()).name;
            of_both(
                change,
                |old, new| old.rules != new.rules,
                |_| bound(&namespaced, "ClusterRole", &name, None).and(bound(&everywhere, "ClusterRole", &name, None)),
            )
        });
    }
}

fn subscribe<K: Watchable>(
    cache: &Cache<K>,
    changed: impl Fn(&Subjects) -> ControlFlow<()> + Send + 'static,
    subjects: impl Fn(Change<'_, K>) -> Option<Subjects> + Send + 'static,
) {
    cache.subscribe(move |change| subjects(change).map_or(ControlFlow::Continue(()), |subjects| changed(&subjects)));
}

/// The role counts too: a binding that was deleted and created again under its name may come as an update.
fn differ(old: &RoleBinding, new: &RoleBinding) -> bool {
    of_role_binding(old) != of_role_binding(new)
}

/// The subjects before and after a change; `None` if nothing changed that matters.
fn of_both<K>(
    change: Change<'_, K>,
    differ: impl Fn(&K, &K) -> bool,
    subjects: impl Fn(&K) -> Subjects,
) -> Option<Subjects> {
    match change {
        Change::Added(object) | Change::Deleted(object) => Some(subjects(object)),
        Change::Updated { old, new } => differ(old, new).then(|| subjects(old).and(subjects(new))),
    }
}

/// The subjects to whom a role is bound, in one namespace or in all.
fn bound(bindings: &View<Binding>, kind: &str, role: &str, namespace: Option<&str>) -> Subjects {
    bindings.read(|bindings| {
        let of_role = bindings.iter().filter(|(key, binding)| {
            let is_here = namespace.is_none_or(|namespace| key.namespace == namespace);
            is_here && binding.role.kind == kind && binding.role.name == role
        });
        of_role.fold(Subjects::default(), |all, (_, binding)| all.and(binding.subjects.clone()))
    })
}

fn of_role_binding(binding: &RoleBinding) -> Binding {
    let subjects = Subjects::of(binding.subjects.as_ref(), binding.metadata.namespace.as_ref());
    Binding { role: binding.role_ref.clone(), subjects }
}

fn of_cluster_role_binding(binding: &ClusterRoleBinding) -> Binding {
    Binding { role: binding.role_ref.clone(), subjects: Subjects::of(binding.subjects.as_ref(), None) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "so that tests can write json!")]
    fn includes(subject: Value) -> bool {
        let binding = json!({"metadata": {"namespace": "team"}, "roleRef": {"apiGroup": "", "kind": "Role", "name": "r"},
            "subjects": [subject]});
        let account = ServiceAccount { namespace: "team".into(), name: "deployer".into() };
        of_role_binding(&serde_json::from_value(binding).unwrap()).subjects.include(&account, "team")
    }

    #[test]
    fn a_service_account_is_a_subject_by_name_as_a_user_and_in_its_groups() {
        for subject in [
            json!({"kind": "ServiceAccount", "name": "deployer", "namespace": "team"}),
            json!({"kind": "ServiceAccount", "name": "deployer"}),
            json!({"kind": "User", "name": "system:serviceaccount:team:deployer"}),
            json!({"kind": "Group", "name": "system:serviceaccounts"}),
            json!({"kind": "Group", "name": "system:serviceaccounts:team"}),
            json!({"kind": "Group", "name": "system:authenticated"}),
        ] {
            assert!(includes(subject.clone()), "{subject}");
        }
        for subject in [
            json!({"kind": "ServiceAccount", "name": "deployer", "namespace": "other"}),
            json!({"kind": "ServiceAccount", "name": "other", "namespace": "team"}),
            json!({"kind": "User", "name": "deployer"}),
            json!({"kind": "Group", "name": "system:serviceaccounts:other"}),
            json!({"kind": "Machine", "name": "deployer"}),
        ] {
            assert!(!includes(subject.clone()), "{subject}");
        }
    }

    #[test]
    fn a_change_that_leaves_rights_as_they_are_concerns_nobody() {
        let bound_to = |role: &str, label: &str, name: &str| -> Arc<RoleBinding> {
            let subjects = json!([{"kind": "ServiceAccount", "name": name, "namespace": "team"}]);
            let role = json!({"apiGroup": "", "kind": "Role", "name": role});
            let metadata = json!({"labels": {"a": label}, "namespace": "team"});
            let binding = json!({"metadata": metadata, "subjects": subjects, "roleRef": role});
            Arc::new(serde_json::from_value(binding).unwrap())
        };
        let binding = |label: &str, name: &str| bound_to("r", label, name);
        let subjects = |binding: &RoleBinding| of_role_binding(binding).subjects;
        let of = |old: Arc<RoleBinding>, new: Arc<RoleBinding>| {
            of_both(Change::Updated { old: &old, new: &new }, differ, subjects)
        };
        assert_eq!(of(binding("1", "a"), binding("2", "a")), None);
        assert!(of(binding("1", "a"), bound_to("another", "1", "a")).is_some());
        let both = of(binding("1", "a"), binding("1", "b")).unwrap();
        for name in ["a", "b"] {
            assert!(both.include(&ServiceAccount { namespace: "team".into(), name: name.into() }, "team"));
        }
    }

    #[test]
    fn a_role_binding_concerns_objects_in_its_namespace_and_a_cluster_role_binding_all() {
        let binding = json!({"metadata": {"namespace": "team"}, "roleRef": {"apiGroup": "", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "Group", "name": "system:authenticated"}]});
        let here = of_role_binding(&serde_json::from_value(binding.clone()).unwrap()).subjects;
        let everywhere = of_cluster_role_binding(&serde_json::from_value(binding).unwrap()).subjects;
        let account = ServiceAccount { namespace: "other".into(), name: "deployer".into() };
        let concerned =
            |subjects: &Subjects| ["team", "shop", ""].map(|namespace| subjects.include(&account, namespace));
        assert_eq!((concerned(&here), concerned(&everywhere)), ([true, false, false], [true; 3]));
    }
}
