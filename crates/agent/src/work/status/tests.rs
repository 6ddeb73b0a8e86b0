use serde_json::json;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn meta(ordinal: i32, name: &str) -> ManifestResourceMeta {
    ManifestResourceMeta {
        ordinal,
        version: "v1".into(),
        kind: "ConfigMap".into(),
        resource: "configmaps".into(),
        name: name.into(),
        namespace: "ns".into(),
        ..ManifestResourceMeta::default()
    }
}

fn outcome(ordinal: i32, name: &str, applied: Result<(), &str>, object: ObjectState) -> Outcome {
    let applied = match applied {
        Ok(()) => ApplyResult::Applied,
        Err(cause) => ApplyResult::Failed {
            reason: reasons::manifest::APPLY_FAILED,
            cause: cause.to_owned(),
            retry: Retry::BackOff,
        },
    };
    Outcome::new(meta(ordinal, name), applied, object, &ManifestOptions::default(), FeedbackSettings::default())
}

fn exists() -> ObjectState {
    ObjectState::of(Ok(Some(ObjectMeta::default())))
}

fn reasons_of(entry: &ManifestCondition) -> Vec<(&str, &str, Option<i64>)> {
    entry.conditions.iter().map(|c| (c.type_.as_str(), c.reason.as_str(), c.observed_generation)).collect()
}

#[test]
fn an_applied_object_has_the_three_conditions_and_only_applied_carries_the_generation() {
    let list = manifests(&[], &[outcome(0, "a", Ok(()), exists())], Some(3), at(1));
    assert_eq!(
        reasons_of(&list[0]),
        [
            ("Applied", "AppliedManifestComplete", Some(3)),
            ("Available", "ResourceAvailable", None),
            ("StatusFeedbackSynced", "NoStatusFeedbackSynced", None)
        ]
    );
}

#[test]
fn an_object_that_is_not_there_has_no_feedback() {
    let list = manifests(&[], &[outcome(0, "a", Err("no"), ObjectState::Unmapped)], Some(1), at(1));
    assert_eq!(
        reasons_of(&list[0]),
        [("Applied", "AppliedManifestFailed", Some(1)), ("Available", "IncompleteResourceMeta", None)]
    );
}

#[test]
fn a_new_generation_moves_the_transition_time_of_applied_and_nothing_else() {
    let before = manifests(&[], &[outcome(0, "a", Ok(()), exists())], Some(1), at(1));
    let after = manifests(&before, &[outcome(0, "a", Ok(()), exists())], Some(2), at(9));
    let time = |type_| conditions::find(&after[0].conditions, type_).unwrap().last_transition_time.0;
    assert_eq!((time("Applied"), time("Available")), (at(9), at(1)));
    let same = manifests(&after, &[outcome(0, "a", Ok(()), exists())], Some(2), at(20));
    assert_eq!(same, after, "the same generation with the same outcome changes nothing");
}

#[test]
fn an_object_that_moved_in_the_spec_keeps_what_is_known_of_it() {
    let before = manifests(&[], &[outcome(0, "a", Ok(()), exists())], Some(1), at(1));
    let after =
        manifests(&before, &[outcome(0, "new", Ok(()), exists()), outcome(1, "a", Ok(()), exists())], Some(2), at(9));
    let time = |index: usize| conditions::find(&after[index].conditions, "Available").unwrap().last_transition_time.0;
    assert_eq!((time(0), time(1)), (at(9), at(1)));
}

#[test]
fn the_work_is_applied_when_all_of_it_is() {
    let list = manifests(
        &[],
        &[outcome(0, "a", Ok(()), exists()), outcome(1, "b", Err("no"), ObjectState::NotFound)],
        Some(1),
        at(1),
    );
    let condition = applied(&list, &[]);
    assert_eq!((condition.status, condition.reason), ("False", "AppliedManifestWorkFailed"));
    assert_eq!(condition.message, "1 of 2 objects could not be applied, the first is ConfigMap ns/b");
    assert_eq!(applied(&list[..1], &[]).status, "True");
}

#[test]
fn a_missing_object_outweighs_an_unknown_one() {
    let unknown = outcome(0, "a", Err("no"), ObjectState::Unmapped);
    let missing = outcome(1, "b", Err("no"), ObjectState::NotFound);
    let there = outcome(2, "c", Ok(()), exists());
    let of = |outcomes: &[Outcome]| available(&manifests(&[], outcomes, Some(1), at(1))).map(|found| found.reason);
    assert_eq!(of(&[unknown.clone(), missing, there.clone()]), Some("ResourcesNotAvailable"));
    assert_eq!(of(&[unknown, there.clone()]), Some("ResourcesStatusUnknown"));
    assert_eq!(of(&[there]), Some("ResourcesAvailable"));
    assert_eq!(of(&[]), None);
}

#[test]
fn a_poll_changes_nothing_but_what_it_has_looked_at() {
    let before = manifests(&[], &[outcome(0, "a", Err("no"), exists())], Some(1), at(1));
    let poll = Outcome { applied: ApplyResult::NotTried, ..outcome(0, "a", Ok(()), ObjectState::NotFound) };
    let after = manifests(&before, &[poll], Some(2), at(9));
    assert_eq!(
        reasons_of(&after[0]),
        [
            ("Applied", "AppliedManifestFailed", Some(1)),
            ("Available", "ResourceNotAvailable", None),
            ("StatusFeedbackSynced", "NoStatusFeedbackSynced", None)
        ]
    );
}

#[test]
fn what_cannot_be_deleted_is_named_and_does_not_make_applied_false() {
    let list = manifests(&[], &[outcome(0, "a", Ok(()), exists())], Some(1), at(1));
    let failures: Vec<_> = (0..5).map(|n| format!("secrets ns/s{n}: forbidden")).collect();
    let condition = applied(&list, &failures);
    assert_eq!(condition.status, "True");
    assert!(condition.message.contains("secrets ns/s0: forbidden"), "{}", condition.message);
    assert!(condition.message.ends_with("and 2 more"), "{}", condition.message);
    let condition = deleting(&failures[..1]);
    assert_eq!((condition.status, condition.reason), ("True", "WorkDeleting"));
    assert!(condition.message.ends_with("secrets ns/s0: forbidden"), "{}", condition.message);
    assert_eq!((blocked(&failures).status, blocked(&[]).status), ("False", "False"));
}

#[test]
fn what_cannot_be_read_is_retried_as_soon_as_its_error_asks_for_although_it_was_applied() {
    let unread = |retry| ObjectState::Unknown { cause: "no".into(), retry };
    let retry = |applied, retry| outcome(0, "a", applied, unread(retry)).retry();
    assert_eq!(retry(Ok(()), Retry::BackOff), Some(Retry::BackOff));
    assert_eq!(retry(Ok(()), Retry::AtRegularPass), Some(Retry::AtRegularPass));
    assert_eq!(retry(Err("no"), Retry::AtRegularPass), Some(Retry::BackOff));
    assert_eq!(outcome(0, "a", Ok(()), exists()).retry(), None);
}

#[test]
fn values_that_exceed_what_a_status_can_hold_are_left_out_with_the_reason_and_the_others_stay() {
    let rules = json!([{"type": "JSONPaths", "jsonPaths": [{"name": "x", "path": ".text"}]}]);
    let options = ManifestOptions {
        feedback_rules: serde_json::from_value::<Vec<_>>(rules).unwrap().into(),
        ..ManifestOptions::default()
    };
    let object: DynamicObject =
        serde_json::from_value(json!({"metadata": {}, "text": "x".repeat(feedback::MAX_TEXT / 2)})).unwrap();
    let outcome = |ordinal| {
        let (meta, state) = (meta(ordinal, &ordinal.to_string()), ObjectState::Exists(Box::new(object.clone())));
        Outcome::new(meta, ApplyResult::Applied, state, &options, FeedbackSettings::default())
    };
    let outcomes = [outcome(0), outcome(1), outcome(2)];
    let list = manifests(&[], &outcomes, Some(1), at(1));
    assert_eq!(list.iter().map(|entry| entry.status_feedback.values.len()).collect::<Vec<_>>(), [1, 1, 0]);
    let condition = conditions::find(&list[2].conditions, manifest::STATUS_FEEDBACK_SYNCED).unwrap();
    assert!(condition.status == "False" && condition.message.contains("all objects of a work"), "{condition:?}");
    assert_eq!(manifests(&list, &outcomes, Some(1), at(2)), list, "nothing changes while the objects do not");
}
