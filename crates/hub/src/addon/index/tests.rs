use jiff::{SignedDuration, Timestamp};
use ocm_runtime::ObjectKey;
use serde_json::{Value, json};

use super::{News, Progress, Wish, state::State};
use crate::{
    addon::{
        facts::{Chooser, Decision, Management},
        testing::management,
    },
    testing::now,
};

/// A state, and the installations that the last change touched.
#[derive(Default)]
struct World {
    state: State,
    touched: Vec<String>,
    settled: Option<bool>,
}

impl World {
    fn took(&mut self, news: Vec<News>) -> Vec<String> {
        self.touched.clear();
        self.settled = None;
        for news in news {
            match news {
                News::Installation(key) => self.touched.push(key.to_string()),
                News::Progress { is_settled, .. } => self.settled = Some(is_settled),
            }
        }
        self.touched.clone()
    }

    fn follows(&mut self, addon: &str, placements: &[&str]) -> Vec<String> {
        let placements: Vec<_> = placements.iter().map(|name| json!({"namespace": "n", "name": name})).collect();
        self.says(addon, json!({"installStrategy": {"type": "Placements", "placements": placements}}))
    }

    fn says(&mut self, addon: &str, spec: Value) -> Vec<String> {
        let facts = Management::of(&management(addon, spec));
        let news = self.state.set_management(addon, facts, now());
        self.took(news)
    }

    fn placement(&mut self, name: &str, is_there: bool) -> Vec<String> {
        let news = self.state.set_placement(&ObjectKey::new("n", name), is_there.then(Chooser::default), now());
        self.took(news)
    }

    fn decides(&mut self, decision: &str, placement: &str, clusters: &[&str]) -> Vec<String> {
        let clusters = clusters.iter().map(ToString::to_string).collect();
        let facts = Decision { placement: ObjectKey::new("n", placement), clusters };
        let news = self.state.set_decision(ObjectKey::new("n", decision), Some(facts), now());
        self.took(news)
    }

    fn installed(&mut self, cluster: &str, addon: &str, configured: Option<bool>) -> Vec<String> {
        self.installed_at(cluster, addon, configured, now())
    }

    fn installed_at(&mut self, cluster: &str, addon: &str, configured: Option<bool>, at: Timestamp) -> Vec<String> {
        let news = self.state.set_installed(&ObjectKey::new(cluster, addon), configured, at);
        self.took(news)
    }

    fn wish(&self, cluster: &str, addon: &str) -> Option<Wish> {
        self.state.sight(&ObjectKey::new(cluster, addon)).map(|sight| sight.wish)
    }

    fn refusal(&self, cluster: &str, addon: &str) -> Option<String> {
        self.state.sight(&ObjectKey::new(cluster, addon)).unwrap().refusal
    }

    fn progress(&self, addon: &str) -> Vec<Progress> {
        self.state.progress(addon).unwrap()
    }
}

/// Add-on `a` follows placement `p`, which has chosen c1 and c2.
fn world() -> World {
    let mut world = World::default();
    world.follows("a", &["p"]);
    world.placement("p", true);
    world.decides("p-1", "p", &["c1", "c2"]);
    world
}

#[test]
fn a_decision_touches_the_clusters_that_come_and_go_in_each_addon_that_follows_its_placement() {
    let mut world = world();
    assert_eq!(world.touched, ["c1/a", "c2/a"]);
    world.follows("b", &["other"]);
    assert_eq!(world.decides("p-1", "p", &["c2", "c3"]), ["c3/a", "c1/a"]);
    assert_eq!(world.wish("c3", "a"), Some(Wish::Wanted));
    assert_eq!(world.wish("c1", "a"), Some(Wish::Unwanted { since: None }));
    assert!(world.decides("p-1", "p", &["c2", "c3"]).is_empty(), "nothing new");
}

#[test]
fn a_cluster_that_moves_between_two_decisions_is_wanted_throughout() {
    let mut world = world();
    assert_eq!(world.decides("p-2", "p", &["c2"]), [""; 0]);
    assert_eq!(world.decides("p-1", "p", &["c1"]), [""; 0]);
    assert_eq!(world.wish("c2", "a"), Some(Wish::Wanted));
}

#[test]
fn a_decision_without_its_placement_counts_for_nothing() {
    let mut world = world();
    world.installed("c1", "a", Some(true));
    assert_eq!(world.placement("p", false), ["c1/a", "c2/a"]);
    assert_eq!(world.wish("c1", "a"), Some(Wish::Unwanted { since: Some(now()) }));
    assert!(!world.progress("a")[0].exists);
    assert_eq!(world.placement("p", true), ["c1/a", "c2/a"]);
    assert_eq!(world.wish("c1", "a"), Some(Wish::Wanted));
}

#[test]
fn another_placement_touches_the_clusters_of_it_and_not_those_of_the_first() {
    let mut world = world();
    world.placement("q", true);
    world.decides("q-1", "q", &["c3"]);
    assert_eq!(world.follows("a", &["p", "q"]), ["c3/a"]);
    assert_eq!(world.follows("a", &["p", "q"]), [""; 0], "nothing new");
    assert_eq!(world.follows("a", &["q"]), ["c1/a", "c2/a"]);
    assert_eq!(world.wish("c1", "a"), Some(Wish::Unwanted { since: None }));
}

#[test]
fn a_cluster_of_two_placements_stays_wanted_until_both_have_dropped_it() {
    let mut world = world();
    world.placement("q", true);
    world.decides("q-1", "q", &["c1"]);
    world.follows("a", &["p", "q"]);
    world.decides("p-1", "p", &[]);
    assert_eq!(world.wish("c1", "a"), Some(Wish::Wanted));
    assert_eq!(world.wish("c2", "a"), Some(Wish::Unwanted { since: None }));
    world.decides("q-1", "q", &[]);
    assert_eq!(world.wish("c1", "a"), Some(Wish::Unwanted { since: None }));
}

#[test]
fn of_two_placements_with_a_cluster_the_last_one_counts_it_and_decides_what_is_asked_for() {
    let mut world = world();
    world.placement("q", true);
    world.decides("q-1", "q", &["c1"]);
    let configs = json!([{"resource": "r", "name": "x"}]);
    let placements = json!([{"namespace": "n", "name": "p"}, {"namespace": "n", "name": "q", "configs": configs}]);
    assert_eq!(world.says("a", json!({"installStrategy": {"type": "Placements", "placements": placements}})), ["c1/a"]);
    assert!(world.refusal("c1", "a").unwrap().contains("placements[1].configs"));
    assert_eq!(world.refusal("c2", "a"), None);
    let progress = world.progress("a");
    assert_eq!((progress[0].selected, progress[1].selected), (1, 1));
    // The same placements, the other way round.
    let placements = json!([{"namespace": "n", "name": "q", "configs": [{"resource": "r", "name": "x"}]}, {"namespace": "n", "name": "p"}]);
    let touched = world.says("a", json!({"installStrategy": {"type": "Placements", "placements": placements}}));
    assert!(touched.contains(&"c1/a".to_owned()), "{touched:?}");
    assert_eq!(world.refusal("c1", "a"), None);
}

#[test]
fn what_is_asked_for_on_all_clusters_touches_every_installation() {
    let mut world = World::default();
    world.installed("c1", "a", Some(true));
    world.says("a", json!({}));
    assert_eq!(world.wish("c1", "a"), Some(Wish::ByHand));
    let default = json!({"supportedConfigs": [{"resource": "r", "defaultConfig": {"name": "x"}}]});
    assert_eq!(world.says("a", default), ["c1/a"]);
    assert!(world.refusal("c1", "a").is_some());
}

#[test]
fn an_addon_with_a_manager_of_its_own_or_on_its_way_out_is_no_business_of_ours() {
    let mut world = world();
    for value in ["self", "", "somebody"] {
        let mut own = management("a", json!({}));
        own.metadata.annotations = Some([("addon.open-cluster-management.io/lifecycle".into(), value.into())].into());
        assert_eq!(Management::of(&own), None, "{value:?}");
    }
    let mut ours = management("a", json!({}));
    ours.metadata.annotations =
        Some([("addon.open-cluster-management.io/lifecycle".into(), "addon-manager".into())].into());
    assert!(Management::of(&ours).is_some());
    let news = world.state.set_management("a", None, now());
    world.took(news);
    assert_eq!(world.wish("c1", "a"), None);
    assert!(world.state.progress("a").is_none());
    assert!(world.decides("p-1", "p", &["c9"]).is_empty(), "nobody follows it any more");
}

#[test]
fn an_installation_is_left_over_since_it_was_dropped_or_first_seen() {
    let mut world = world();
    let later = now() + SignedDuration::from_secs(9);
    world.installed("c1", "a", Some(true));
    world.decides("p-1", "p", &["c2"]);
    world.installed_at("c1", "a", Some(false), later);
    assert_eq!(world.wish("c1", "a"), Some(Wish::Unwanted { since: Some(now()) }), "other news change nothing");
    world.installed_at("c9", "a", Some(true), later);
    assert_eq!(world.wish("c9", "a"), Some(Wish::Unwanted { since: Some(later) }));
}

#[test]
fn what_was_installed_by_hand_is_left_over_only_once_placements_decide() {
    let mut world = World::default();
    world.says("a", json!({}));
    world.installed("c1", "a", Some(true));
    let later = now() + SignedDuration::from_hours(9);
    let strategy = json!({"installStrategy": {"type": "Placements"}});
    let news = world.state.set_management("a", Management::of(&management("a", strategy)), later);
    assert_eq!(world.took(news), ["c1/a"]);
    assert_eq!(world.wish("c1", "a"), Some(Wish::Unwanted { since: Some(later) }));
}

#[test]
fn it_is_settled_when_every_wanted_installation_is_configured() {
    let mut world = world();
    assert_eq!(world.settled, Some(false));
    world.installed("c1", "a", Some(true));
    assert_eq!(world.settled, Some(false));
    world.installed("c2", "a", Some(false));
    assert_eq!(world.settled, Some(false));
    world.installed("c2", "a", Some(true));
    assert_eq!(world.settled, Some(true));
    assert_eq!((world.progress("a")[0].selected, world.progress("a")[0].configured), (2, 2));
    world.installed("c2", "a", Some(true));
    assert_eq!(world.settled, None, "nothing new");
    world.installed("c2", "a", None);
    assert_eq!(world.settled, Some(false));
    world.decides("p-1", "p", &["c1"]);
    assert_eq!(world.settled, Some(true));
}

#[test]
fn a_failure_is_told_until_the_installation_is_there_or_no_longer_wanted() {
    let mut world = world();
    let key = |cluster: &str| ObjectKey::new(cluster, "a");
    let news = world.state.set_failure(&key("c1"), "no".into());
    assert_eq!(world.took(news), [""; 0], "it is not tried again for that");
    assert_eq!(world.settled, Some(false));
    assert_eq!(world.progress("a")[0].failure, Some(("c1".into(), "no".into())));
    assert!(world.state.set_failure(&key("c1"), "no".into()).is_empty());
    world.state.set_failure(&key("c2"), "no".into());
    assert_eq!(world.progress("a")[0].failed, 2);
    world.installed("c1", "a", Some(true));
    world.decides("p-1", "p", &["c1"]);
    assert_eq!((world.progress("a")[0].failed, world.progress("a")[0].configured), (0, 1));
}

#[test]
fn who_comes_late_is_told_of_everything() {
    let mut world = world();
    world.installed("c9", "b", Some(true));
    let mut all = world.state.everything();
    all.sort();
    assert_eq!(world.took(all), ["c1/a", "c2/a", "c9/b"]);
}

#[test]
fn what_is_gone_is_forgotten() {
    let mut world = world();
    world.installed("c1", "a", Some(true));
    world.decides("p-1", "p", &[]);
    world.placement("p", false);
    world.state.set_management("a", None, now());
    world.installed("c1", "a", None);
    assert!(world.state.everything().is_empty());
}
