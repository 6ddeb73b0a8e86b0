//! What holds for one placement whatever clusters come, change and go.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use ocm_api::{
    cluster::{v1::ManagedCluster, v1beta2::ManagedClusterSet},
    labels::CLUSTER_SET,
};
use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};

use super::{
    plan::Plan,
    testing::{World, at, cluster, key, placement, set, tainted},
};

/// What happens to clusters, sets and bindings.
#[derive(Clone, Debug)]
enum Event {
    Comes { name: usize, is_prod: bool, is_special: bool, effect: Option<&'static str> },
    Goes { name: usize },
    Set { is_special: bool, is_there: bool },
    Binding { is_special: bool, is_there: bool },
}

/// What is asked of the clusters.
#[derive(Clone, Debug)]
struct Asked {
    wanted: Option<u8>,
    prod_only: bool,
    special_only: bool,
    tolerates: bool,
    per_group: Option<u8>,
}

fn event() -> impl Strategy<Value = Event> {
    let effect = option::of(prop::sample::select(vec!["NoSelect", "PreferNoSelect", "NoSelectIfNew"]));
    let comes = (0..8_usize, any::<bool>(), any::<bool>(), effect)
        .prop_map(|(name, is_prod, is_special, effect)| Event::Comes { name, is_prod, is_special, effect });
    let switch = || (any::<bool>(), any::<bool>());
    prop_oneof![
        8 => comes,
        2 => (0..8_usize).prop_map(|name| Event::Goes { name }),
        1 => switch().prop_map(|(is_special, is_there)| Event::Set { is_special, is_there }),
        1 => switch().prop_map(|(is_special, is_there)| Event::Binding { is_special, is_there }),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    (option::of(0..6_u8), any::<bool>(), any::<bool>(), any::<bool>(), option::of(1..4_u8)).prop_map(
        |(wanted, prod_only, special_only, tolerates, per_group)| Asked {
            wanted,
            prod_only,
            special_only,
            tolerates,
            per_group,
        },
    )
}

fn spec(asked: &Asked) -> Value {
    let prod = json!([{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prod"}}}}]);
    json!({
        "numberOfClusters": asked.wanted,
        "clusterSets": if asked.special_only { json!(["special"]) } else { json!([]) },
        "predicates": if asked.prod_only { prod } else { json!([]) },
        "tolerations": if asked.tolerates { json!([{"operator": "Exists"}]) } else { json!([]) },
        "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": asked.per_group}},
    })
}

/// Whether a cluster may be chosen; `was_in` when it is chosen already.
fn fits(cluster: &ManagedCluster, asked: &Asked, was_in: bool) -> bool {
    let is_tolerated = |effect: &str| match effect {
        "PreferNoSelect" => true,
        "NoSelectIfNew" => was_in || asked.tolerates,
        _ => asked.tolerates,
    };
    (!asked.prod_only || cluster.labels().get("env").is_some_and(|env| env == "prod"))
        && cluster.spec.taints.iter().all(|taint| is_tolerated(taint.effect.as_str()))
}

/// What there is.
#[derive(Default)]
struct There {
    clusters: BTreeMap<usize, ManagedCluster>,
    sets: BTreeSet<&'static str>,
    bindings: BTreeSet<&'static str>,
}

impl There {
    /// Whether the placement may choose from the cluster's sets.
    fn is_candidate(&self, cluster: &ManagedCluster, asked: &Asked) -> bool {
        let is_open = |set: &str| self.sets.contains(set) && self.bindings.contains(set);
        is_open("special") && cluster.labels().contains_key(CLUSTER_SET) || !asked.special_only && is_open("global")
    }
}

fn name_of(is_special: bool) -> &'static str {
    if is_special { "special" } else { "global" }
}

fn set_of(is_special: bool) -> ManagedClusterSet {
    let all = json!({"selectorType": "LabelSelector", "labelSelector": {}});
    set(name_of(is_special), if is_special { json!({}) } else { all })
}

/// Lets it happen; the placements that it concerns.
fn happen(world: &mut World, there: &mut There, event: &Event) -> usize {
    match event {
        Event::Comes { name, is_prod, is_special, effect } => {
            let mut new = cluster(&format!("c{name}"), &[("env", if *is_prod { "prod" } else { "dev" })]);
            if *is_special {
                new.labels_mut().insert(CLUSTER_SET.into(), "special".into());
            }
            let new = effect.map_or(new.clone(), |effect| tainted(new, "t", effect));
            there.clusters.insert(*name, new.clone());
            world.cluster(new).len()
        }
        Event::Goes { name } if there.clusters.remove(name).is_some() => world.no_cluster(&format!("c{name}")).len(),
        Event::Set { is_special, is_there: true } if there.sets.insert(name_of(*is_special)) => {
            world.set(set_of(*is_special)).len()
        }
        Event::Set { is_special, is_there: false } if there.sets.remove(name_of(*is_special)) => {
            world.no_set(name_of(*is_special)).len()
        }
        Event::Binding { is_special, is_there: true } if there.bindings.insert(name_of(*is_special)) => {
            world.bind(name_of(*is_special)).len()
        }
        Event::Binding { is_special, is_there: false } if there.bindings.remove(name_of(*is_special)) => {
            world.unbind(name_of(*is_special)).len()
        }
        _ => 0,
    }
}

/// Status and reason of both conditions.
fn said(plan: &Plan) -> Vec<(String, String)> {
    let said = plan.status.conditions.iter();
    said.map(|condition| (condition.status.clone(), condition.reason.clone())).collect()
}

proptest! {
    #[test]
    fn never_more_than_asked_only_what_fits_and_nothing_to_do_when_nothing_changes(
        asked in asked(),
        events in vec(event(), 1..20),
    ) {
        let mut world = World::new();
        let mut there = There::default();
        there.sets.insert("global");
        there.bindings.insert("global");
        world.placement(placement("p", spec(&asked)));
        let mut before = world.settle("p", at(0));
        for event in &events {
            let was_in = world.decided("p");
            let concerned = happen(&mut world, &mut there, event);
            let plan = world.plan("p", at(0));
            if concerned == 0 {
                prop_assert_eq!(&plan.steps, &vec![], "nobody was told: {:?}", event);
                prop_assert_eq!(said(&plan), said(&before));
                continue;
            }
            before = world.settle("p", at(0));
            let chosen = world.decided("p");
            let is_in = |name: usize| was_in.contains(&format!("c{name}"));
            let fitting: Vec<_> = there.clusters.iter()
                .filter(|(name, cluster)| there.is_candidate(cluster, &asked) && fits(cluster, &asked, is_in(**name)))
                .map(|(name, _)| format!("c{name}")).collect();
            prop_assert!(chosen.iter().all(|name| fitting.contains(name)), "{:?} of {:?}", chosen, fitting);
            let most = asked.wanted.map_or(fitting.len(), |wanted| fitting.len().min(wanted.into()));
            prop_assert_eq!(chosen.len(), most);
            let kept = was_in.iter().filter(|name| fitting.contains(name)).count();
            prop_assert_eq!(chosen.iter().filter(|name| was_in.contains(name)).count(), kept.min(most), "kept");
            let again = world.plan("p", at(0));
            prop_assert_eq!((again.steps, again.status), (vec![], before.status.clone()));
        }
        prop_assert!(world.index.scene(&key("p")).is_some());
    }
}
