//! Copies of works: when they are written, and what repairing from one does.

use super::*;
use crate::work::offline::Copies;

/// What repairing from a copy does, when the record lists this and the managed cluster answers like that.
async fn repair_with(
    copy: Value,
    resources: &[AppliedManifestResourceMeta],
    answers: Vec<(u16, Value)>,
) -> (Repaired, Mock) {
    let managed = Mock::answering(answers).listing(testing::RECORDS, &json!([record(resources)]));
    let controller = Works::new(testing::shared(&Mock::default(), &managed).await);
    let observed = controller.observe_copy(serde_json::from_value(copy).unwrap()).await.unwrap().unwrap();
    let Plan::Apply(plan) = super::super::plan::plan(&observed) else { panic!("not applied") };
    (controller.repair(&observed, &plan).await, managed)
}

#[tokio::test]
async fn an_object_of_a_copy_that_the_record_does_not_list_is_not_created() {
    let listed = [recorded("", "configmaps", "b", "2")];
    let (repaired, managed) = repair_with(work(), &listed, vec![kinds(), object("b", "2")]).await;
    assert_eq!((repaired.outcomes.len(), repaired.left_out), (1, 1));
    assert_eq!(repaired.outcomes[0].meta.name, "b");
    assert!(managed.asked().iter().all(|asked| asked.starts_with("GET")), "{:?}", managed.asked());
}

#[tokio::test]
async fn the_copy_of_a_work_is_written_before_the_first_of_its_objects() {
    let hub = Mock::default().listing(testing::WORKS, &json!([work()]));
    let copy = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy", "namespace": "agents"}});
    let answers = vec![kinds(), not_found(), (201, copy), object("a", "1"), object("b", "2")];
    let listed = [recorded("", "configmaps", "a", "1"), recorded("", "configmaps", "b", "2")];
    let managed = Mock::answering(answers).listing(testing::RECORDS, &json!([record(&listed)]));
    let mut shared = testing::shared(&hub, &managed).await;
    shared.copies = Some(Copies::over(managed.client(), "agents"));
    let controller = Works::new(shared);
    let observed = controller.observe(&"w".to_owned()).await.unwrap().unwrap();
    apply(&controller, &observed, super::super::plan::plan(&observed)).await.unwrap();
    let asked = managed.asked();
    let written: Vec<_> = asked.iter().map(|asked| asked.split(' ').next().unwrap()).collect();
    assert_eq!(written, ["GET", "GET", "POST", "GET", "GET"]);
    assert!(asked[2].ends_with("/namespaces/agents/secrets"), "{asked:?}");
}

#[tokio::test]
async fn a_copy_neither_creates_what_is_only_read_nor_what_is_complete() {
    let mut copy = work();
    let id = |name: &str| json!({"resource": "configmaps", "namespace": "ns", "name": name});
    copy["spec"]["manifestConfigs"] = json!([
        {"resourceIdentifier": id("a"), "updateStrategy": {"type": "ReadOnly"}},
        {"resourceIdentifier": id("b"), "conditionRules": [{"condition": "Complete", "type": "WellKnownConditions"}]},
    ]);
    let meta = json!({"ordinal": 1, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
        "namespace": "ns", "name": "b"});
    let complete = json!({"type": "Complete", "status": "True", "reason": "ConditionRuleEvaluated", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    copy["status"]["resourceStatus"]["manifests"] = json!([{"resourceMeta": meta, "conditions": [complete]}]);
    let listed = [recorded("", "configmaps", "a", "1"), recorded("", "configmaps", "b", "2")];
    let patched = (200, record(&listed));
    let answers = vec![kinds(), not_found(), not_found(), patched, not_found(), not_found()];
    let (repaired, managed) = repair_with(copy, &listed, answers).await;
    assert!(repaired.outcomes.iter().all(|outcome| outcome.object == ObjectState::NotFound), "{repaired:?}");
    assert!(!managed.asked().iter().any(|asked| asked.starts_with("POST")), "{:?}", managed.asked());
}
