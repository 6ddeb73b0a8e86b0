use serde_json::{Value, from_value, json};

use super::*;

/// A cluster of set `blue`, with these further labels and these taints.
fn cluster(name: &str, labels: &Value, taints: &Value) -> Value {
    let mut all = json!({"cluster.open-cluster-management.io/clusterset": "blue"});
    all.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
    json!({"metadata": {"name": name, "labels": all}, "spec": {"hubAcceptsClient": true, "taints": taints}})
}

fn prod(name: &str) -> Value {
    cluster(name, &json!({"env": "prod"}), &json!([]))
}

/// Placement `apps/web` for clusters of set `blue`, and what its decisions list.
#[expect(clippy::needless_pass_by_value, reason = "for the tests to be short")]
fn objects(spec: Value, clusters: Vec<Value>, decided: &[&str]) -> HubObjects {
    let decided: Vec<_> = decided.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
    let labels = json!({"cluster.open-cluster-management.io/placement": "web"});
    let decision = json!({"metadata": {"name": "web-decision-1", "namespace": "apps", "labels": labels},
        "status": {"decisions": decided}});
    let binding = json!({"metadata": {"name": "blue", "namespace": "apps"}, "spec": {"clusterSet": "blue"}});
    HubObjects {
        placement: from_value(json!({"metadata": {"name": "web", "namespace": "apps"}, "spec": spec})).unwrap(),
        clusters: clusters.into_iter().map(|cluster| from_value(cluster).unwrap()).collect(),
        sets: vec![from_value(json!({"metadata": {"name": "blue"}, "spec": {}})).unwrap()],
        bindings: vec![from_value(binding).unwrap()],
        decisions: vec![from_value(decision).unwrap()],
        scores: vec![],
    }
}

fn best_two_of_prod() -> Value {
    let selector = json!({"labelSelector": {"matchLabels": {"env": "prod"}}});
    json!({"numberOfClusters": 2, "predicates": [{"requiredClusterSelector": selector}]})
}

fn fleet(decided: &[&str]) -> HubObjects {
    let gpu = json!([{"key": "gpu", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]);
    let clusters = vec![
        prod("east"),
        prod("north"),
        prod("south"),
        cluster("test", &json!({"env": "test"}), &json!([])),
        cluster("special", &json!({"env": "prod"}), &gpu),
    ];
    objects(best_two_of_prod(), clusters, decided)
}

fn overview(objects: HubObjects, what_if: &[&str]) -> String {
    let what_if: Vec<_> = what_if.iter().map(|argument| what_if::parse(argument).unwrap()).collect();
    text::render(&decide(objects, &Shown::Overview { all: false }, &what_if).unwrap())
}

#[test]
fn an_overview_has_the_ranks_the_reasons_and_what_would_select_the_others() {
    let expected = "\
Placement apps/web selects 2 of 5 clusters; spec.numberOfClusters is 2.
It may select from cluster set blue.

RANK   CLUSTER   SELECTED   SCORE   BALANCE   STEADY
1      north     yes        200     100       100
2      south     yes        200     100       100
3      east      no         100     100       0
SCORE = 1 x BALANCE + 1 x STEADY

Not selected:
east      NumberOfClusters: it has rank 3, and spec.numberOfClusters is 2
          to select it: raise spec.numberOfClusters to 3, or raise its score by 100
special   TaintToleration: taint gpu:NoSelect is not tolerated: no entry of spec.tolerations matches
          it
          to select it: tolerate taint gpu:NoSelect in spec.tolerations, or remove it; raise
                        spec.numberOfClusters to 4
test      Predicate: spec.predicates[0].requiredClusterSelector.labelSelector: env=prod is not met,
          env is \"test\"
          to select it: label the cluster env=prod; raise spec.numberOfClusters to 4

Balance counts the decisions of all other placements: when these change, others can be selected.
";
    assert_eq!(overview(fleet(&["north", "south"]), &[]), expected);
}

#[test]
fn decisions_that_differ_are_listed() {
    let text = overview(fleet(&["south", "gone"]), &[]);
    let text = text.replace('\n', " ");
    assert!(text.contains("differ from this: they list also gone, and they do not list east."), "{text}");
    assert!(text.contains("clusteradm check hub"), "{text}");
}

#[test]
fn hypothetical_changes_are_compared_with_the_selection_now() {
    let text = overview(fleet(&["north", "south"]), &["north:label:env=test", "special:taint:gpu-"]);
    let expected = "\
What if north:label:env=test special:taint:gpu-
  selected now  north, south
  selected then south, east
  gained        east
  lost          north

Placement apps/web selects 2 of 5 clusters";
    assert!(text.starts_with(expected), "{text}");
    assert!(!text.contains("differ") && !text.contains("check hub"), "{text}");
}

#[test]
fn one_cluster_is_shown_in_detail() {
    let report = decide(fleet(&["north", "south"]), &Shown::Named(vec!["east".into()]), &[]).unwrap();
    let text = text::render(&report);
    let expected = "
east
  selected          no
  NumberOfClusters  it has rank 3, and spec.numberOfClusters is 2
  Balance           1 x 100: listed by 0 decisions of other placements; no cluster is listed by more
                    than 0
  Steady            1 x 0: not selected yet
  score             100, which is rank 3
  to select it      raise spec.numberOfClusters to 3, or raise its score by 100
";
    assert!(text.contains(expected), "{text}");
    let absent = decide(fleet(&[]), &Shown::Named(vec!["absent".into()]), &[]).unwrap_err();
    assert!(absent.to_string().starts_with("error: cluster absent does not exist\nhint: "), "{absent}");
}

#[test]
fn of_many_clusters_those_not_selected_are_counted_by_reason_unless_all_are_wanted() {
    let many = || {
        let test = |number| cluster(&format!("t{number:02}"), &json!({"env": format!("e{number}")}), &json!([]));
        let clusters = (0..30).map(test).chain(["a", "b", "c"].map(prod)).collect();
        objects(best_two_of_prod(), clusters, &["a", "b"])
    };
    let text = overview(many(), &[]);
    let expected = "
Not selected (31; --all shows each, --cluster one in detail):
    30   Predicate: spec.predicates[0].requiredClusterSelector.labelSelector: env=prod is not met
         t00, t01, t02 and 27 more
     1   NumberOfClusters: others have a better rank
         c
";
    assert!(text.contains(expected), "{text}");
    let all = decide(many(), &Shown::Overview { all: true }, &[]).unwrap();
    assert_eq!((all.clusters.len(), all.others.len()), (33, 0));
}

#[test]
fn no_line_is_wider_than_a_hundred_columns_with_all_prioritizers() {
    let listed = |name: &str| json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": 10});
    let addon =
        json!({"type": "AddOn", "addOn": {"resourceName": "resource-usage-score", "scoreName": "cpuAvailable"}});
    let listed = [
        listed("ResourceAllocatableCPU"),
        listed("ResourceAllocatableMemory"),
        json!({"scoreCoordinate": addon, "weight": -10}),
    ];
    let spec = json!({"prioritizerPolicy": {"configurations": listed}});
    let text = overview(objects(spec, vec![prod("a-cluster-with-a-name-of-40-characters-01")], &[]), &[]);
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    assert!(text.contains("-10 x ADDON1 (AddOn/resource-usage-score/cpuAvailable)"), "{text}");
}

#[test]
fn what_is_wrong_with_a_placement_is_said_first_and_what_the_hub_ignores_at_the_end() {
    let mut ignored = objects(json!({"prioritizerPolicy": {"mode": "Fair"}}), vec![prod("a")], &["a"]);
    let annotation = (ocm_api::annotations::PLACEMENT_DISABLE.to_owned(), "true".to_owned());
    ignored.placement.metadata.annotations = Some([annotation].into());
    let text = overview(ignored, &[]);
    assert!(text.contains("\nProblem: spec.prioritizerPolicy.mode \"Fair\" is not known"), "{text}");
    assert!(text.contains("a   Problem: nothing is decided: see the problem"), "{text}");
    assert!(text.contains("The hub ignores this placement: annotation\n"), "{text}");
    let unbound = HubObjects { bindings: vec![], ..fleet(&[]) };
    let text = overview(unbound, &[]);
    assert!(text.contains("No cluster set that the placement may select from is bound to its namespace."), "{text}");
    assert!(
        text.contains("ClusterSets: it is in cluster set blue, from which the placement does not select"),
        "{text}"
    );
}

#[test]
fn json_has_the_scores_with_their_inputs() {
    let report = decide(fleet(&["north", "south"]), &Shown::Overview { all: false }, &[]).unwrap();
    let value: Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
    assert_eq!(value["selected"], json!(["north", "south"]));
    let steady = json!({"prioritizer": "Steady", "weight": 1, "score": 100, "input": "selected already"});
    assert_eq!(value["clusters"][0]["scores"][1], steady);
    assert_eq!(value["clusters"][2]["pointsNeeded"], 100);
    assert_eq!(value["clusters"][4]["removedBy"], "Predicate");
}

#[test]
fn a_placement_is_named_with_its_namespace_or_a_flag_but_not_with_two() {
    let named = |placement: &str, namespace: Option<&str>| {
        let clusters = <ClusterArgs as clap::FromArgMatches>::from_arg_matches(
            &ClusterArgs::augment_args(clap::Command::new("x")).get_matches_from(["x"]),
        );
        let args = ExplainArgs {
            placement: placement.to_owned(),
            namespace: namespace.map(str::to_owned),
            clusters: clusters.unwrap(),
            what_if: vec![],
            all: false,
            output: Format::Table,
        };
        super::placement(&args).map_err(|failure| failure.to_string())
    };
    let found = |namespace: Option<&str>| Ok((namespace.map(str::to_owned), "web".to_owned()));
    assert_eq!(named("apps/web", None), found(Some("apps")));
    assert_eq!(named("apps/web", Some("apps")), found(Some("apps")));
    assert_eq!(named("web", Some("apps")), found(Some("apps")));
    assert_eq!(named("web", None), found(None));
    assert!(named("apps/web", Some("other")).unwrap_err().contains("--namespace is other"));
    for wrong in ["", "/web", "apps/", "a/b/c"] {
        assert!(named(wrong, None).unwrap_err().contains("does not name a placement"), "{wrong}");
    }
}
