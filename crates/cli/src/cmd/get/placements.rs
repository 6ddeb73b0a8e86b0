//! `clusteradm get placements`: the placements of the hub, and the clusters that they chose.

use std::collections::BTreeMap;

use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DynamicObject, ListParams};
use ocm_api::{
    cluster::v1beta1::{Placement, PlacementDecision},
    conditions, labels,
};
use ocm_apimachinery::labels::is_value;

use super::list;
use crate::{
    cmd::Context,
    failure::Failure,
    hub,
    output::{self, Format, table, tree::Node, yaml},
};

/// Flags of `get placements`.
#[derive(Args, Debug)]
pub(crate) struct PlacementsArgs {
    /// Only the placement of this name
    name: Option<String>,
    /// Only placements of this namespace
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Format::Tree)]
    output: Format,
}

/// The clusters of each placement, by namespace and name.
type Chosen = BTreeMap<(String, String), Vec<String>>;

/// Runs the command.
pub(crate) async fn run(args: &PlacementsArgs, context: &Context) -> Result<(), Failure> {
    let hub = hub::connect(&context.global).await?;
    let (namespace, everything) = (args.namespace.as_deref(), ListParams::default());
    let named = match &args.name {
        Some(name) => everything.clone().fields(&format!("metadata.name={name}")),
        None => everything.clone(),
    };
    let placements = list::within::<Placement>(&hub, namespace, &named, "placements").await?;
    if placements.is_empty() {
        not_found(args)?;
    }
    let chosen = if args.output == Format::Tree && !placements.is_empty() {
        let decisions = decisions_of(args.name.as_deref());
        chosen(list::within::<PlacementDecision>(&hub, namespace, &decisions, "placement decisions").await?)
    } else {
        Chosen::new()
    };
    output::print(&render(args.output, placements, &chosen)?)
}

/// None at all is no failure, but that one asked for by name is missing is.
fn not_found(args: &PlacementsArgs) -> Result<(), Failure> {
    let place = args.namespace.as_ref().map(|name| format!(" in namespace {name}")).unwrap_or_default();
    match &args.name {
        None => {
            eprintln!("no placements found{place}");
            Ok(())
        }
        Some(name) => Err(Failure::new(format!("there is no placement {name}{place}"))
            .hint("`clusteradm get placements` lists those there are, in all namespaces")),
    }
}

/// Selects the decisions of one placement, or of all.
fn decisions_of(placement: Option<&str>) -> ListParams {
    // Decisions are labelled with the name of their placement, so one whose name no label can hold has none.
    let named = placement.filter(|name| is_value(name)).map(|name| format!("{}={name}", labels::PLACEMENT));
    ListParams::default().labels(named.as_deref().unwrap_or(labels::PLACEMENT))
}

/// A placement's clusters stand in as many decisions as it takes, numbered from 1.
fn chosen(mut decisions: Vec<DynamicObject>) -> Chosen {
    let name = |decision: &DynamicObject| decision.metadata.name.clone().unwrap_or_default();
    decisions.sort_by_cached_key(|decision| (name(decision).len(), name(decision)));
    let mut chosen = Chosen::new();
    for decision in decisions.into_iter().filter_map(list::readable::<PlacementDecision>) {
        let placement = decision.metadata.labels.unwrap_or_default().remove(labels::PLACEMENT).unwrap_or_default();
        let key = (decision.metadata.namespace.unwrap_or_default(), placement);
        let clusters = decision.status.unwrap_or_default().decisions.into_iter().map(|decision| decision.cluster_name);
        chosen.entry(key).or_default().extend(clusters);
    }
    chosen
}

fn render(format: Format, objects: Vec<DynamicObject>, chosen: &Chosen) -> Result<String, Failure> {
    if format == Format::Yaml {
        return yaml::render(objects);
    }
    let placements: Vec<Placement> = objects.into_iter().filter_map(list::readable::<Placement>).collect();
    Ok(match format {
        Format::Table => table::render(HEADINGS, placements.iter().map(cells)),
        _ => Node::branch("Placement", placements.iter().map(|placement| node(placement, chosen)).collect()).render(),
    })
}

const HEADINGS: [&str; 4] = ["Name", "Status", "Reason", "SelectedClusters"];

fn cells(placement: &Placement) -> [String; 4] {
    let satisfied = condition(placement, conditions::placement::SATISFIED);
    [
        placement.metadata.name.clone().unwrap_or_default(),
        satisfied.map(|condition| condition.status.clone()).unwrap_or_default(),
        satisfied.map(|condition| condition.reason.clone()).unwrap_or_default(),
        count(placement),
    ]
}

fn node(placement: &Placement, chosen: &Chosen) -> Node {
    let (name, namespace) = (&placement.metadata.name, &placement.metadata.namespace);
    let (name, namespace) = (name.clone().unwrap_or_default(), namespace.clone().unwrap_or_default());
    let status =
        |type_: &str| condition(placement, type_).map(|condition| condition.status.as_str()).unwrap_or_default();
    let conditions = vec![
        Node::leaf("PlacementConditionSatisfied", status(conditions::placement::SATISFIED)),
        Node::leaf("PlacementConditionMisconfigured", status(conditions::placement::MISCONFIGURED)),
    ];
    let clusters = chosen.get(&(namespace.clone(), name.clone())).map(|names| names.join(", ")).unwrap_or_default();
    let status =
        vec![Node::leaf("NumberOfSelectedClusters", &count(placement)), Node::branch("Conditions", conditions)];
    Node::branch(
        &name,
        vec![
            Node::leaf("Namespace", &namespace),
            Node::leaf("ClusterSet", &placement.spec.cluster_sets.join(", ")),
            Node::branch("Status", status),
            Node::leaf("PlacementDecision", &clusters),
        ],
    )
}

fn count(placement: &Placement) -> String {
    placement.status.as_ref().map(|status| status.number_of_selected_clusters.to_string()).unwrap_or_default()
}

fn condition<'a>(placement: &'a Placement, type_: &str) -> Option<&'a Condition> {
    placement.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == type_)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(kind: &str, name: &str, more: &Value) -> DynamicObject {
        let mut object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": kind,
            "metadata": { "name": name, "namespace": "fleet", "labels": { labels::PLACEMENT: "prod" } },
        });
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(object).unwrap()
    }

    fn placement() -> DynamicObject {
        let satisfied = json!({
            "type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled", "message": "",
            "lastTransitionTime": "2026-11-21T10:00:00Z",
        });
        let mut misconfigured = satisfied.clone();
        misconfigured["type"] = json!("PlacementMisconfigured");
        misconfigured["status"] = json!("False");
        let status = json!({ "numberOfSelectedClusters": 2, "conditions": [satisfied, misconfigured] });
        object("Placement", "prod", &json!({ "spec": { "clusterSets": ["a", "b"] }, "status": status }))
    }

    fn decision(number: usize, cluster: &str) -> DynamicObject {
        let status = json!({ "decisions": [{ "clusterName": cluster, "reason": "" }] });
        object("PlacementDecision", &format!("prod-decision-{number}"), &json!({ "status": status }))
    }

    #[test]
    fn a_table_has_a_line_for_each_placement() {
        let new = object("Placement", "new", &json!({}));
        let expected = "\
NAME   STATUS   REASON                  SELECTEDCLUSTERS
prod   True     AllDecisionsScheduled   2
new
";
        assert_eq!(render(Format::Table, vec![placement(), new], &Chosen::new()).unwrap(), expected);
    }

    #[test]
    fn a_tree_shows_the_clusters_of_all_decisions() {
        let chosen = chosen(vec![decision(1, "c1"), decision(2, "c2")]);
        let expected = "\
<Placement>
└── <prod>
    ├── <Namespace> fleet
    ├── <ClusterSet> a, b
    ├── <Status>
    │   ├── <NumberOfSelectedClusters> 2
    │   └── <Conditions>
    │       ├── <PlacementConditionSatisfied> True
    │       └── <PlacementConditionMisconfigured> False
    └── <PlacementDecision> c1, c2
";
        assert_eq!(render(Format::Tree, vec![placement()], &chosen).unwrap(), expected);
    }

    #[test]
    fn clusters_come_in_the_order_of_the_decisions_numbers() {
        let chosen = chosen(vec![decision(1, "c1"), decision(10, "c10"), decision(2, "c2")]);
        let tree = render(Format::Tree, vec![placement()], &chosen).unwrap();
        assert!(tree.contains("<PlacementDecision> c1, c2, c10"), "{tree}");
    }

    #[test]
    fn only_decisions_of_the_placement_that_was_asked_for_are_read() {
        let selector = |name| decisions_of(name).label_selector.unwrap();
        assert_eq!(selector(Some("prod")), "cluster.open-cluster-management.io/placement=prod");
        assert_eq!(selector(None), "cluster.open-cluster-management.io/placement");
        assert_eq!(selector(Some(&"p".repeat(64))), "cluster.open-cluster-management.io/placement");
    }

    #[test]
    fn decisions_of_another_namespace_do_not_count() {
        let mut elsewhere = decision(1, "c9");
        elsewhere.metadata.namespace = Some("other".to_owned());
        let tree = render(Format::Tree, vec![placement()], &chosen(vec![elsewhere])).unwrap();
        assert!(!tree.contains("c9"), "{tree}");
    }
}
