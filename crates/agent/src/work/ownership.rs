//! Who owns an applied object: owner references to AppliedManifestWorks.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use ocm_api::work::v1::{
    AppliedManifestWork, DeleteOption, ManifestConfigOption, ManifestResourceMeta, ManifestWorkSpec, OrphaningRule,
    PropagationPolicy, ResourceIdentifier, UpdateStrategyType,
};

use super::options;

/// Whether an object has an owner reference to the record of its work.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ownership {
    /// The object is deleted with the work.
    Owned(OwnerReference),
    /// The object stays when the work is deleted: existing references to any of its records are removed.
    Orphaned(Vec<OwnerReference>),
}

impl Ownership {
    /// The same with the reference of an owner. `former` are those of the records that the work had under other addresses of
    /// the hub.
    pub(super) fn of(is_owned: bool, owner: &AppliedManifestWork, former: &[OwnerReference]) -> Self {
        let reference = reference(owner);
        match is_owned {
            true => Self::Owned(reference),
            false => Self::Orphaned(former.iter().cloned().chain([reference]).collect()),
        }
    }
}

/// Whether an object is deleted with its work. One that is only read never is, whatever the delete option says.
pub(super) fn is_owned(spec: &ManifestWorkSpec, id: &ResourceIdentifier) -> bool {
    let strategy = options::strategy(&spec.manifest_configs, id);
    let is_read_only = strategy.is_some_and(|strategy| strategy.type_ == UpdateStrategyType::ReadOnly);
    !is_read_only && is_deleted_with_work(spec.delete_option.as_ref(), id)
}

/// Under a policy of a later version objects stay; works with one are refused, see [`super::refusal`].
fn is_deleted_with_work(option: Option<&DeleteOption>, id: &ResourceIdentifier) -> bool {
    let Some(option) = option else { return true };
    match option.propagation_policy {
        PropagationPolicy::Foreground => true,
        PropagationPolicy::Orphan | PropagationPolicy::Other(_) => false,
        PropagationPolicy::SelectivelyOrphan => !rules(option).any(|rule| names(rule, id)),
    }
}

fn rules(option: &DeleteOption) -> impl Iterator<Item = &OrphaningRule> {
    option.selectively_orphans.iter().flat_map(|orphans| &orphans.orphaning_rules)
}

/// Unlike the selectors of `spec.manifestConfigs`, rules have no wildcards.
fn names(rule: &OrphaningRule, id: &ResourceIdentifier) -> bool {
    rule.group == id.group && rule.resource == id.resource && rule.name == id.name && rule.namespace == id.namespace
}

/// Whether an object may have to stay when its work is deleted, judged without its resource: the kind could not be looked
/// up.
pub(super) fn may_stay(spec: &ManifestWorkSpec, meta: &ManifestResourceMeta) -> bool {
    let is_read_only = |config: &ManifestConfigOption| {
        let is_read_only =
            config.update_strategy.as_ref().is_some_and(|strategy| strategy.type_ == UpdateStrategyType::ReadOnly);
        is_read_only && config.resource_identifier.group == meta.group
    };
    let option = spec.delete_option.as_ref();
    let is_orphaned = option.is_some_and(|option| match option.propagation_policy {
        PropagationPolicy::Foreground => false,
        PropagationPolicy::Orphan | PropagationPolicy::Other(_) => true,
        PropagationPolicy::SelectivelyOrphan => {
            rules(option).any(|rule| rule.group == meta.group && rule.name == meta.name)
        }
    });
    is_orphaned || spec.manifest_configs.iter().any(is_read_only)
}

/// The reference an object carries when `applied` owns it.
pub(super) fn reference(applied: &AppliedManifestWork) -> OwnerReference {
    OwnerReference {
        api_version: AppliedManifestWork::api_version(&()).into_owned(),
        kind: AppliedManifestWork::kind(&()).into_owned(),
        name: applied.metadata.name.clone().unwrap_or_default(),
        uid: applied.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }
}

/// The owner references that an object should have. Another uid under the same name is an owner that no longer exists, and
/// is replaced by ours.
pub(super) fn merged(existing: &[OwnerReference], ownership: &Ownership) -> Vec<OwnerReference> {
    match ownership {
        Ownership::Orphaned(ours) => {
            let is_ours = |other: &OwnerReference| ours.iter().any(|ours| same_owner(other, ours));
            existing.iter().filter(|other| !is_ours(other)).cloned().collect()
        }
        Ownership::Owned(ours) => with(existing, ours),
    }
}

fn with(existing: &[OwnerReference], ours: &OwnerReference) -> Vec<OwnerReference> {
    let mut references = existing.to_vec();
    match references.iter_mut().find(|other| same_owner(other, ours)) {
        Some(known) if known.uid == ours.uid => {}
        Some(outdated) => *outdated = ours.clone(),
        None => references.push(ours.clone()),
    }
    references
}

/// Whether two references name the same owner: kind, group and name count, the uid does not.
fn same_owner(a: &OwnerReference, b: &OwnerReference) -> bool {
    a.name == b.name && a.kind == b.kind && group(a) == group(b)
}

fn group(reference: &OwnerReference) -> &str {
    reference.api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether a reference names some AppliedManifestWork.
pub(super) fn is_applied_work(reference: &OwnerReference) -> bool {
    reference.kind == AppliedManifestWork::kind(&()) && group(reference) == AppliedManifestWork::group(&())
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(in crate::work) fn owner(name: &str, uid: &str) -> OwnerReference {
        let mut applied = AppliedManifestWork::default();
        applied.metadata.name = Some(name.into());
        applied.metadata.uid = Some(uid.into());
        reference(&applied)
    }

    fn spec(value: &Value) -> ManifestWorkSpec {
        let mut spec = json!({"workload": {"manifests": []}});
        spec.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    fn orphaning(rules: &Value) -> ManifestWorkSpec {
        let orphans = json!({"orphaningRules": rules});
        spec(&json!({"deleteOption": {"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": orphans}}))
    }

    fn id(group: &str, resource: &str, namespace: &str, name: &str) -> ResourceIdentifier {
        serde_json::from_value(json!({"group": group, "resource": resource, "namespace": namespace, "name": name}))
            .unwrap()
    }

    #[test]
    fn a_rule_names_one_object_exactly() {
        let spec = orphaning(&json!([
            {"group": "apps", "resource": "deployments", "namespace": "shop", "name": "web"},
            {"resource": "namespaces", "name": "shop"},
            {"resource": "namespaces", "namespace": "shop", "name": "other"},
            {"resource": "secrets", "namespace": "*", "name": "*"},
        ]));
        assert!(!is_owned(&spec, &id("apps", "deployments", "shop", "web")));
        assert!(!is_owned(&spec, &id("", "namespaces", "", "shop")));
        for owned in [
            id("apps", "deployments", "shop", "web-2"),
            id("apps", "deployments", "", "web"),
            id("", "deployments", "shop", "web"),
            id("apps", "statefulsets", "shop", "web"),
            id("", "namespaces", "", "other"),
            id("", "secrets", "shop", "s"),
        ] {
            assert!(is_owned(&spec, &owned), "{owned:?}");
        }
    }

    #[test]
    fn each_policy_decides_on_ownership_as_in_ocm() {
        let map = id("", "configmaps", "ns", "a");
        for (option, expected) in [
            (json!(null), true),
            (json!({}), true),
            (json!({"propagationPolicy": "Foreground"}), true),
            (json!({"propagationPolicy": "Orphan"}), false),
            (json!({"propagationPolicy": "SelectivelyOrphan"}), true),
            (json!({"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {}}), true),
        ] {
            assert_eq!(is_owned(&spec(&json!({"deleteOption": option})), &map), expected, "{option}");
        }
    }

    #[test]
    fn an_object_that_is_only_read_is_not_owned() {
        let read =
            json!({"resourceIdentifier": id("", "configmaps", "*", "a"), "updateStrategy": {"type": "ReadOnly"}});
        let spec = spec(&json!({"manifestConfigs": [read]}));
        assert!(!is_owned(&spec, &id("", "configmaps", "ns", "a")));
        assert!(is_owned(&spec, &id("", "configmaps", "ns", "b")));
    }

    #[test]
    fn an_object_of_an_unknown_resource_may_stay_if_a_rule_could_name_it() {
        let meta = |group: &str, name: &str| ManifestResourceMeta {
            group: group.into(),
            name: name.into(),
            ..ManifestResourceMeta::default()
        };
        let rule = json!([{"group": "example.com", "resource": "things", "name": "a"}]);
        let read =
            json!({"resourceIdentifier": id("example.com", "things", "", "*"), "updateStrategy": {"type": "ReadOnly"}});
        for spec in [orphaning(&rule), spec(&json!({"manifestConfigs": [read]}))] {
            assert!(may_stay(&spec, &meta("example.com", "a")));
            assert!(!may_stay(&spec, &meta("", "a")));
        }
        assert!(!may_stay(&orphaning(&rule), &meta("example.com", "b")));
        assert!(may_stay(&spec(&json!({"deleteOption": {"propagationPolicy": "Orphan"}})), &meta("", "a")));
        assert!(!may_stay(&spec(&json!({})), &meta("", "a")));
    }

    #[test]
    fn an_owned_object_gains_our_reference_beside_others() {
        let other = owner("other", "1");
        let references = merged(std::slice::from_ref(&other), &Ownership::Owned(owner("ours", "2")));
        assert_eq!(references, [other, owner("ours", "2")]);
    }

    #[test]
    fn a_reference_to_an_owner_that_is_gone_is_replaced() {
        let references = merged(&[owner("ours", "old")], &Ownership::Owned(owner("ours", "new")));
        assert_eq!(references, [owner("ours", "new")]);
    }

    #[test]
    fn what_others_set_on_our_reference_is_kept() {
        let mut existing = owner("ours", "1");
        existing.block_owner_deletion = Some(true);
        assert_eq!(merged(&[existing.clone()], &Ownership::Owned(owner("ours", "1"))), [existing]);
    }

    #[test]
    fn an_orphaned_object_loses_our_reference_only() {
        let other = owner("other", "1");
        let references = merged(&[other.clone(), owner("ours", "2")], &Ownership::Orphaned(vec![owner("ours", "3")]));
        assert_eq!(references, [other]);
    }
}
