use ocm_api::annotations::FIRST_RESOURCES;
use ocm_runtime::Controller as _;
use serde_json::{Value, json};

use super::{prune::obsolete, *};
use crate::{
    testing::{Mock, not_found},
    work::{
        finalizer::Finalizer,
        ownership,
        status::{ApplyResult, ObjectState},
        testing,
    },
};

mod recording;
mod repair;

fn work() -> Value {
    let manifest =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}});
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "w", "namespace": "c1", "uid": "5", "resourceVersion": "1", "generation": 2,
            "finalizers": [finalizers::MANIFEST_WORK]},
        "spec": {"workload": {"manifests": [manifest("a"), manifest("b")]}}
    })
}

fn recorded(group: &str, resource: &str, name: &str, uid: &str) -> AppliedManifestResourceMeta {
    AppliedManifestResourceMeta {
        group: group.into(),
        version: "v1".into(),
        resource: resource.into(),
        name: name.into(),
        namespace: "ns".into(),
        uid: Some(uid.into()),
    }
}

fn record(resources: &[AppliedManifestResourceMeta]) -> Value {
    let hash = crate::work::hub_hash("https://hub");
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "metadata": {"name": format!("{hash}-w"), "uid": "ours", "resourceVersion": "1",
            "finalizers": [finalizers::APPLIED_MANIFEST_WORK]},
        "spec": {"hubHash": hash, "agentID": testing::AGENT, "manifestWorkName": "w"},
        "status": {"appliedResources": resources}
    })
}

/// The record of a work whose first pass is not recorded.
fn new_record() -> Value {
    let planned = ["a", "b"].map(|name| unborn("configmaps", name));
    let mut record = record(&[]);
    record["metadata"]["annotations"] = json!({ FIRST_RESOURCES: json!(planned).to_string() });
    record.as_object_mut().unwrap().remove("status");
    record
}

/// The entry of an object that is about to be created.
fn unborn(resource: &str, name: &str) -> AppliedManifestResourceMeta {
    AppliedManifestResourceMeta { uid: None, ..recorded("", resource, name, "") }
}

fn object(name: &str, uid: &str) -> (u16, Value) {
    let name_of_record = format!("{}-w", crate::work::hub_hash("https://hub"));
    let owner = [ownership::tests::owner(&name_of_record, "ours")];
    (
        200,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": name, "namespace": "ns", "uid": uid, "resourceVersion": "1", "ownerReferences": owner}}),
    )
}

fn kinds() -> (u16, Value) {
    let config_map =
        json!({"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "singularName": "", "verbs": []});
    (200, json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [config_map]}))
}

fn forbidden() -> (u16, Value) {
    let message = "secrets \"s\" is forbidden: User \"agent\" cannot delete resource \"secrets\"";
    (403, json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": message}))
}

/// What a pass over a work does, when the record lists this and the managed cluster answers like that.
async fn pass_with(
    work: Value,
    resources: &[AppliedManifestResourceMeta],
    answers: Vec<(u16, Value)>,
) -> (Report, Works, Mock) {
    let hub = Mock::default().listing(testing::WORKS, &json!([work]));
    let managed = Mock::answering(answers).listing(testing::RECORDS, &json!([record(resources)]));
    let controller = Works::new(testing::shared(&hub, &managed).await);
    let observed = super::super::observe::observe(&controller, "w").await.unwrap().unwrap();
    let plan = super::super::plan::plan(&observed);
    let report = apply(&controller, &observed, plan).await.unwrap();
    (report, controller, managed)
}

fn names(resources: &[AppliedManifestResourceMeta]) -> Vec<&str> {
    resources.iter().map(|resource| resource.name.as_str()).collect()
}

#[tokio::test]
async fn an_obsolete_object_that_cannot_be_deleted_neither_stops_the_others_nor_the_report() {
    let resources = [
        recorded("", "configmaps", "a", "1"),
        recorded("", "configmaps", "b", "2"),
        recorded("", "secrets", "s", "3"),
        recorded("", "configmaps", "gone", "4"),
    ];
    let answers = vec![kinds(), object("a", "1"), object("b", "2"), object("s", "3"), not_found(), forbidden()];
    let (report, ..) = pass_with(work(), &resources, answers).await;
    let Report::Pass(pass) = report else { panic!("{report:?}") };
    assert!(pass.outcomes.iter().all(|outcome| outcome.applied == ApplyResult::Applied));
    assert_eq!(names(&pass.resources), ["a", "b", "s"]);
    assert_eq!((pass.undeleted.len(), pass.retry), (1, Retry::BackOff));
    assert!(pass.undeleted[0].starts_with("secrets ns/s: "), "{:?}", pass.undeleted);
}

#[tokio::test]
async fn what_was_applied_is_recorded_and_nothing_deleted_while_a_kind_is_not_known() {
    let mut work = work();
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}});
    work["spec"]["workload"]["manifests"][1] = thing;
    let resources = [recorded("", "configmaps", "obsolete", "4")];
    let listed = (200, record(&[unborn("configmaps", "a"), resources[0].clone()]));
    let answers = vec![kinds(), not_found(), listed, object("a", "1")];
    let (report, ..) = pass_with(work, &resources, answers).await;
    let Report::Pass(pass) = report else { panic!("{report:?}") };
    assert_eq!(names(&pass.resources), ["a", "obsolete"]);
    assert_eq!(pass.retry, Retry::BackOff);
}

#[tokio::test]
async fn what_is_recorded_stays_recorded_while_an_object_of_the_work_cannot_be_read() {
    let resources =
        [recorded("", "configmaps", "a", "1"), recorded("", "configmaps", "b", "2"), recorded("", "secrets", "s", "3")];
    // The second object can neither be applied nor read.
    let answers = vec![kinds(), object("a", "1"), forbidden(), forbidden()];
    let (report, _, managed) = pass_with(work(), &resources, answers).await;
    let Report::Pass(pass) = report else { panic!("{report:?}") };
    assert!(matches!(pass.outcomes[1].object, ObjectState::Unknown { .. }), "{:?}", pass.outcomes[1].object);
    assert_eq!(pass.resources, resources);
    assert!(!managed.asked().iter().any(|asked| asked.starts_with("DELETE")), "{:?}", managed.asked());
}

#[tokio::test]
async fn nothing_is_released_or_deleted_while_the_kind_of_an_object_that_is_to_stay_cannot_be_looked_up() {
    let resources = [recorded("", "configmaps", "a", "1")];
    let unavailable = (503, json!({"kind": "Status", "status": "Failure", "code": 503, "message": "not ready"}));
    // Only the second manifest cannot be mapped.
    let mut work = orphaning();
    work["spec"]["workload"]["manifests"][1] =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}});
    let (report, _, managed) = pass_with(work, &resources, vec![kinds(), unavailable]).await;
    let Report::Condition { condition, requeue } = report else { panic!("{report:?}") };
    assert_eq!((condition.type_, condition.status), ("Deleting", "True"));
    assert!(condition.message.contains("Thing t: "), "{}", condition.message);
    assert!(matches!(requeue, Requeue::BackOffWithin(_)));
    assert!(managed.asked().iter().all(|asked| asked.starts_with("GET /api")), "{:?}", managed.asked());
    assert_eq!(managed.asked().len(), 2, "only kinds are looked up: {:?}", managed.asked());
}

#[tokio::test]
async fn a_kind_that_is_not_served_does_not_hold_up_a_deletion_that_orphans() {
    let mut work = orphaning();
    work["spec"]["workload"]["manifests"][1] =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}});
    let deleted = (200, json!({"kind": "Status", "status": "Success"}));
    let (report, _, managed) = pass_with(work, &[], vec![kinds(), not_found(), not_found(), deleted]).await;
    assert!(matches!(report, Report::Nothing), "{report:?}");
    assert!(managed.asked().last().unwrap().starts_with("DELETE"), "{:?}", managed.asked());
}

/// A work that is being deleted and reports so, and whose objects must stay.
fn orphaning() -> Value {
    let mut work = work();
    work["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    work["spec"]["deleteOption"] = json!({"propagationPolicy": "Orphan"});
    work["status"]["conditions"] = json!([{"type": "Deleting", "status": "True", "reason": "x", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    work
}

#[tokio::test]
async fn a_record_is_not_deleted_before_all_that_is_to_stay_is_released() {
    let resources = [recorded("", "configmaps", "a", "1")];
    let answers = vec![kinds(), object("a", "1"), not_found(), forbidden()];
    let (report, _, managed) = pass_with(orphaning(), &resources, answers).await;
    let Report::Condition { condition, requeue } = report else { panic!("{report:?}") };
    assert_eq!((condition.type_, condition.status), ("Deleting", "True"));
    assert!(condition.message.contains("configmaps ns/a: "), "{}", condition.message);
    assert!(matches!(requeue, Requeue::BackOffWithin(_)));
    assert!(!managed.asked().iter().any(|asked| asked.starts_with("DELETE")), "{:?}", managed.asked());
}

#[tokio::test]
async fn the_record_of_a_deleted_work_with_a_lost_id_is_adopted_and_then_finalized() {
    let mut work = work();
    work["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut stranded = record(&[recorded("", "configmaps", "a", "1")]);
    stranded["spec"]["agentID"] = json!("old");
    stranded["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut patched = stranded.clone();
    patched["spec"]["agentID"] = json!(testing::AGENT);
    patched["metadata"]["resourceVersion"] = json!("2");

    let hub = Mock::default().listing(testing::WORKS, &json!([work]));
    let managed = Mock::answering(vec![(200, patched)]).listing(testing::RECORDS, &json!([stranded]));
    let controller = Works::new(testing::shared(&hub, &managed).await);
    let finalizer = Finalizer::new(controller.shared.clone());
    let name = stranded["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(finalizer.observe(&name).await.unwrap().is_none(), "another id is not touched");

    let observed = controller.observe(&"w".to_owned()).await.unwrap().unwrap();
    let report = apply(&controller, &observed, super::super::plan::plan(&observed)).await.unwrap();
    assert_eq!(managed.asked(), [format!("PATCH {}/{name}", testing::RECORDS)]);
    let guarded = json!({"metadata": {"uid": "ours", "resourceVersion": "1"}, "spec": {"agentID": testing::AGENT}});
    assert_eq!(managed.bodies(), [guarded]);
    let requeue = controller.report(&observed, report, jiff::Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!(requeue, Requeue::After(std::time::Duration::ZERO));

    assert!(finalizer.observe(&name).await.unwrap().is_some(), "the finalizer controller does the rest");
    let observed = controller.observe(&"w".to_owned()).await.unwrap().unwrap();
    assert!(matches!(super::super::plan::plan(&observed), Plan::Nothing), "it is waited for");
}

#[tokio::test]
async fn a_record_that_the_managed_cluster_denies_is_reported() {
    let hub = Mock::default().listing(testing::WORKS, &json!([work()]));
    let managed = Mock::answering(vec![kinds(), forbidden()]);
    let controller = Works::new(testing::shared(&hub, &managed).await);
    let observed = super::super::observe::observe(&controller, "w").await.unwrap().unwrap();
    let report = apply(&controller, &observed, super::super::plan::plan(&observed)).await.unwrap();
    let Report::Condition { condition, .. } = report else { panic!("{report:?}") };
    assert_eq!((condition.type_, condition.status), ("Applied", "False"));
    assert!(condition.message.contains("failed to create AppliedManifestWork"), "{}", condition.message);
}

#[test]
fn an_object_of_the_work_is_not_obsolete_under_another_group_or_while_it_cannot_be_found() {
    let outcome = |name: &str, object| {
        let meta = ocm_api::work::v1::ManifestResourceMeta {
            group: "events.k8s.io".into(),
            resource: "events".into(),
            name: name.into(),
            namespace: "ns".into(),
            ..ocm_api::work::v1::ManifestResourceMeta::default()
        };
        Outcome { meta, applied: ApplyResult::NotTried, object, evaluation: None }
    };
    let existing = [recorded("events.k8s.io", "events", "a", "1")];
    let outcomes = [outcome("a", ObjectState::NotFound), outcome("b", ObjectState::NotFound)];
    let before = vec![
        recorded("", "events", "a", "1"),
        recorded("", "events", "a", "another"),
        recorded("events.k8s.io", "events", "b", "2"),
        recorded("", "configmaps", "c", "3"),
    ];
    let obsolete = obsolete(before, &existing, &outcomes);
    let uids: Vec<_> = obsolete.iter().filter_map(|resource| resource.uid.as_deref()).collect();
    assert_eq!(uids, ["another", "3"]);
}

/// A work that is being deleted with its objects and reports so.
fn deleted_with_objects() -> Value {
    let mut work = orphaning();
    work["spec"].as_object_mut().unwrap().remove("deleteOption");
    work
}

fn success() -> (u16, Value) {
    (200, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
}

#[tokio::test]
async fn the_record_of_a_deleted_work_lists_what_it_owns_before_it_is_deleted() {
    let mut patched = record(&[recorded("", "configmaps", "b", "2")]);
    patched["metadata"]["resourceVersion"] = json!("2");
    // The first object was applied by somebody else, the second by this work.
    let mut foreign = object("a", "1");
    foreign.1["metadata"]["ownerReferences"] = json!([]);
    let answers = vec![kinds(), foreign, object("b", "2"), (200, patched), success()];
    let (report, controller, managed) = pass_with(deleted_with_objects(), &[], answers).await;
    assert!(matches!(report, Report::Nothing), "{report:?}");
    let asked = managed.asked();
    assert!(asked[3].starts_with("PATCH") && asked[3].ends_with("/status"), "{asked:?}");
    assert!(asked[4].starts_with("DELETE") && asked.len() == 5, "{asked:?}");
    let listed = &managed.bodies()[3]["status"]["appliedResources"];
    assert_eq!(
        (listed.as_array().unwrap().len(), &listed[0]["name"], &listed[0]["uid"]),
        (1, &json!("b"), &json!("2"))
    );
    let cached = controller.shared.applied_works.named(&format!("{}-w", crate::work::hub_hash("https://hub"))).unwrap();
    assert_eq!(cached.metadata.resource_version.as_deref(), Some("2"), "the finalizer controller finds it there");
}

#[tokio::test]
async fn a_record_that_lists_everything_is_deleted_without_another_request() {
    let resources = [recorded("", "configmaps", "a", "1"), recorded("", "configmaps", "b", "2")];
    let (_, _, managed) = pass_with(deleted_with_objects(), &resources, vec![kinds(), success()]).await;
    assert_eq!(managed.asked().len(), 2, "{:?}", managed.asked());
}

#[tokio::test]
async fn the_record_is_written_before_the_hub_says_that_the_work_is_applied() {
    let unavailable = (503, json!({"kind": "Status", "status": "Failure", "code": 503, "message": "not ready"}));
    let answers = vec![kinds(), object("a", "1"), object("b", "2"), unavailable];
    let hub = Mock::answering(vec![(200, work())]).listing(testing::WORKS, &json!([work()]));
    let managed = Mock::answering(answers).listing(testing::RECORDS, &json!([new_record()]));
    let controller = Works::new(testing::shared(&hub, &managed).await);
    let observed = controller.observe(&"w".to_owned()).await.unwrap().unwrap();
    let report = controller.apply(&observed, super::super::plan::plan(&observed)).await.unwrap();
    assert!(controller.report(&observed, report, jiff::Timestamp::UNIX_EPOCH).await.is_err());
    assert!(managed.asked().last().unwrap().starts_with("PATCH"), "{:?}", managed.asked());
    assert_eq!(hub.asked(), Vec::<String>::new());
}

/// The status of the work after a pass in which the managed cluster responds like this.
async fn reported(answers: Vec<(u16, Value)>, hub_answer: (u16, Value)) -> (Requeue, Value) {
    let hub = Mock::answering(vec![hub_answer]).listing(testing::WORKS, &json!([work()]));
    let managed = Mock::answering(answers).listing(testing::RECORDS, &json!([new_record()]));
    let controller = Works::new(testing::shared(&hub, &managed).await);
    let observed = controller.observe(&"w".to_owned()).await.unwrap().unwrap();
    let report = controller.apply(&observed, super::super::plan::plan(&observed)).await.unwrap();
    let requeue = controller.report(&observed, report, jiff::Timestamp::UNIX_EPOCH).await.unwrap();
    (requeue, hub.bodies().remove(0))
}

#[tokio::test]
async fn a_status_of_the_record_that_the_managed_cluster_denies_is_reported() {
    let answers = vec![kinds(), object("a", "1"), object("b", "2"), forbidden()];
    let (requeue, written) = reported(answers, (200, work())).await;
    let conditions = &written["status"]["conditions"];
    assert_eq!((&conditions[0]["type"], &conditions[0]["status"]), (&json!("Applied"), &json!("False")));
    assert!(matches!(requeue, Requeue::BackOffWithin(_)));
}

#[tokio::test]
async fn a_work_that_is_gone_is_observed_again_only_when_the_informer_delivers_that() {
    let patched = (200, record(&[recorded("", "configmaps", "a", "1")]));
    let answers = vec![kinds(), object("a", "1"), object("b", "2"), patched];
    assert_eq!(reported(answers, not_found()).await.0, Requeue::OnChange);

    let mut deleted = deleted_with_objects();
    deleted["status"] = Value::Null;
    let hub = Mock::answering(vec![not_found()]).listing(testing::WORKS, &json!([deleted]));
    let managed = Mock::answering(vec![kinds()]).listing(testing::RECORDS, &json!([record(&[])]));
    let controller = Works::new(testing::shared(&hub, &managed).await);
    let observed = controller.observe(&"w".to_owned()).await.unwrap().unwrap();
    let report = controller.apply(&observed, super::super::plan::plan(&observed)).await.unwrap();
    assert!(
        matches!(report, Report::Condition { requeue: Requeue::After(std::time::Duration::ZERO), .. }),
        "{report:?}"
    );
    let requeue = controller.report(&observed, report, jiff::Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!(requeue, Requeue::OnChange);
}

/// What the managed cluster is asked for a work that orphans its objects, while the record that it had under another
/// address of the hub still exists. The object is owned by both records, and by that of another agent.
async fn orphaned_after_the_hub_moved(work: Value, requests: impl Fn((u16, Value)) -> Vec<(u16, Value)>) -> Value {
    let of_hub = |hub: &str, uid: &str, agent: &str| {
        let mut record = record(&[recorded("", "configmaps", "a", "1")]);
        record["metadata"]["name"] = json!(format!("{hub}-w"));
        record["metadata"]["uid"] = json!(uid);
        record["spec"]["hubHash"] = json!(hub);
        record["spec"]["agentID"] = json!(agent);
        record
    };
    let mut work = work;
    work["spec"]["workload"]["manifests"].as_array_mut().unwrap().truncate(1);
    let (former, another) = (of_hub("former", "theirs", testing::AGENT), of_hub("another", "foreign", "other-agent"));
    let mut object = object("a", "1");
    let owners = object.1["metadata"]["ownerReferences"].as_array_mut().unwrap();
    owners.push(json!(ownership::tests::owner("former-w", "theirs")));
    owners.push(json!(ownership::tests::owner("another-w", "foreign")));
    let ours = record(&[recorded("", "configmaps", "a", "1")]);
    let hub = Mock::default().listing(testing::WORKS, &json!([work]));
    let managed = Mock::answering(requests(object)).listing(testing::RECORDS, &json!([ours, former, another]));
    let controller = Works::new(testing::shared(&hub, &managed).await);
    let observed = controller.observe(&"w".to_owned()).await.unwrap().unwrap();
    controller.apply(&observed, super::super::plan::plan(&observed)).await.unwrap();
    let body = managed.bodies().into_iter().find(|body| body["metadata"].get("ownerReferences").is_some());
    body.unwrap()["metadata"]["ownerReferences"].clone()
}

#[tokio::test]
async fn an_object_that_is_to_stay_is_released_from_the_record_of_a_former_address_of_the_hub() {
    let left = json!([ownership::tests::owner("another-w", "foreign")]);
    let mut live = work();
    live["spec"]["deleteOption"] = json!({"propagationPolicy": "Orphan"});
    let applied = orphaned_after_the_hub_moved(live, |object| vec![kinds(), object.clone(), object]).await;
    assert_eq!(applied, left, "it would be evicted with that record");
    let deleted =
        orphaned_after_the_hub_moved(orphaning(), |object| vec![kinds(), object.clone(), object, success()]).await;
    assert_eq!(deleted, left);
}
