//! The page: for each account its rights, one line for each kind of object.

use std::{collections::BTreeMap, fmt::Write as _};

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

use super::deployed::Deployed;

const HEAD: &str = "\
<!-- Generated: BLESS=1 cargo test -p ocm-hub --lib rights -->

# Who may do what

Every right that the files in [deploy](../../deploy) and the hub itself grant. The reasons are the comments in those files; for
each right that the hub grants, the file `deploy/hub.yaml` has a rule with the reason, since nobody can grant a right that they do
not have. A change of this page is a change of rights. CLUSTER and ADDON stand for the names of a cluster and of an add-on.

Rights that an add-on's manager grants to its agents are not listed: they are the add-on's.
";

const OF_DENIED: &str = "
# After a cluster was denied

All of the hub's rights for its agents are replaced by these.
";

type Rows = BTreeMap<String, Vec<String>>;

pub(super) fn page(installed: &[Deployed], of_denied: &[Deployed]) -> String {
    format!("{HEAD}{}{OF_DENIED}{}", sections(installed), sections(of_denied))
}

fn sections(all: &[Deployed]) -> String {
    let mut rows = Rows::new();
    for binding in all.iter().filter(|it| text(&it.object, "/roleRef/name").is_some()) {
        rows.entry(accounts(&binding.object)).or_default().extend(rights(all, binding));
    }
    rows.into_iter().map(|(accounts, rows)| section(&accounts, &rows)).collect()
}

fn section(accounts: &str, rows: &[String]) -> String {
    let mut section =
        format!("\n## {accounts}\n\n| where | what | may | source | why |\n| --- | --- | --- | --- | --- |\n");
    rows.iter().for_each(|row| _ = writeln!(section, "| {row} |"));
    section
}

fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.pointer(field).and_then(Value::as_str)
}

fn accounts(binding: &Value) -> String {
    let account = |subject: &Value| {
        let (kind, name) = (text(subject, "/kind").unwrap(), text(subject, "/name").unwrap());
        let namespace = text(subject, "/namespace").map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{kind} {namespace}{name}")
    };
    binding["subjects"].as_array().unwrap().iter().map(account).collect::<Vec<_>>().join(", ")
}

/// The rights that a binding gives, one row each.
fn rights(all: &[Deployed], binding: &Deployed) -> Vec<String> {
    let namespace = text(&binding.object, "/metadata/namespace");
    let scope = namespace.map_or_else(|| "everywhere".into(), |namespace| format!("namespace `{namespace}`"));
    let (kind, name) =
        (text(&binding.object, "/roleRef/kind").unwrap(), text(&binding.object, "/roleRef/name").unwrap());
    let is_role = |it: &&Deployed| {
        let same_namespace = kind == "ClusterRole" || text(&it.object, "/metadata/namespace") == namespace;
        it.object["kind"] == kind && text(&it.object, "/metadata/name") == Some(name) && same_namespace
    };
    let Some(role) = all.iter().find(is_role) else {
        return vec![format!("{scope} | the built-in {kind} `{name}` | | {} | {}", binding.source, binding.comment)];
    };
    let roles = if role.object["aggregationRule"].is_null() { vec![role] } else { aggregated(all, &role.object) };
    roles.into_iter().flat_map(|role| rows_of(role, &scope)).collect()
}

/// The roles that Kubernetes adds up.
fn aggregated<'a>(all: &'a [Deployed], role: &Value) -> Vec<&'a Deployed> {
    let labels = role["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"].as_object().unwrap();
    let has_labels = |it: &&Deployed| labels.iter().all(|(key, value)| it.object["metadata"]["labels"][key] == *value);
    all.iter().filter(|it| it.object["kind"] == "ClusterRole").filter(has_labels).collect()
}

fn rows_of(role: &Deployed, scope: &str) -> Vec<String> {
    let rules: Vec<PolicyRule> = serde_json::from_value(role.object["rules"].clone()).unwrap();
    let mut rows = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        let why = role.reasons.get(number).map(String::as_str).unwrap_or_default().replace('|', "\\|");
        let verbs = rule.verbs.join(", ");
        rows.extend(things(rule).map(|thing| format!("{scope} | {thing} | {verbs} | {} | {why}", role.source)));
    }
    rows
}

/// What a rule is about, each kind for itself.
fn things(rule: &PolicyRule) -> impl Iterator<Item = String> {
    assert!(rule.non_resource_urls.is_none(), "add them to the page");
    let names = rule.resource_names.iter().flatten().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let names = if names.is_empty() { names } else { format!(" named {names}") };
    let groups = rule.api_groups.clone().unwrap_or_default().into_iter();
    let groups = groups.map(|group| if group.is_empty() { group } else { format!(".{group}") });
    groups.flat_map(move |group| {
        let names = names.clone();
        let resources = rule.resources.clone().unwrap_or_default().into_iter();
        resources.map(move |resource| format!("`{}`{names}", qualified(&resource, &group))).collect::<Vec<_>>()
    })
}

/// As kubectl names a resource: `deployments.apps/status`.
fn qualified(resource: &str, group: &str) -> String {
    match resource.split_once('/') {
        Some((resource, subresource)) => format!("{resource}{group}/{subresource}"),
        None => format!("{resource}{group}"),
    }
}
