use ocm_api::work::v1::AppliedManifestResourceMeta;
use serde_json::{Value, json};

use super::*;
use crate::{
    testing::{Mock, not_found},
    work::testing::{self, shared},
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn observed(has_work: bool, since: Option<i64>, grace: Duration) -> Observed {
    let mut record = AppliedManifestWork::default();
    record.status.get_or_insert_default().eviction_start_time = since.map(|second| Time(at(second)));
    let (verdict, missing_for) = (Verdict::AfterGrace, Duration::MAX);
    Observed { record: Arc::new(record), has_work, verdict, adopts: false, grace, missing_for }
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_record_whose_work_exists_is_kept() {
    assert_eq!(Eviction::plan(&observed(true, Some(0), HOUR), at(99_999)), Plan::Keep);
}

#[test]
fn a_record_without_a_work_is_kept_for_the_grace_period() {
    let first = Eviction::plan(&observed(false, None, HOUR), at(1000));
    assert_eq!(first, Plan::Wait { since: at(1000), left: HOUR });
    let later = Eviction::plan(&observed(false, Some(1000), HOUR), at(1600));
    assert_eq!(later, Plan::Wait { since: at(1000), left: Duration::from_secs(3000) });
    assert_eq!(Eviction::plan(&observed(false, Some(1000), HOUR), at(4600)), Plan::Evict);
}

#[test]
fn a_clock_that_jumps_does_not_end_the_grace_period_and_one_that_was_ahead_does_not_prolong_it() {
    let missing_for =
        |seconds| Observed { missing_for: Duration::from_secs(seconds), ..observed(false, Some(1000), HOUR) };
    let left = |seconds: u64| Duration::from_secs(3600 - seconds);
    assert_eq!(Eviction::plan(&missing_for(5), at(99_999)), Plan::Wait { since: at(1000), left: left(5) });
    assert_eq!(Eviction::plan(&missing_for(3600), at(99_999)), Plan::Evict);
    assert_eq!(Eviction::plan(&missing_for(5), at(900)), Plan::Wait { since: at(900), left: HOUR });
}

#[tokio::test(start_paused = true)]
async fn the_grace_period_of_a_record_begins_anew_when_its_work_comes_back_and_for_another_record() {
    let eviction = Eviction::new(shared(&Mock::default(), &Mock::default()).await);
    let missing_for = |uid: &str, is_missing| eviction.missing_for("hub-w", Some(uid.to_owned()), is_missing);
    assert_eq!(missing_for("1", true), Duration::ZERO);
    tokio::time::advance(HOUR).await;
    assert_eq!(missing_for("1", true), HOUR);
    assert_eq!(missing_for("1", false), Duration::ZERO);
    assert_eq!(missing_for("1", true), Duration::ZERO);
    tokio::time::advance(HOUR).await;
    assert_eq!(missing_for("2", true), Duration::ZERO);
}

#[test]
fn a_grace_period_that_begins_and_ends_leaves_the_list_of_a_first_pass_that_is_not_recorded() {
    let mut new = AppliedManifestWork::default();
    record::list_first(&mut new, &[AppliedManifestResourceMeta { name: "a".into(), ..Default::default() }]);
    assert_eq!(with_start(&new, None), new, "nothing is written");
    let waiting = with_start(&new, Some(Time(at(0))));
    for record in [with_start(&waiting, None), waiting] {
        assert_eq!(record::listed(&record).len(), 1);
    }
}

#[test]
fn a_record_with_the_former_id_is_adopted_with_and_without_a_work() {
    for has_work in [true, false] {
        let old = Observed { adopts: true, ..observed(has_work, Some(0), HOUR) };
        assert_eq!(Eviction::plan(&old, at(99_999)), Plan::Adopt);
    }
}

#[test]
fn what_is_held_is_not_evicted_and_its_grace_period_begins_when_the_hold_ends() {
    let old = |verdict| Observed { verdict, ..observed(false, Some(0), HOUR) };
    assert_eq!(Eviction::plan(&old(Verdict::Held), at(99_999)), Plan::Hold { is_new: false });
    assert_eq!(Eviction::plan(&old(Verdict::Lost), at(99_999)), Plan::Hold { is_new: true });
    assert_eq!(Eviction::plan(&old(Verdict::Confirmed), at(1)), Plan::Evict);
}

#[test]
fn a_hundred_years_mean_never() {
    assert_eq!(Eviction::plan(&observed(false, Some(0), NEVER), at(99_999)), Plan::Keep);
}

/// What becomes of a record whose grace period is over when the hub answers like this, and what the managed cluster
/// is asked.
async fn evicted(hub: (u16, Value), is_of_this_hub: bool) -> (Result<Plan>, Vec<String>) {
    let deleted = json!({"kind": "Status", "apiVersion": "v1", "status": "Success"});
    let (hub, managed) = (Mock::answering(vec![hub]), Mock::answering(vec![(200, deleted)]));
    let eviction = Eviction::new(shared(&hub, &managed).await);
    let hash = if is_of_this_hub { &eviction.shared.settings.hub_hash } else { "another" };
    let name = components::applied_manifest_work_name(hash, "w");
    let mut record = AppliedManifestWork::default();
    record.metadata.name = Some(name);
    record.spec.manifest_work_name = "w".into();
    let observed = Observed {
        record: Arc::new(record),
        has_work: false,
        verdict: Verdict::AfterGrace,
        adopts: false,
        grace: HOUR,
        missing_for: HOUR,
    };
    (eviction.apply(&observed, Plan::Evict).await, managed.asked())
}

#[tokio::test]
async fn a_record_is_evicted_only_if_a_live_request_finds_no_work() {
    let (plan, asked) = evicted(not_found(), true).await;
    assert_eq!((plan.unwrap(), asked.len()), (Plan::Evict, 1));
    let there = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "w"}});
    let (plan, asked) = evicted((200, there), true).await;
    assert_eq!((plan.unwrap(), asked), (Plan::Keep, vec![]));
    let (plan, asked) = evicted((403, json!({"kind": "Status", "code": 403, "status": "Failure"})), true).await;
    assert!(plan.is_err() && asked.is_empty());
}

#[tokio::test]
async fn a_record_of_another_hub_is_evicted_without_a_request_to_this_one() {
    let (plan, asked) = evicted((500, Value::Null), false).await;
    assert_eq!((plan.unwrap(), asked.len()), (Plan::Evict, 1));
}

#[tokio::test]
async fn a_record_from_a_former_address_is_kept_while_its_work_has_no_other_record() {
    let hash = crate::work::hub_hash("https://hub");
    let record = |hub: &str| {
        json!({"metadata": {"name": format!("{hub}-w"), "uid": hub, "resourceVersion": "1"},
        "spec": {"hubHash": hub, "agentID": "agent", "manifestWorkName": "w"}})
    };
    let work = json!({"metadata": {"name": "w", "namespace": "c1", "uid": "1", "resourceVersion": "1"},
        "spec": {"workload": {"manifests": []}}});
    let (former, present) = (record("former"), record(&hash));
    let cases = [
        (json!([work]), json!([former]), Plan::Keep),
        (json!([work]), json!([former, present]), Plan::Evict),
        (json!([]), json!([former]), Plan::Evict),
    ];
    for (works, records, expected) in cases {
        let deleted = json!({"kind": "Status", "apiVersion": "v1", "status": "Success"});
        let hub = Mock::default().listing(testing::WORKS, &works);
        let managed = Mock::answering(vec![(200, deleted)]).listing(testing::RECORDS, &records);
        let eviction = Eviction::new(shared(&hub, &managed).await);
        let observed = eviction.observe(&"former-w".to_owned()).await.unwrap().unwrap();
        assert_eq!(eviction.apply(&observed, Plan::Evict).await.unwrap(), expected);
        assert_eq!(managed.asked().len(), usize::from(expected == Plan::Evict));
    }
}

#[tokio::test]
async fn a_record_whose_work_cannot_be_read_is_checked_again() {
    let eviction = Eviction::new(shared(&Mock::default(), &Mock::default()).await);
    let mut record = AppliedManifestWork::default();
    record.metadata.name = Some("hub-w".into());
    let observed = |has_work, grace| Observed {
        record: Arc::new(record.clone()),
        has_work,
        verdict: Verdict::AfterGrace,
        adopts: false,
        grace,
        missing_for: HOUR,
    };
    let report = async |observed| eviction.report(&observed, Plan::Keep, at(0)).await.unwrap();
    assert_eq!(report(observed(false, HOUR)).await, Requeue::After(HOUR));
    assert_eq!(report(observed(true, HOUR)).await, Requeue::OnChange);
    assert_eq!(report(observed(false, NEVER)).await, Requeue::OnChange);
}
