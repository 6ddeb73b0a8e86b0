use std::sync::Arc;

use kube::{Api, core::Status};
use ocm_api::{finalizers::CLUSTER_RESOURCE_CLEANUP as FINALIZER, limits};
use ocm_runtime::{Class, Classified as _};
use serde_json::json;

use super::{
    apply::Outcome,
    observe::{Item, RemainingResources},
    *,
};
use crate::{
    registration::status::condition,
    testing::{client_answered_with, cluster, deleting, now},
};

fn works() -> GcResource {
    GcResource::defaults().remove(1)
}

fn item(name: &str, priority: u8) -> Item {
    Item { name: name.into(), uid: None, priority, has_finalizer: true, is_deleting: false }
}

fn observed(cluster: Option<ManagedCluster>, items: Vec<Item>) -> Observed {
    let remaining = (!items.is_empty()).then(|| RemainingResources { resource: works(), items });
    Observed { name: "c1".into(), cluster: cluster.map(Arc::new), remaining: Ok(remaining) }
}

fn to_delete(items: Vec<Item>) -> Vec<String> {
    let Plan::Delete { items, .. } = plan::plan(&observed(None, items)) else { panic!() };
    items.into_iter().map(|item| item.name).collect()
}

#[test]
fn a_cluster_gets_the_finalizer_once() {
    let Plan::AddFinalizer(mut claimed) = plan::plan(&observed(Some(cluster("c1")), vec![])) else { panic!() };
    assert_eq!(claimed.finalizers(), [FINALIZER]);
    claimed.finalizers_mut().push("other".into());
    assert_eq!(plan::plan(&observed(Some(*claimed), vec![])), Plan::Leave);
}

#[test]
fn the_lowest_priority_goes_first() {
    assert_eq!(to_delete(vec![item("late", 9), item("a", 1), item("b", 1)]), ["a", "b"]);
}

#[test]
fn the_next_priority_waits_until_the_one_before_is_gone_and_nothing_is_deleted_twice() {
    let going = Item { is_deleting: true, ..item("a", 1) };
    assert_eq!(to_delete(vec![going, item("late", 9)]), Vec::<String>::new());
}

#[test]
fn what_a_cluster_left_behind_that_is_gone_already_is_deleted_too() {
    assert_eq!(to_delete(vec![item("a", 0)]), ["a"]);
    assert_eq!(plan::plan(&observed(None, vec![])), Plan::Leave);
}

#[test]
fn the_finalizer_goes_when_nothing_is_left() {
    let leaving = deleting(cluster("c1"), &["other", FINALIZER]);
    let Plan::RemoveFinalizer(released) = plan::plan(&observed(Some(leaving), vec![])) else { panic!() };
    assert_eq!(released.finalizers(), ["other"]);
    assert_eq!(plan::plan(&observed(Some(*released), vec![])), Plan::Leave);
}

fn reported(outcome: Outcome) -> Option<(String, String, String)> {
    let cluster = Some(Arc::new(deleting(cluster("c1"), &[FINALIZER])));
    let (_, new) = report::status(&Applied { cluster, outcome }, now())?;
    let condition = condition(&new, "Deleting")?;
    Some((condition.status.clone(), condition.reason.clone(), condition.message.clone()))
}

fn refused(code: u16) -> Arc<Error> {
    let status = Status::failure("no", "").with_code(code).boxed();
    let source = Box::new(kube::Error::Api(status));
    Arc::new(ocm_runtime::Error::Request { verb: "list", noun: "works".into(), source }.into())
}

#[test]
fn the_condition_says_what_is_left_and_what_holds_it() {
    let free = Item { has_finalizer: false, ..item("b", 0) };
    let remaining = RemainingResources { resource: works(), items: vec![item("a", 0), free] };
    let (status, reason, message) = reported(Outcome::Remaining(remaining)).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ResourceRemaining"));
    assert_eq!(
        message,
        "Waiting for 2 manifestworks in the cluster's namespace to go; 1 of them is held by finalizers."
    );
}

#[test]
fn the_condition_says_when_it_is_done_and_what_went_wrong() {
    let (status, reason, _) = reported(Outcome::Done).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "NoResource"));
    let (status, reason, message) = reported(Outcome::Failed(vec![refused(403)])).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "DeletingError"));
    assert!(message.contains("failed to list works: no"), "{message}");
    assert_eq!(reported(Outcome::Failed(vec![refused(409)])), None, "a conflict is not reported");
    let (.., message) = reported(Outcome::Failed(vec![refused(403); 7])).unwrap();
    assert_eq!(message.matches("failed to list works").count(), 5);
    assert!(message.contains("; and 2 more. "), "{message}");
}

#[tokio::test]
async fn an_object_whose_deletion_is_refused_does_not_keep_the_others() {
    let refusal = |message: &str| (422, json!(Status::failure(message, "Invalid").with_code(422)));
    let answers = vec![refusal("not a"), (200, json!(Status::success())), (500, json!({})), refusal("not d")];
    let api = Api::namespaced_with(client_answered_with(answers), "c1", &works().api());
    let items = ["a", "b", "c", "d"].map(|name| item(name, 0));
    let errors = apply::delete(&api, &works(), &items).await;
    assert_eq!(errors.len(), 3);
    let (.., message) = reported(Outcome::Failed(errors.clone())).unwrap();
    assert!(message.contains("c1/a: not a") && message.contains("c1/d: not d"), "{message}");
    let next = report::next(Applied { cluster: None, outcome: Outcome::Failed(errors) });
    assert_eq!(next.unwrap_err().class(), Class::Transient, "the first retry is for all");
}

#[test]
fn it_is_requeued_while_something_is_left() {
    let remaining = RemainingResources { resource: works(), items: vec![item("a", 0)] };
    let next = |outcome| report::next(Applied { cluster: None, outcome });
    assert_eq!(next(Outcome::Remaining(remaining)).unwrap(), Requeue::After(limits::CLUSTER_DELETION_RECHECK));
    assert_eq!(next(Outcome::Done).unwrap(), Requeue::OnChange);
    assert!(next(Outcome::Failed(vec![refused(403)])).is_err());
}

#[test]
fn resources_are_read_from_group_version_and_plural() {
    for (text, version) in [
        ("work.open-cluster-management.io/v1/manifestworks", "work.open-cluster-management.io/v1"),
        ("/v1/secrets", "v1"),
    ] {
        let resource: GcResource = text.parse().unwrap();
        assert_eq!((resource.to_string().as_str(), resource.api().api_version.as_str()), (text, version));
    }
    for wrong in ["", "v1/pods", "a/b/c/d", "a//c", "a/v1/"] {
        assert!(wrong.parse::<GcResource>().is_err(), "{wrong}");
    }
    assert_eq!(GcResource::defaults().len(), 2);
}

#[test]
fn an_entry_that_cannot_be_read_is_left_out_and_an_empty_list_deletes_nothing() {
    let read = |texts: &[&str]| GcResource::read_all(texts).iter().map(GcResource::to_string).collect::<Vec<_>>();
    assert_eq!(read(&["v1/pods", "/v1/secrets", "a/b/c"]), ["/v1/secrets", "a/b/c"]);
    assert!(read(&[""]).is_empty());
}
