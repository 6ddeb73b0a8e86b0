use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Chosen, Decision, DesiredState, Failures, Inputs, Installed, Progress, decide};
use crate::{
    addon::{facts::Management, testing::management},
    decisions::{GRACE, UNREADABLE, testing::chosen},
    testing::now,
};

const KEPT: DesiredState = DesiredState::Kept;
const INSTALLED: DesiredState = DesiredState::Installed;

fn leaving(since: Timestamp) -> DesiredState {
    DesiredState::Leaving { since }
}

/// Add-on `a`, and what decisions on it depend on.
struct World {
    management: Option<Management>,
    /// The clusters of each placement; those that are missing here do not exist.
    placements: BTreeMap<&'static str, Vec<&'static str>>,
    has_unreadable: bool,
    installed: Installed,
    failures: Failures,
    before: Decision,
    now: Timestamp,
}

impl World {
    fn new(spec: Value) -> Self {
        let mut world = Self {
            management: None,
            placements: BTreeMap::new(),
            has_unreadable: false,
            installed: Installed::new(),
            failures: Failures::new(),
            before: Decision::default(),
            now: now(),
        };
        world.asks(spec);
        world
    }

    /// The add-on follows these placements of namespace `n`.
    fn following(placements: &[&str]) -> Self {
        Self::new(follow(placements))
    }

    fn asks(&mut self, spec: Value) {
        self.management = Management::of(&management("a", spec));
    }

    fn install(&mut self, cluster: &str, is_configured: bool) {
        self.installed.insert(cluster.into(), is_configured);
    }

    fn pass(&mut self, duration: SignedDuration) {
        self.now += duration;
    }

    fn decide(&mut self) -> Decision {
        let followed = self.management.as_ref().map(Management::followed).unwrap_or_default();
        let snapshot = |name: &str| self.placements.get(name).map(|clusters| chosen(clusters));
        let placements: Vec<_> = followed.iter().map(|followed| snapshot(&followed.placement.name)).collect();
        let inputs = Inputs {
            chosen: Arc::new(Chosen::of(&placements)),
            placements,
            management: self.management.clone().map(Arc::new),
            has_unreadable: self.has_unreadable,
            installed: Arc::new(self.installed.clone()),
            failures: self.failures.clone(),
            before: Arc::new(self.before.clone()),
        };
        self.before = decide(&inputs, self.now);
        self.before.clone()
    }

    /// What is desired on each cluster.
    fn desired(&mut self) -> Vec<(String, DesiredState)> {
        self.decide().desired.into_iter().map(|(cluster, desired)| (cluster.to_string(), desired.state)).collect()
    }

    fn refusal(&mut self, cluster: &str) -> Option<String> {
        self.decide().desired[cluster].refusal.as_deref().map(str::to_owned)
    }

    fn progress(&mut self) -> Vec<Progress> {
        self.decide().progress.unwrap()
    }
}

fn follow(placements: &[&str]) -> Value {
    let placements: Vec<_> = placements.iter().map(|name| json!({"namespace": "n", "name": name})).collect();
    json!({"installStrategy": {"type": "Placements", "placements": placements}})
}

fn on<const N: usize>(expected: [(&str, DesiredState); N]) -> Vec<(String, DesiredState)> {
    expected.map(|(cluster, state)| (cluster.to_owned(), state)).to_vec()
}

#[test]
fn it_is_installed_where_a_placement_chooses_and_nowhere_else() {
    let mut world = World::following(&["p"]);
    world.placements.insert("p", vec!["c1", "c2"]);
    world.install("c2", true);
    world.install("c3", true);
    assert_eq!(world.desired(), on([("c1", INSTALLED), ("c2", INSTALLED), ("c3", leaving(now()))]));
    assert_eq!(&*world.before.desired["c1"].owner, "uid-a");
}

#[test]
fn a_placement_that_does_not_exist_chooses_nothing() {
    let mut world = World::following(&["p"]);
    world.install("c1", true);
    assert_eq!(world.desired(), on([("c1", leaving(now()))]));
    assert!(!world.progress()[0].exists);
    world.placements.insert("p", vec!["c1"]);
    assert_eq!(world.desired(), on([("c1", INSTALLED)]));
}

#[test]
fn it_is_deleted_when_no_placement_has_chosen_its_cluster_for_a_while() {
    let mut world = World::following(&["p"]);
    world.placements.insert("p", vec![]);
    world.install("c1", true);
    assert_eq!(world.decide().recheck_after, Some(GRACE));
    world.pass(SignedDuration::from_secs(1));
    world.install("c1", false);
    assert_eq!(
        world.decide().recheck_after,
        Some(GRACE - SignedDuration::from_secs(1)),
        "other changes do not extend it"
    );
    world.pass(GRACE);
    assert_eq!(world.desired(), on([("c1", DesiredState::Absent { since: now() })]));
    assert_eq!(world.before.recheck_after, None);
    world.installed.clear();
    assert_eq!(world.desired(), []);
}

#[test]
fn a_cluster_that_is_chosen_again_meanwhile_keeps_it() {
    let mut world = World::following(&["p"]);
    world.placements.insert("p", vec![]);
    world.install("c1", true);
    world.decide();
    world.placements.insert("p", vec!["c1"]);
    world.pass(GRACE);
    assert_eq!(world.desired(), on([("c1", INSTALLED)]));
    world.placements.insert("p", vec![]);
    assert_eq!(world.desired(), on([("c1", leaving(now() + GRACE))]), "the time begins again");
}

#[test]
fn it_stays_while_something_that_may_choose_its_cluster_cannot_be_read() {
    let mut world = World::following(&["p"]);
    world.install("c1", true);
    world.has_unreadable = true;
    world.decide();
    world.pass(GRACE);
    assert_eq!(world.desired(), on([("c1", leaving(now()))]));
    assert_eq!(world.before.recheck_after, Some(UNREADABLE));
}

#[test]
fn a_cluster_of_two_placements_belongs_to_the_last_one_until_both_have_dropped_it() {
    let configs = json!([{"resource": "r", "name": "x"}]);
    let placements = json!([{"namespace": "n", "name": "p"}, {"namespace": "n", "name": "q", "configs": configs}]);
    let mut world = World::new(json!({"installStrategy": {"type": "Placements", "placements": placements}}));
    world.placements.insert("p", vec!["c1", "c2"]);
    world.placements.insert("q", vec!["c1"]);
    assert!(world.refusal("c1").unwrap().contains("placements[1].configs"));
    assert_eq!(world.refusal("c2"), None);
    assert_eq!(world.desired(), on([("c1", KEPT), ("c2", INSTALLED)]));
    let selected: Vec<_> = world.progress().iter().map(|progress| progress.selected).collect();
    assert_eq!(selected, [1, 1]);
    world.asks(follow(&["q", "p"]));
    assert_eq!(world.desired(), on([("c1", INSTALLED), ("c2", INSTALLED)]));
    world.placements.insert("p", vec![]);
    world.install("c1", true);
    world.install("c2", true);
    assert_eq!(world.desired(), on([("c1", INSTALLED), ("c2", leaving(now()))]));
}

#[test]
fn what_is_not_supported_is_not_installed_and_kept_where_it_is() {
    let mut world = World::following(&["p"]);
    world.placements.insert("p", vec!["c1", "c2"]);
    let mut spec = follow(&["p"]);
    spec["supportedConfigs"] = json!([{"resource": "r", "defaultConfig": {"name": "x"}}]);
    world.asks(spec);
    world.install("c2", true);
    assert_eq!(world.desired(), on([("c1", KEPT), ("c2", KEPT)]));
    assert!(world.refusal("c1").is_some() && world.progress()[0].refusal.is_some());
}

#[test]
fn what_is_installed_by_hand_is_kept_until_placements_decide() {
    let mut world = World::new(json!({}));
    world.install("c1", true);
    assert_eq!(world.desired(), on([("c1", KEPT)]));
    assert_eq!(world.progress(), []);
    world.pass(SignedDuration::from_hours(9));
    world.asks(follow(&[]));
    assert_eq!(world.desired(), on([("c1", leaving(world.now))]));
}

#[test]
fn another_add_on_of_the_same_name_begins_to_count_anew() {
    let mut world = World::following(&["p"]);
    world.install("c1", true);
    world.decide();
    world.pass(GRACE);
    world.management.as_mut().unwrap().uid = "another".into();
    assert_eq!(world.desired(), on([("c1", leaving(now() + GRACE))]));
}

#[test]
fn an_add_on_with_a_manager_of_its_own_is_left_alone() {
    let lifecycle = |value: &str| {
        let mut own = management("a", json!({}));
        own.metadata.annotations = Some([("addon.open-cluster-management.io/lifecycle".into(), value.into())].into());
        Management::of(&own)
    };
    for value in ["self", "", "somebody"] {
        assert_eq!(lifecycle(value), None, "{value:?}");
    }
    assert!(lifecycle("addon-manager").is_some());
    let mut world = World::following(&["p"]);
    world.placements.insert("p", vec!["c1"]);
    world.install("c2", true);
    world.decide();
    world.management = None;
    assert_eq!(world.decide(), Decision::default());
}

#[test]
fn it_is_settled_when_it_is_configured_on_every_chosen_cluster() {
    let mut world = World::following(&["p"]);
    world.placements.insert("p", vec!["c1", "c2"]);
    world.install("c1", true);
    world.install("c2", false);
    assert!(!world.decide().is_settled());
    assert_eq!((world.progress()[0].selected, world.progress()[0].configured), (2, 1));
    world.install("c2", true);
    world.install("c3", false);
    assert!(world.decide().is_settled(), "what is left over does not count");
    world.installed.clear();
    assert!(!world.decide().is_settled());
}

#[test]
fn failures_count_where_it_is_to_be_installed_and_is_not() {
    let mut world = World::following(&["p"]);
    world.placements.insert("p", vec!["c1", "c2", "c3"]);
    for cluster in ["c2", "c3", "c9"] {
        world.failures.insert(cluster.into(), format!("no {cluster}"));
    }
    world.install("c3", false);
    let progress = world.progress().remove(0);
    assert_eq!((progress.failed, progress.failure), (1, Some(("c2".into(), "no c2".into()))));
}
