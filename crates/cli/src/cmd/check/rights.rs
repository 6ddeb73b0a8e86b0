//! The rights of an account, as the manifests in `deploy/` grant them. Pure.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::api::rbac::v1::PolicyRule;
use ocm_apimachinery::yaml;
use serde_json::Value;

use crate::failure::Failure;

/// What `deploy/hub.yaml` installs.
pub(super) const HUB_YAML: &str = include_str!("../../../../../deploy/hub.yaml");
/// What `deploy/agent.yaml` installs.
pub(super) const AGENT_YAML: &str = include_str!("../../../../../deploy/agent.yaml");

/// Built-in roles that the manifests bind: a right of one of them means that all are granted.
const BUILT_IN_ROLES: &[(&str, &str, &str, &str)] = &[("admin", "apps", "deployments", "create")];

/// One verb on one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Right {
    /// `None` for all namespaces, and for what has none.
    pub(super) namespace: Option<String>,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) subresource: Option<String>,
    /// `None` for all objects.
    pub(super) name: Option<String>,
    pub(super) verb: String,
}

/// A service account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
}

impl Right {
    /// What the verb is about: `placements/status.cluster.open-cluster-management.io`.
    fn object(&self) -> String {
        let subresource = self.subresource.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
        let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        let name = self.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let namespace = self.namespace.as_ref().map(|name| format!(" in namespace {name}")).unwrap_or_default();
        format!("{}{subresource}{group}{name}{namespace}", self.resource)
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.object())
    }
}

/// Rights for people, with the verbs on one object together.
pub(super) fn list(rights: &[Right]) -> String {
    let mut objects = BTreeMap::<_, Vec<_>>::new();
    for right in rights {
        objects.entry(right.object()).or_default().push(right.verb.as_str());
    }
    objects.iter().map(|(object, verbs)| format!("{} {object}", verbs.join(", "))).collect::<Vec<_>>().join("; ")
}

/// Every right that the bindings of these manifests give to an account, each once.
pub(super) fn of_account(manifests: &str, account: Account) -> Result<Vec<Right>, Failure> {
    let objects = yaml::from_str_multi::<Value>(manifests);
    let objects = objects.map_err(|error| Failure::new(format!("failed to read the manifests: {error}")))?;
    let bindings = objects.iter().filter(|object| binds(object, account));
    let mut rights: Vec<_> = bindings.flat_map(|binding| of_binding(binding, &objects)).collect();
    rights.sort();
    rights.dedup();
    Ok(rights)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn binds(object: &Value, account: Account) -> bool {
    let is_account = |subject: &Value| {
        text(subject, "/kind") == "ServiceAccount"
            && text(subject, "/name") == account.name
            && text(subject, "/namespace") == account.namespace
    };
    object["subjects"].as_array().is_some_and(|subjects| subjects.iter().any(is_account))
}

fn of_binding(binding: &Value, objects: &[Value]) -> Vec<Right> {
    let namespace = binding.pointer("/metadata/namespace").and_then(Value::as_str).map(str::to_owned);
    let rules = rules(text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"), objects);
    let rights = rules.iter().flat_map(of_rule);
    rights.map(|right| Right { namespace: namespace.clone(), ..right }).collect()
}

/// The rules of a role, with those that Kubernetes adds to it from others.
fn rules(kind: &str, name: &str, objects: &[Value]) -> Vec<PolicyRule> {
    let Some(role) =
        objects.iter().find(|object| text(object, "/kind") == kind && text(object, "/metadata/name") == name)
    else {
        return BUILT_IN_ROLES.iter().filter(|(role, ..)| *role == name).map(representative).collect();
    };
    let selectors = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array);
    let added = objects.iter().filter(|object| {
        text(object, "/kind") == "ClusterRole"
            && selectors.is_some_and(|all| all.iter().any(|one| selects(one, object)))
    });
    std::iter::once(role).chain(added).flat_map(own_rules).collect()
}

fn representative((_, group, resource, verb): &(&str, &str, &str, &str)) -> PolicyRule {
    let one = |text: &str| Some(vec![text.to_owned()]);
    PolicyRule {
        api_groups: one(group),
        resources: one(resource),
        verbs: vec![(*verb).to_owned()],
        ..PolicyRule::default()
    }
}

fn selects(selector: &Value, object: &Value) -> bool {
    let labels = selector["matchLabels"].as_object();
    labels.is_some_and(|labels| labels.iter().all(|(key, value)| object["metadata"]["labels"].get(key) == Some(value)))
}

fn own_rules(role: &Value) -> Vec<PolicyRule> {
    serde_json::from_value(role["rules"].clone()).unwrap_or_default()
}

fn of_rule(rule: &PolicyRule) -> Vec<Right> {
    let names: Vec<_> = match rule.resource_names.as_deref() {
        None | Some([]) => vec![None],
        Some(names) => names.iter().cloned().map(Some).collect(),
    };
    let mut rights = Vec::new();
    for group in rule.api_groups.iter().flatten() {
        for resource in rule.resources.iter().flatten() {
            for name in &names {
                rights.extend(rule.verbs.iter().map(|verb| right(group, resource, name.clone(), verb)));
            }
        }
    }
    rights
}

fn right(group: &str, resource: &str, name: Option<String>, verb: &str) -> Right {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (resource, None),
    };
    Right {
        namespace: None,
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource,
        name,
        verb: verb.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::check::accounts;

    fn shown(manifests: &str, account: Account) -> Vec<String> {
        of_account(manifests, account).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_rights_of_the_hub_are_those_of_its_cluster_role_and_of_its_role() {
        let rights = shown(HUB_YAML, accounts::HUB);
        for right in [
            "patch managedclusters/status.cluster.open-cluster-management.io",
            "create managedclustersets/join.cluster.open-cluster-management.io default",
            "approve signers.certificates.k8s.io kubernetes.io/kube-apiserver-client",
            "create namespaces",
            "update leases.coordination.k8s.io in namespace open-cluster-management-hub",
        ] {
            assert!(rights.contains(&right.to_owned()), "{right} is missing in {rights:?}");
        }
        assert!(!rights.iter().any(|right| right.contains("secrets")), "{rights:?}");
    }

    #[test]
    fn the_rights_of_an_agent_that_bootstraps_are_few() {
        let rights = of_account(HUB_YAML, accounts::BOOTSTRAP).unwrap();
        let expected = [
            "create, get, list, watch certificatesigningrequests.certificates.k8s.io",
            "get configmaps",
            "create, get, list, watch managedclusters.cluster.open-cluster-management.io",
            "create managedclustersets/join.cluster.open-cluster-management.io default",
        ];
        assert_eq!(list(&rights), expected.join("; "));
    }

    #[test]
    fn the_rights_of_the_agent_contain_those_that_kubernetes_adds_up_and_stand_for_those_that_are_built_in() {
        let rights = shown(AGENT_YAML, accounts::AGENT);
        for right in [
            "escalate clusterroles.rbac.authorization.k8s.io",
            "create deployments.apps",
            "get nodes",
            "patch appliedmanifestworks/status.work.open-cluster-management.io",
            "delete secrets in namespace open-cluster-management-agent",
        ] {
            assert!(rights.contains(&right.to_owned()), "{right} is missing in {rights:?}");
        }
    }

    #[test]
    fn an_account_that_nothing_binds_has_no_rights_and_malformed_manifests_are_a_failure() {
        assert!(shown(AGENT_YAML, accounts::HUB).is_empty());
        assert!(of_account("a: [", accounts::HUB).is_err());
    }
}
