//! `clusteradm get addon`: the add-ons of the hub, and their state on the clusters.

use std::collections::BTreeMap;

use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DynamicObject, ListParams};
use ocm_api::{
    addon::v1alpha1::{ClusterManagementAddOn, ManagedClusterAddOn},
    conditions::{self, addon, manifest},
    labels,
    work::v1::{ManifestCondition, ManifestWork},
};

use crate::{
    client::Connection,
    cmd::{
        Context, list,
        selection::{ClusterArgs, distinct},
    },
    console::Console,
    failure::Failure,
    hub,
    output::{Format, table, tree::Node, yaml},
};

/// Flags of `get addon`.
#[derive(Args, Debug)]
pub(crate) struct AddonArgs {
    /// Only the add-ons of these names
    names: Vec<String>,
    #[command(flatten)]
    clusters: ClusterArgs,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Format::Tree)]
    output: Format,
}

/// The add-ons on the clusters, and their works.
#[derive(Default)]
struct Installed {
    addons: Vec<ManagedClusterAddOn>,
    works: Vec<ManifestWork>,
}

/// Runs the command.
pub(crate) async fn run(args: &AddonArgs, context: &Context) -> Result<(), Failure> {
    let clusters = args.clusters.given()?;
    let names = distinct(&args.names).ok_or_else(|| Failure::new("the name of an add-on cannot be empty"))?;
    let hub = hub::connect(context).await?;
    let addons = chosen(&hub, &names).await?;
    if addons.is_empty() {
        context.note("no add-ons found");
    }
    let console = &context.environment.console;
    let text = match args.output {
        Format::Yaml => yaml::render(addons)?,
        Format::Table => {
            let installed = list::all::<ManagedClusterAddOn>(&hub, &ListParams::default(), INSTALLED).await?;
            table(&names_of(&addons), &list::parse(installed, console))
        }
        Format::Tree => tree(&names_of(&addons), &installed(&hub, &clusters, console).await?),
    };
    context.print(&text)
}

const INSTALLED: &str = "the add-ons of clusters";

/// The add-ons asked for, or all. One that does not exist is a failure.
async fn chosen(hub: &Connection, names: &[String]) -> Result<Vec<DynamicObject>, Failure> {
    let mut addons = list::all::<ClusterManagementAddOn>(hub, &ListParams::default(), "add-ons").await?;
    let exists = |name: &String| addons.iter().any(|addon| addon.metadata.name.as_ref() == Some(name));
    let missing = names.iter().filter(|name| !exists(name)).map(|name| {
        Failure::new(format!("add-on {name} does not exist: the hub has no ClusterManagementAddOn of that name"))
            .hint("`clusteradm get addon` lists them")
    });
    Failure::all(missing.collect::<Vec<_>>())?;
    if !names.is_empty() {
        addons.retain(|addon| addon.metadata.name.as_ref().is_some_and(|name| names.contains(name)));
    }
    Ok(addons)
}

/// The add-ons and their works in the namespaces of these clusters, or in all.
async fn installed(hub: &Connection, clusters: &[String], console: &Console) -> Result<Installed, Failure> {
    let namespaces: Vec<Option<&str>> = match clusters {
        [] => vec![None],
        names => names.iter().map(|name| Some(name.as_str())).collect(),
    };
    let (everything, of_addons) = (ListParams::default(), ListParams::default().labels(labels::ADDON_NAME));
    let mut all = Installed::default();
    for namespace in namespaces {
        let addons = list::of_namespace::<ManagedClusterAddOn>(hub, namespace, &everything, INSTALLED).await?;
        all.addons.extend(list::parse(addons, console));
        let works = list::of_namespace::<ManifestWork>(hub, namespace, &of_addons, "the works of add-ons").await?;
        all.works.extend(list::parse(works, console));
    }
    Ok(all)
}

fn names_of(addons: &[DynamicObject]) -> Vec<String> {
    addons.iter().filter_map(|addon| addon.metadata.name.clone()).collect()
}

fn table(names: &[String], installed: &[ManagedClusterAddOn]) -> String {
    let count = |name: &String| installed.iter().filter(|addon| addon.metadata.name.as_ref() == Some(name)).count();
    table::render(["Name", "InstalledClusters"], names.iter().map(|name| [name.clone(), count(name).to_string()]))
}

fn tree(names: &[String], installed: &Installed) -> String {
    let addon = |name: &String| {
        let of_addon = installed.addons.iter().filter(|addon| addon.metadata.name.as_ref() == Some(name));
        Node::branch(name, of_addon.map(|addon| cluster(name, addon, &installed.works)).collect())
    };
    Node::branch("ClusterManagementAddOn", names.iter().map(addon).collect()).render()
}

/// The state of an add-on on one cluster.
fn cluster(name: &str, addon: &ManagedClusterAddOn, works: &[ManifestWork]) -> Node {
    let namespace = addon.metadata.namespace.clone().unwrap_or_default();
    let conditions = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let shown = [addon::AVAILABLE, addon::MANIFEST_APPLIED, addon::REGISTRATION_APPLIED];
    let status = shown.map(|type_| Node::leaf(type_, word(conditions, type_, ["true", "false", "unknown"])));
    let of_addon = works.iter().filter(|work| {
        let label = work.metadata.labels.as_ref().and_then(|labels| labels.get(labels::ADDON_NAME));
        work.metadata.namespace.as_ref() == Some(&namespace) && label.is_some_and(|label| label == name)
    });
    let objects = Node::branch("ManifestWork", resources(of_addon));
    Node::branch(&namespace, vec![Node::branch("Status", status.into()), objects])
}

/// The objects of works, by resource.
fn resources<'a>(works: impl Iterator<Item = &'a ManifestWork>) -> Vec<Node> {
    let mut resources = BTreeMap::<&str, Vec<Node>>::new();
    for object in works.filter_map(|work| work.status.as_ref()).flat_map(|status| &status.resource_status.manifests) {
        resources.entry(&object.resource_meta.resource).or_default().push(applied(object));
    }
    resources.into_iter().map(|(resource, objects)| Node::branch(resource, objects)).collect()
}

fn applied(object: &ManifestCondition) -> Node {
    let (namespace, name) = (&object.resource_meta.namespace, &object.resource_meta.name);
    let full = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
    Node::leaf(&full, word(&object.conditions, manifest::APPLIED, ["applied", "not-applied", "unknown"]))
}

/// The word for a condition that is true, false, or neither.
fn word(conditions: &[Condition], type_: &str, words: [&'static str; 3]) -> &'static str {
    match conditions.iter().find(|condition| condition.type_ == type_).map(|condition| condition.status.as_str()) {
        Some(conditions::status::TRUE) => words[0],
        Some(conditions::status::FALSE) => words[1],
        _ => words[2],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn condition(type_: &str, status: &str) -> Value {
        json!({
            "type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-11-21T10:00:00Z",
        })
    }

    fn addon(cluster: &str, conditions: &[Value]) -> ManagedClusterAddOn {
        let metadata = json!({ "name": "hello", "namespace": cluster });
        let status = json!({ "conditions": conditions });
        serde_json::from_value(json!({ "metadata": metadata, "spec": {}, "status": status })).unwrap()
    }

    fn work(cluster: &str) -> ManifestWork {
        let manifest = |ordinal: i32, resource: &str, namespace: &str, conditions: &[Value]| {
            let meta = json!({ "ordinal": ordinal, "resource": resource, "namespace": namespace, "name": "agent" });
            json!({ "resourceMeta": meta, "conditions": conditions })
        };
        let manifests = [
            manifest(0, "deployments", "default", &[condition("Applied", "True")]),
            manifest(1, "clusterroles", "", &[condition("Applied", "False")]),
            manifest(2, "deployments", "other", &[]),
        ];
        let metadata = json!({ "name": "w", "namespace": cluster, "labels": { labels::ADDON_NAME: "hello" } });
        let status = json!({ "resourceStatus": { "manifests": manifests } });
        let spec = json!({ "workload": {} });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec, "status": status })).unwrap()
    }

    #[test]
    fn a_tree_shows_conditions_and_objects_of_each_cluster() {
        let conditions = [condition("Available", "True"), condition("ManifestApplied", "False")];
        let installed = Installed { addons: vec![addon("c1", &conditions)], works: vec![work("c1"), work("c2")] };
        let expected = "\
<ClusterManagementAddOn>
├── <hello>
│   └── <c1>
│       ├── <Status>
│       │   ├── <Available> true
│       │   ├── <ManifestApplied> false
│       │   └── <RegistrationApplied> unknown
│       └── <ManifestWork>
│           ├── <clusterroles>
│           │   └── <agent> not-applied
│           └── <deployments>
│               ├── <default/agent> applied
│               └── <other/agent> unknown
└── <idle>
";
        assert_eq!(tree(&["hello".to_owned(), "idle".to_owned()], &installed), expected);
    }

    #[test]
    fn a_table_counts_the_clusters_of_each_addon() {
        let installed = [addon("c1", &[]), addon("c2", &[])];
        let expected = "NAME    INSTALLEDCLUSTERS\nhello   2\nidle    0\n";
        assert_eq!(table(&["hello".to_owned(), "idle".to_owned()], &installed), expected);
    }
}
