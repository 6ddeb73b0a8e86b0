//! `clusteradm get placements`: the placements of the hub, and the clusters that they selected.

use std::collections::BTreeMap;

use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ListParams;
use ocm_api::{
    cluster::v1beta1::{Placement, PlacementDecision},
    conditions, labels,
};
use ocm_apimachinery::labels::is_value;

use crate::{
    cmd::{Context, list},
    failure::Failure,
    hub,
    output::{Format, table, tree::Node, yaml},
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

/// The selected clusters of each placement, by namespace and name.
type Selected = BTreeMap<(String, String), Vec<String>>;

/// Runs the command.
pub(crate) async fn run(args: &PlacementsArgs, context: &Context) -> Result<(), Failure> {
    let hub = hub::connect(context).await?;
    let (namespace, everything) = (args.namespace.as_deref(), ListParams::default());
    let named = match &args.name {
        Some(name) => everything.clone().fields(&format!("metadata.name={name}")),
        None => everything.clone(),
    };
    let placements = list::of_namespace::<Placement>(&hub, namespace, &named, "placements").await?;
    if placements.is_empty() {
        not_found(args, context)?;
    }
    let console = &context.environment.console;
    let selected = if args.output == Format::Tree && !placements.is_empty() {
        let decisions = decisions_of(args.name.as_deref());
        let decisions =
            list::of_namespace::<PlacementDecision>(&hub, namespace, &decisions, "placement decisions").await?;
        selected(list::parse(decisions, console))
    } else {
        Selected::new()
    };
    let text = match args.output {
        Format::Yaml => yaml::render(placements)?,
        Format::Table => table(&list::parse(placements, console)),
        Format::Tree => tree(&list::parse(placements, console), &selected),
    };
    context.print(&text)
}

/// To find none is a failure only if one was asked for by name.
fn not_found(args: &PlacementsArgs, context: &Context) -> Result<(), Failure> {
    let place = args.namespace.as_ref().map(|name| format!(" in namespace {name}")).unwrap_or_default();
    match &args.name {
        None => {
            context.note(&format!("no placements found{place}"));
            Ok(())
        }
        Some(name) => Err(Failure::new(format!("placement {name} does not exist{place}"))
            .hint("`clusteradm get placements` lists those of all namespaces")),
    }
}

/// Selects the decisions of one placement, or of all.
fn decisions_of(placement: Option<&str>) -> ListParams {
    // Decisions are labelled with the name of their placement, so one whose name no label can hold has none.
    let named = placement.filter(|name| is_value(name)).map(|name| format!("{}={name}", labels::PLACEMENT));
    ListParams::default().labels(named.as_deref().unwrap_or(labels::PLACEMENT))
}

/// A placement's clusters are in one or more decisions, numbered from 1.
fn selected(mut decisions: Vec<PlacementDecision>) -> Selected {
    let name = |decision: &PlacementDecision| decision.metadata.name.clone().unwrap_or_default();
    decisions.sort_by_cached_key(|decision| (name(decision).len(), name(decision)));
    let mut selected = Selected::new();
    for decision in decisions {
        let placement = decision.metadata.labels.unwrap_or_default().remove(labels::PLACEMENT).unwrap_or_default();
        let key = (decision.metadata.namespace.unwrap_or_default(), placement);
        let clusters = decision.status.unwrap_or_default().decisions.into_iter().map(|decision| decision.cluster_name);
        selected.entry(key).or_default().extend(clusters);
    }
    selected
}

fn table(placements: &[Placement]) -> String {
    table::render(HEADINGS, placements.iter().map(cells))
}

fn tree(placements: &[Placement], selected: &Selected) -> String {
    Node::branch("Placement", placements.iter().map(|placement| node(placement, selected)).collect()).render()
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

fn node(placement: &Placement, selected: &Selected) -> Node {
    let (name, namespace) = (&placement.metadata.name, &placement.metadata.namespace);
    let (name, namespace) = (name.clone().unwrap_or_default(), namespace.clone().unwrap_or_default());
    let status =
        |type_: &str| condition(placement, type_).map(|condition| condition.status.as_str()).unwrap_or_default();
    let conditions = vec![
        Node::leaf("PlacementConditionSatisfied", status(conditions::placement::SATISFIED)),
        Node::leaf("PlacementConditionMisconfigured", status(conditions::placement::MISCONFIGURED)),
    ];
    let clusters = selected.get(&(namespace.clone(), name.clone())).map(|names| names.join(", ")).unwrap_or_default();
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

    fn object<K: serde::de::DeserializeOwned>(name: &str, more: &Value) -> K {
        let mut object = json!({
            "metadata": { "name": name, "namespace": "fleet", "labels": { labels::PLACEMENT: "prod" } },
        });
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(object).unwrap()
    }

    fn placement() -> Placement {
        let satisfied = json!({
            "type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled", "message": "",
            "lastTransitionTime": "2026-11-21T10:00:00Z",
        });
        let mut misconfigured = satisfied.clone();
        misconfigured["type"] = json!("PlacementMisconfigured");
        misconfigured["status"] = json!("False");
        let status = json!({ "numberOfSelectedClusters": 2, "conditions": [satisfied, misconfigured] });
        object("prod", &json!({ "spec": { "clusterSets": ["a", "b"] }, "status": status }))
    }

    fn decision(number: usize, cluster: &str) -> PlacementDecision {
        let status = json!({ "decisions": [{ "clusterName": cluster, "reason": "" }] });
        object(&format!("prod-decision-{number}"), &json!({ "status": status }))
    }

    #[test]
    fn a_table_has_a_line_for_each_placement() {
        let new = object("new", &json!({ "spec": {} }));
        let expected = "\
NAME   STATUS   REASON                  SELECTEDCLUSTERS
prod   True     AllDecisionsScheduled   2
new
";
        assert_eq!(table(&[placement(), new]), expected);
    }

    #[test]
    fn a_tree_shows_the_clusters_of_all_decisions() {
        let selected = selected(vec![decision(1, "c1"), decision(2, "c2")]);
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
        assert_eq!(tree(&[placement()], &selected), expected);
    }

    #[test]
    fn clusters_come_in_the_order_of_the_decisions_numbers() {
        let selected = selected(vec![decision(1, "c1"), decision(10, "c10"), decision(2, "c2")]);
        let tree = tree(&[placement()], &selected);
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
        let tree = tree(&[placement()], &selected(vec![elsewhere]));
        assert!(!tree.contains("c9"), "{tree}");
    }
}
