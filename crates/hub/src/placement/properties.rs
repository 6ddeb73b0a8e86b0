//! What holds for one placement whatever clusters come, change and go.

use ocm_api::cluster::v1::ManagedCluster;
use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};

use super::{
    plan::Plan,
    testing::{World, at, cluster, key, placement, tainted},
};

/// What becomes of a cluster.
#[derive(Clone, Debug)]
enum Event {
    Comes { name: usize, is_prod: bool, effect: Option<&'static str> },
    Goes { name: usize },
}

/// What is asked of the clusters.
#[derive(Clone, Debug)]
struct Asked {
    wanted: Option<u8>,
    prod_only: bool,
    tolerates: bool,
    per_group: Option<u8>,
}

fn event() -> impl Strategy<Value = Event> {
    let effect = option::of(prop::sample::select(vec!["NoSelect", "PreferNoSelect", "NoSelectIfNew"]));
    let comes =
        (0..8_usize, any::<bool>(), effect).prop_map(|(name, is_prod, effect)| Event::Comes { name, is_prod, effect });
    prop_oneof![4 => comes, 1 => (0..8_usize).prop_map(|name| Event::Goes { name })]
}

fn asked() -> impl Strategy<Value = Asked> {
    (option::of(0..6_u8), any::<bool>(), any::<bool>(), option::of(1..4_u8))
        .prop_map(|(wanted, prod_only, tolerates, per_group)| Asked { wanted, prod_only, tolerates, per_group })
}

fn spec(asked: &Asked) -> Value {
    let prod = json!([{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prod"}}}}]);
    json!({
        "numberOfClusters": asked.wanted,
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
    (!asked.prod_only || cluster.metadata.labels.iter().flatten().any(|(_, value)| value == "prod"))
        && cluster.spec.taints.iter().all(|taint| is_tolerated(taint.effect.as_str()))
}

/// The clusters there are, by number.
type Fleet = std::collections::BTreeMap<usize, ManagedCluster>;

/// Lets it happen; the placements that it concerns.
fn happen(world: &mut World, fleet: &mut Fleet, event: &Event) -> usize {
    match event {
        Event::Comes { name, is_prod, effect } => {
            let new = cluster(&format!("c{name}"), &[("env", if *is_prod { "prod" } else { "dev" })]);
            let new = effect.map_or(new.clone(), |effect| tainted(new, "t", effect));
            fleet.insert(*name, new.clone());
            world.cluster(new).len()
        }
        Event::Goes { name } if fleet.remove(name).is_some() => world.no_cluster(&format!("c{name}")).len(),
        Event::Goes { .. } => 0,
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
        let (mut world, mut fleet) = (World::new(), Fleet::new());
        world.placement(placement("p", spec(&asked)));
        let mut before = world.settle("p", at(0));
        for event in &events {
            let was_in = world.decided("p");
            let concerned = happen(&mut world, &mut fleet, event);
            let plan = world.plan("p", at(0));
            if concerned == 0 {
                prop_assert_eq!(&plan.steps, &vec![], "nobody was told: {:?}", event);
                prop_assert_eq!(said(&plan), said(&before));
                continue;
            }
            before = world.settle("p", at(0));
            let chosen = world.decided("p");
            let is_in = |name: usize| was_in.contains(&format!("c{name}"));
            let fitting: Vec<_> = fleet.iter().filter(|(name, cluster)| fits(cluster, &asked, is_in(**name)))
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
