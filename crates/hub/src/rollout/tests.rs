//! Each rule with numbers.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{ClusterStatus, Rollout, Status, Strategy, plan};
use crate::decisions::{DecisionGroups, GroupKey};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// Groups of these names with these clusters, a letter each.
fn groups(groups: &[(&str, &str)]) -> DecisionGroups {
    let listed = groups.iter().enumerate().flat_map(|(index, (name, clusters))| {
        let key = GroupKey { name: (*name).into(), index: i32::try_from(index).unwrap() };
        clusters.chars().map(move |cluster| (key.clone(), cluster.to_string().into()))
    });
    DecisionGroups::new(listed)
}

/// A cluster of a single letter that is so since 100 seconds after the beginning.
fn is(cluster: char, status: Status) -> ClusterStatus {
    ClusterStatus { cluster: cluster.to_string().into(), group: None, status, last_transition: Some(at(100)) }
}

fn all(clusters: &str, status: Status) -> Vec<ClusterStatus> {
    clusters.chars().map(|cluster| is(cluster, status)).collect()
}

fn run(type_: &str, settings: Value, groups: &DecisionGroups, existing: &[ClusterStatus], now: i64) -> Rollout {
    let name = match type_ {
        "All" => "all",
        "Progressive" => "progressive",
        _ => "progressivePerGroup",
    };
    let mut strategy = json!({"type": type_});
    strategy[name] = settings;
    let strategy = Strategy::read(&serde_json::from_value(strategy).unwrap()).unwrap();
    plan(&strategy, groups, existing, at(now))
}

/// The clusters that are to begin.
fn begin(rollout: &Rollout) -> String {
    rollout.to_apply().map(|cluster| cluster.cluster.to_string()).collect()
}

/// All clusters of the rollout, those that are to begin after a bar.
fn shown(rollout: &Rollout) -> String {
    let begun = rollout.clusters.iter().filter(|cluster| cluster.status != Status::ToApply);
    let begun: String = begun.map(|cluster| cluster.cluster.to_string()).collect();
    format!("{begun}|{}", begin(rollout))
}

fn timed_out(rollout: &Rollout) -> String {
    assert!(rollout.timed_out.iter().all(|cluster| cluster.status == Status::TimeOut));
    rollout.timed_out.iter().map(|cluster| cluster.cluster.to_string()).collect()
}

#[test]
fn all_begin_at_once_even_if_some_fail() {
    let groups = groups(&[("", "abc"), ("", "de")]);
    let none = json!({});
    assert_eq!(begin(&run("All", none.clone(), &groups, &[], 0)), "abcde");
    let existing = [all("abc", Status::Failed), all("d", Status::Succeeded)].concat();
    let rollout = run("All", none, &groups, &existing, 100);
    assert_eq!((shown(&rollout).as_str(), rollout.is_stopped), ("abc|e", false));
    assert_eq!(rollout.recheck_after, None);
}

#[test]
fn of_type_all_success_counts_at_once() {
    let existing = all("a", Status::Succeeded);
    let rollout = run("All", json!({"minSuccessTime": "1h"}), &groups(&[("", "a")]), &existing, 100);
    assert_eq!((shown(&rollout).as_str(), rollout.recheck_after), ("|", None));
}

#[test]
fn so_many_begin_at_a_time_by_name() {
    let groups = groups(&[("", "gfe"), ("", "dcba")]);
    let at_a_time = |value: Value| begin(&run("Progressive", json!({"maxConcurrency": value}), &groups, &[], 0));
    assert_eq!(at_a_time(json!(2)), "ab");
    assert_eq!(at_a_time(json!("30%")), "abc", "30 percent of 7 is rounded up");
    assert_eq!(at_a_time(json!(0)), "abcdefg");
    assert_eq!(at_a_time(json!(8)), "abcdefg");
    assert_eq!(at_a_time(Value::Null), "abcdefg");
}

#[test]
fn the_next_begins_when_one_has_succeeded_for_long_enough() {
    let groups = groups(&[("", "abcd")]);
    let settings = json!({"maxConcurrency": 2, "minSuccessTime": "60s"});
    let existing = [all("a", Status::Succeeded), all("b", Status::Progressing)].concat();
    let soaking = run("Progressive", settings.clone(), &groups, &existing, 159);
    assert_eq!((shown(&soaking).as_str(), soaking.recheck_after), ("ab|", Some(SignedDuration::from_secs(1))));
    let done = run("Progressive", settings, &groups, &existing, 160);
    assert_eq!((shown(&done).as_str(), done.recheck_after), ("b|c", None));
}

#[test]
fn success_without_a_time_never_counts_when_a_minimum_is_asked_for() {
    let mut existing = all("a", Status::Succeeded);
    existing[0].last_transition = None;
    let soak = |settings| shown(&run("Progressive", settings, &groups(&[("", "ab")]), &existing, 9999));
    assert_eq!(soak(json!({"maxConcurrency": 1, "minSuccessTime": "60s"})), "a|");
    assert_eq!(soak(json!({"maxConcurrency": 1})), "|b");
}

#[test]
fn a_cluster_times_out_at_its_deadline_and_never_with_none() {
    let groups = groups(&[("", "abcd")]);
    let settings = |deadline: &str| json!({"maxConcurrency": 2, "progressDeadline": deadline, "maxFailures": 2});
    let existing = [all("a", Status::Progressing), all("b", Status::Failed)].concat();
    let before = run("Progressive", settings("30s"), &groups, &existing, 129);
    assert_eq!((shown(&before).as_str(), before.recheck_after), ("ab|", Some(SignedDuration::from_secs(1))));
    let after = run("Progressive", settings("30s"), &groups, &existing, 130);
    assert_eq!((shown(&after).as_str(), timed_out(&after).as_str(), after.is_stopped), ("|cd", "ab", false));
    let never = run("Progressive", settings("None"), &groups, &existing, 99_999);
    assert_eq!((shown(&never).as_str(), never.recheck_after), ("ab|", None));
    let at_once = run("Progressive", settings("0s"), &groups, &existing, 100);
    assert_eq!(timed_out(&at_once), "ab");
}

#[test]
fn none_begins_when_more_have_failed_than_are_tolerated() {
    let groups = groups(&[("", "abcdefghij")]);
    let existing = [all("ab", Status::Failed), all("c", Status::Succeeded)].concat();
    let rollout = |max: Value| {
        let settings = json!({"maxConcurrency": 5, "maxFailures": max});
        let rollout = run("Progressive", settings, &groups, &existing, 100);
        (shown(&rollout), rollout.is_stopped)
    };
    assert_eq!(rollout(json!(1)), ("ab|".into(), true));
    assert_eq!(rollout(json!(2)), ("ab|def".into(), false), "a failed cluster keeps its slot until its deadline");
    assert!(rollout(json!("10%")).1, "10 percent of 10 is 1");
    assert!(!rollout(json!("11%")).1, "11 percent of 10 is 2");
    assert!(rollout(Value::Null).1);
    assert!(rollout(json!(11)).1, "more than there are means none");
}

#[test]
fn a_timeout_is_a_failure_whether_known_or_found_out() {
    let groups = groups(&[("", "abc")]);
    let settings = json!({"maxConcurrency": 1, "progressDeadline": "10s"});
    for (status, late) in [(Status::TimeOut, ""), (Status::Progressing, "a")] {
        let rollout = run("Progressive", settings.clone(), &groups, &all("a", status), 110);
        assert_eq!((shown(&rollout).as_str(), timed_out(&rollout).as_str()), ("|", late));
        assert!(rollout.is_stopped);
    }
}

#[test]
fn a_failure_late_in_the_alphabet_stops_clusters_that_wait_before_it() {
    let existing = [all("a", Status::ToApply), all("z", Status::TimeOut)].concat();
    let rollout = run("Progressive", json!({}), &groups(&[("", "abz")]), &existing, 100);
    assert_eq!((shown(&rollout).as_str(), rollout.is_stopped), ("|", true));
}

#[test]
fn a_cluster_that_waits_does_not_take_the_slot_of_one_in_progress() {
    let existing = [all("a", Status::ToApply), all("yz", Status::Progressing)].concat();
    let two = json!({"maxConcurrency": 2});
    let rollout = run("Progressive", two.clone(), &groups(&[("", "ayz")]), &existing, 100);
    assert_eq!(shown(&rollout), "yz|");
    // Of clusters that wait, those that are known come first.
    let existing = [all("z", Status::ToApply), all("y", Status::Progressing)].concat();
    assert_eq!(shown(&run("Progressive", two, &groups(&[("", "abyz")]), &existing, 100)), "y|z");
}

#[test]
fn a_skipped_cluster_is_left_out() {
    let existing = all("a", Status::Skip);
    assert_eq!(shown(&run("Progressive", json!({"maxConcurrency": 1}), &groups(&[("", "ab")]), &existing, 100)), "|b");
}

#[test]
fn clusters_that_are_no_longer_chosen_are_named_and_do_not_count() {
    let existing = [all("xy", Status::Failed), all("a", Status::Succeeded), all("", Status::Failed)].concat();
    let rollout = run("Progressive", json!({"maxConcurrency": 1}), &groups(&[("", "ab")]), &existing, 100);
    let removed: Vec<_> = rollout.removed.iter().map(|cluster| &*cluster.cluster).collect();
    assert_eq!((removed, shown(&rollout).as_str(), rollout.is_stopped), (vec!["x", "y"], "|b", false));
}

#[test]
fn one_group_begins_after_the_other() {
    let groups = groups(&[("", "dc"), ("", "ba"), ("", "e")]);
    let per_group = |existing: &[ClusterStatus]| {
        shown(&run("ProgressivePerGroup", json!({"minSuccessTime": "10s"}), &groups, existing, 105))
    };
    assert_eq!(per_group(&[]), "|cd");
    assert_eq!(per_group(&all("c", Status::Progressing)), "c|d");
    assert_eq!(per_group(&all("cd", Status::Succeeded)), "cd|");
    let done = ClusterStatus { last_transition: Some(at(95)), ..is('d', Status::Succeeded) };
    assert_eq!(per_group(&[is('c', Status::Skip), done.clone()]), "|ab");
    assert_eq!(per_group(&[is('c', Status::Skip), done.clone(), is('a', Status::ToApply)]), "|ab");
    let begun = [is('c', Status::Skip), done, is('a', Status::Progressing), is('b', Status::Succeeded)];
    assert_eq!(per_group(&begun), "ab|");
}

#[test]
fn each_group_tolerates_its_own_failures() {
    let groups = groups(&[("", "abcd"), ("", "efgh"), ("", "i")]);
    let per_group = |max: &str, existing: &[ClusterStatus]| {
        let settings = json!({"maxFailures": max, "progressDeadline": "10s"});
        let rollout = run("ProgressivePerGroup", settings, &groups, existing, 500);
        (shown(&rollout), rollout.is_stopped)
    };
    let first = [all("abc", Status::Succeeded), all("d", Status::TimeOut)].concat();
    assert_eq!(per_group("25%", &first), ("|efgh".into(), false));
    assert_eq!(per_group("0%", &first), ("|".into(), true));
    let both = [first, all("efg", Status::Succeeded), all("h", Status::Progressing)].concat();
    assert_eq!(per_group("25%", &both), ("|i".into(), false), "h has timed out");
}

#[test]
fn a_group_is_finished_before_the_next_begins_even_when_one_of_its_clusters_timed_out() {
    let existing = [all("a", Status::Progressing), all("b", Status::TimeOut)].concat();
    let settings = json!({"maxFailures": 1});
    let rollout = run("ProgressivePerGroup", settings, &groups(&[("", "ab"), ("", "c")]), &existing, 100);
    assert_eq!(shown(&rollout), "a|");
}

#[test]
fn a_failed_cluster_that_is_tolerated_does_not_keep_other_groups_waiting() {
    let groups = groups(&[("", "ab"), ("", "cd"), ("", "e")]);
    let existing = [all("abd", Status::Succeeded), all("c", Status::Failed)].concat();
    let rollout = run("ProgressivePerGroup", json!({"maxFailures": 1}), &groups, &existing, 100);
    assert_eq!(shown(&rollout), "c|e");
}

#[test]
fn mandatory_groups_come_first_one_after_the_other_and_tolerate_no_failure() {
    let groups = groups(&[("", "abcd"), ("canary", "e"), ("canary", "f")]);
    for type_ in ["Progressive", "ProgressivePerGroup"] {
        let mandatory = |existing: &[ClusterStatus]| {
            let settings = json!({"mandatoryDecisionGroups": [{"groupName": "canary"}], "maxFailures": "100%",
                "progressDeadline": "10s"});
            let rollout = run(type_, settings, &groups, existing, 105);
            (shown(&rollout), rollout.is_stopped)
        };
        assert_eq!(mandatory(&[]), ("|e".into(), false));
        assert_eq!(mandatory(&all("e", Status::Progressing)), ("e|".into(), false));
        assert_eq!(mandatory(&all("e", Status::Succeeded)), ("|f".into(), false));
        assert_eq!(mandatory(&all("e", Status::Failed)), ("e|".into(), true));
        assert_eq!(mandatory(&all("e", Status::TimeOut)), ("|".into(), true));
        assert_eq!(mandatory(&all("ef", Status::Succeeded)), ("|abcd".into(), false));
    }
}

#[test]
fn a_mandatory_group_that_does_not_exist_is_done() {
    let settings = json!({"mandatoryDecisionGroups": [{"groupName": "canary"}, {"groupIndex": 7}]});
    assert_eq!(begin(&run("Progressive", settings, &groups(&[("", "ab")]), &[], 0)), "ab");
    let by_index = json!({"mandatoryDecisionGroups": [{"groupIndex": 1}]});
    assert_eq!(begin(&run("Progressive", by_index, &groups(&[("", "ab"), ("", "c")]), &[], 0)), "c");
}

#[test]
fn failures_outside_mandatory_groups_that_are_tolerated_do_not_stop_the_rollout() {
    let groups = groups(&[("canary", "a"), ("", "bcd")]);
    let settings = json!({"mandatoryDecisionGroups": [{"groupIndex": 0}], "maxConcurrency": 1, "maxFailures": 1,
        "progressDeadline": "10s"});
    let existing = [all("a", Status::Succeeded), all("b", Status::Progressing)].concat();
    let rollout = run("Progressive", settings, &groups, &existing, 500);
    assert_eq!((shown(&rollout).as_str(), timed_out(&rollout).as_str()), ("|c", "b"));
}

#[test]
fn the_rest_is_counted_without_the_mandatory_groups() {
    let groups = groups(&[("canary", "ab"), ("", "cdef")]);
    let settings = json!({"mandatoryDecisionGroups": [{"groupName": "canary"}], "maxConcurrency": "50%"});
    let rollout = run("Progressive", settings, &groups, &all("ab", Status::Succeeded), 100);
    assert_eq!(begin(&rollout), "cd", "half of four");
    let group = rollout.to_apply().next().and_then(|cluster| cluster.group.clone()).unwrap();
    assert_eq!((group.index, &*group.name), (1, ""));
}

#[test]
fn the_earliest_end_of_a_deadline_or_a_soak_is_when_to_plan_again() {
    let existing = [all("a", Status::Progressing), all("b", Status::Succeeded)].concat();
    let settings = json!({"progressDeadline": "60s", "minSuccessTime": "20s"});
    let rollout = run("Progressive", settings, &groups(&[("", "ab")]), &existing, 105);
    assert_eq!(rollout.recheck_after, Some(SignedDuration::from_secs(15)));
}
