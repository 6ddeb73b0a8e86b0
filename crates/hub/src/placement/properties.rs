//! What holds for one placement while clusters are created, changed and deleted.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use ocm_api::{
    cluster::{
        v1::{ManagedCluster, Taint},
        v1beta2::ManagedClusterSet,
    },
    labels::CLUSTER_SET,
};
use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};

use super::{
    plan::Plan,
    testing::{World, at, cluster, key, placement, set, tainted},
};

/// What happens to clusters, sets and bindings, and to the placement: time passes, and its spec uses CEL or no longer does.
#[derive(Clone, Debug)]
enum Event {
    Comes { name: usize, is_prod: bool, is_special: bool, effect: Option<&'static str>, is_dated: bool },
    Goes { name: usize },
    Set { is_special: bool, is_there: bool },
    Binding { is_special: bool, is_there: bool },
    Passes { seconds: i64 },
    Asks { uses_cel: bool },
}

/// What the placement asks for.
#[derive(Clone, Debug)]
struct Request {
    wanted: Option<u8>,
    prod_only: bool,
    special_only: bool,
    tolerated: Tolerated,
    per_group: Option<u8>,
    has_groups: bool,
}

/// Which taints are tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tolerated {
    None,
    All,
    AllForAMinute,
    Wrong,
}

fn event() -> impl Strategy<Value = Event> {
    let effect = option::of(prop::sample::select(vec!["NoSelect", "PreferNoSelect", "NoSelectIfNew"]));
    let comes = (0..5_usize, any::<bool>(), any::<bool>(), effect, any::<bool>()).prop_map(
        |(name, is_prod, is_special, effect, is_dated)| Event::Comes { name, is_prod, is_special, effect, is_dated },
    );
    let switch = || (any::<bool>(), any::<bool>());
    prop_oneof![
        8 => comes,
        2 => (0..5_usize).prop_map(|name| Event::Goes { name }),
        1 => switch().prop_map(|(is_special, is_there)| Event::Set { is_special, is_there }),
        1 => switch().prop_map(|(is_special, is_there)| Event::Binding { is_special, is_there }),
        2 => (1..90_i64).prop_map(|seconds| Event::Passes { seconds }),
        2 => any::<bool>().prop_map(|uses_cel| Event::Asks { uses_cel }),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let tolerated =
        prop::sample::select(vec![Tolerated::None, Tolerated::All, Tolerated::AllForAMinute, Tolerated::Wrong]);
    let amounts = (option::of(0..6_u8), option::of(1..4_u8));
    (amounts, any::<bool>(), any::<bool>(), any::<bool>(), tolerated).prop_map(
        |((wanted, per_group), prod_only, special_only, has_groups, tolerated)| Request {
            wanted,
            prod_only,
            special_only,
            tolerated,
            per_group,
            has_groups,
        },
    )
}

/// The same, by a label selector or in CEL.
fn spec(request: &Request, uses_cel: bool) -> Value {
    let prod = json!({"matchLabels": {"env": "prod"}});
    let mut selector = json!({});
    if request.prod_only && uses_cel {
        selector["celSelector"] = json!({"celExpressions": ["managedCluster.metadata.labels.env == 'prod'"]});
    } else if request.prod_only {
        selector["labelSelector"] = prod.clone();
    }
    let tolerations = match request.tolerated {
        Tolerated::None => json!([]),
        Tolerated::All => json!([{"operator": "Exists"}]),
        Tolerated::AllForAMinute => json!([{"operator": "Exists", "tolerationSeconds": 60}]),
        Tolerated::Wrong => json!([{"value": "x"}]),
    };
    let group = json!({"groupName": "prod", "groupClusterSelector": {"labelSelector": prod}});
    let groups = if request.has_groups { json!([group]) } else { json!([]) };
    json!({
        "numberOfClusters": request.wanted,
        "clusterSets": if request.special_only { json!(["special"]) } else { json!([]) },
        "predicates": [{"requiredClusterSelector": selector}],
        "tolerations": tolerations,
        "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": request.per_group, "decisionGroups": groups}},
    })
}

/// Whether a cluster may be chosen; `was_in` when it is chosen already.
fn fits(cluster: &ManagedCluster, request: &Request, was_in: bool, now: i64) -> bool {
    let is_young = |taint: &Taint| taint.time_added.as_ref().is_some_and(|added| at(now - 60) < added.0);
    let is_tolerated = |taint: &Taint| match taint.effect.as_str() {
        "PreferNoSelect" => true,
        "NoSelectIfNew" if was_in => true,
        _ => request.tolerated == Tolerated::All || request.tolerated == Tolerated::AllForAMinute && is_young(taint),
    };
    request.tolerated != Tolerated::Wrong
        && (!request.prod_only || cluster.labels().get("env").is_some_and(|env| env == "prod"))
        && cluster.spec.taints.iter().all(is_tolerated)
}

/// The objects that exist, and what is expected of the placement.
#[derive(Default)]
struct Model {
    clusters: BTreeMap<String, ManagedCluster>,
    sets: BTreeSet<&'static str>,
    bindings: BTreeSet<&'static str>,
    /// In seconds since the beginning.
    now: i64,
    /// When the placement is to be planned again.
    due: Option<i64>,
    uses_cel: bool,
}

impl Model {
    /// Whether the placement may choose from the cluster's sets.
    fn is_candidate(&self, cluster: &ManagedCluster, request: &Request) -> bool {
        let is_open = |set: &str| self.sets.contains(set) && self.bindings.contains(set);
        is_open("special") && cluster.labels().contains_key(CLUSTER_SET) || !request.special_only && is_open("global")
    }

    /// The clusters that are to be chosen from, by name, if `was_in` are chosen now.
    fn fitting(&self, request: &Request, was_in: &[String]) -> Vec<String> {
        let may_be_chosen = |(name, cluster): &(&String, &ManagedCluster)| {
            let was_in = was_in.contains(name);
            fits(cluster, request, was_in, self.now) && self.is_candidate(cluster, request)
        };
        self.clusters.iter().filter(may_be_chosen).map(|(name, _)| name.clone()).collect()
    }

    fn settle(&mut self, world: &mut World) -> Plan {
        let plan = world.settle("p", at(self.now));
        self.due = plan.requeue_after.map(|again| self.now + again.as_secs());
        plan
    }
}

fn name_of(is_special: bool) -> &'static str {
    if is_special { "special" } else { "global" }
}

fn set_of(is_special: bool) -> ManagedClusterSet {
    let all = json!({"selectorType": "LabelSelector", "labelSelector": {}});
    set(name_of(is_special), if is_special { json!({}) } else { all })
}

/// Applies an event. Returns how many placements it affects.
fn happen(world: &mut World, model: &mut Model, request: &Request, event: &Event) -> usize {
    match event {
        Event::Comes { name, is_prod, is_special, effect, is_dated } => {
            let name = format!("c{name}");
            let mut new = cluster(&name, &[("env", if *is_prod { "prod" } else { "dev" })]);
            if *is_special {
                new.labels_mut().insert(CLUSTER_SET.into(), "special".into());
            }
            let mut new = effect.map_or(new.clone(), |effect| tainted(new, "t", effect));
            let before = model.clusters.get(&name).map(|before| before.spec.taints.clone()).unwrap_or_default();
            for taint in &mut new.spec.taints {
                let known = before.iter().find(|known| !is_dated && known.effect == taint.effect);
                taint.time_added = known.map_or(Some(Time(at(model.now))), |known| known.time_added.clone());
            }
            model.clusters.insert(name, new.clone());
            new.spec.taints.iter_mut().filter(|_| !is_dated).for_each(|taint| taint.time_added = None);
            world.now = model.now;
            world.cluster(new).len()
        }
        Event::Goes { name } => {
            let name = format!("c{name}");
            model.clusters.remove(&name).map_or(0, |_| world.no_cluster(&name).len())
        }
        Event::Passes { seconds } => {
            model.now += seconds;
            usize::from(model.due.is_some_and(|due| due <= model.now))
        }
        Event::Asks { uses_cel } if model.uses_cel != *uses_cel => {
            model.uses_cel = *uses_cel;
            world.placement(placement("p", spec(request, *uses_cel))).len()
        }
        Event::Set { is_special, is_there: true } if model.sets.insert(name_of(*is_special)) => {
            world.set(set_of(*is_special)).len()
        }
        Event::Set { is_special, is_there: false } if model.sets.remove(name_of(*is_special)) => {
            world.no_set(name_of(*is_special)).len()
        }
        Event::Binding { is_special, is_there: true } if model.bindings.insert(name_of(*is_special)) => {
            world.bind(name_of(*is_special)).len()
        }
        Event::Binding { is_special, is_there: false } if model.bindings.remove(name_of(*is_special)) => {
            world.unbind(name_of(*is_special)).len()
        }
        _ => 0,
    }
}

/// Status and reason of both conditions.
fn conditions_of(plan: &Plan) -> Vec<(String, String)> {
    let conditions = plan.status.conditions.iter();
    conditions.map(|condition| (condition.status.clone(), condition.reason.clone())).collect()
}

proptest! {
    #[test]
    fn never_more_than_asked_only_what_fits_and_nothing_to_do_when_nothing_changes(
        request in request(),
        events in vec(event(), 1..40),
    ) {
        let mut world = World::new();
        let mut model = Model::default();
        model.sets.insert("global");
        model.bindings.insert("global");
        world.placement(placement("p", spec(&request, false)));
        let mut before = model.settle(&mut world);
        for event in &events {
            let was_in = world.decided("p");
            let affected = happen(&mut world, &mut model, &request, event);
            let plan = world.plan("p", at(model.now));
            if affected == 0 {
                prop_assert_eq!(&plan.steps, &vec![], "no placement was affected by {:?}", event);
                prop_assert_eq!(conditions_of(&plan), conditions_of(&before));
                continue;
            }
            before = model.settle(&mut world);
            let chosen = world.decided("p");
            let fitting = model.fitting(&request, &was_in);
            prop_assert!(chosen.iter().all(|name| fitting.contains(name)), "{:?} of {:?}", chosen, fitting);
            let most = request.wanted.map_or(fitting.len(), |wanted| fitting.len().min(wanted.into()));
            prop_assert_eq!(chosen.len(), most);
            let kept = was_in.iter().filter(|name| fitting.contains(name)).count();
            prop_assert_eq!(chosen.iter().filter(|name| was_in.contains(name)).count(), kept.min(most), "kept");
            let again = world.plan("p", at(model.now));
            prop_assert_eq!((again.steps, again.status), (vec![], before.status.clone()));
        }
        prop_assert!(world.index.snapshot(&key("p")).is_some());
    }
}
