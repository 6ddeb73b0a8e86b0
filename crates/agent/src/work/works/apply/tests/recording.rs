//! Objects are recorded before they are created.

use super::*;
use crate::work::record as records;

fn applied(report: Report) -> Box<Pass> {
    let Report::Pass(pass) = report else { panic!("{report:?}") };
    pass
}

#[tokio::test]
async fn an_object_that_an_edit_adds_is_recorded_before_it_is_created() {
    let resources = [recorded("", "configmaps", "a", "1")];
    let listed = (200, record(&[resources[0].clone(), unborn("configmaps", "b")]));
    let answers = vec![kinds(), listed, object("a", "1"), object("b", "2")];
    let (report, _, managed) = pass_with(work(), &resources, answers).await;
    let asked = managed.asked();
    assert!(asked[1].starts_with("PATCH") && asked[1].ends_with("/status"), "{asked:?}");
    assert!(asked[3].starts_with("POST"), "as before, it is not read first: {asked:?}");
    assert_eq!(managed.bodies()[1]["status"], json!({"appliedResources": [resources[0], unborn("configmaps", "b")]}));
    assert_eq!(applied(report).resources, [resources[0].clone(), recorded("", "configmaps", "b", "2")]);

    let (report, _, managed) = pass_with(work(), &resources, vec![kinds(), forbidden()]).await;
    assert!(matches!(report, Report::Condition { .. }), "{report:?}");
    assert_eq!(managed.asked().len(), 2, "what is not recorded is not created");
}

#[tokio::test]
async fn a_new_record_lists_the_objects_of_its_first_pass_without_another_write() {
    let hub = Mock::default().listing(testing::WORKS, &json!([work()]));
    let managed = Mock::answering(vec![kinds(), (201, new_record()), object("a", "1"), object("b", "2")]);
    let controller = Works::new(testing::shared(&hub, &managed).await);
    let observed = controller.observe(&"w".to_owned()).await.unwrap().unwrap();
    controller.apply(&observed, super::super::plan::plan(&observed)).await.unwrap();
    let asked: Vec<_> = managed.asked().iter().map(|asked| asked.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(asked, ["GET", "POST", "POST", "POST"]);
    let created: AppliedManifestWork = serde_json::from_value(managed.bodies().remove(1)).unwrap();
    assert_eq!(records::listed(&created), ["a", "b"].map(|name| unborn("configmaps", name)));
}

/// What is requested about an object that was taken out of the work after the agent was stopped in the middle of a pass.
async fn after_an_interrupted_pass(record: Value, lost: (u16, Value)) -> Vec<String> {
    let mut work = work();
    work["spec"]["workload"]["manifests"].as_array_mut().unwrap().remove(1);
    let hub = Mock::default().listing(testing::WORKS, &json!([work]));
    let answers = vec![kinds(), object("a", "1"), lost, success()];
    let managed = Mock::answering(answers).listing(testing::RECORDS, &json!([record]));
    let controller = Works::new(testing::shared(&hub, &managed).await);
    let observed = controller.observe(&"w".to_owned()).await.unwrap().unwrap();
    controller.apply(&observed, super::super::plan::plan(&observed)).await.unwrap();
    managed.asked().split_off(2)
}

#[tokio::test]
async fn what_was_taken_out_of_a_work_after_an_interrupted_pass_is_deleted_if_the_record_owns_it() {
    let edited = record(&[recorded("", "configmaps", "a", "1"), unborn("configmaps", "b")]);
    for interrupted in [edited, new_record()] {
        let asked = after_an_interrupted_pass(interrupted.clone(), object("b", "2")).await;
        assert!(asked.len() == 2 && asked[1].starts_with("DELETE") && asked[1].ends_with("/b"), "{asked:?}");
        let mut foreign = object("b", "2");
        foreign.1["metadata"]["ownerReferences"] = json!([]);
        let asked = after_an_interrupted_pass(interrupted, foreign).await;
        assert!(asked.len() == 1 && asked[0].starts_with("GET"), "{asked:?}");
    }
}

#[tokio::test]
async fn an_object_that_the_work_applies_is_not_deleted_under_the_group_in_which_it_was_listed_before() {
    let former = AppliedManifestResourceMeta { group: "former.example".into(), ..unborn("configmaps", "a") };
    let interrupted = record(&[recorded("", "configmaps", "a", "1"), former]);
    let asked = after_an_interrupted_pass(interrupted, object("a", "1")).await;
    assert!(asked.len() == 1 && asked[0].starts_with("GET /apis/former.example/"), "{asked:?}");
}

#[tokio::test]
async fn an_object_that_cannot_be_created_stays_recorded_and_its_next_attempt_writes_nothing_else() {
    let listed = [recorded("", "configmaps", "a", "1"), unborn("configmaps", "b")];
    let answers = vec![kinds(), object("a", "1"), not_found(), forbidden(), not_found()];
    let (report, _, managed) = pass_with(work(), &listed, answers).await;
    let pass = applied(report);
    assert_eq!(pass.outcomes[1].object, ObjectState::NotFound);
    assert_eq!(pass.resources, listed);
    assert!(!managed.asked().iter().any(|asked| asked.starts_with("PATCH")), "{:?}", managed.asked());
}
