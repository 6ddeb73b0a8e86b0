use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, work::v1::Manifest};
use ocm_runtime::conditions::NewCondition;
use serde_json::{Value, json};

use super::{
    super::{WorkTemplate, read},
    *,
};

/// An object of about that many bytes.
fn object(name: &str, size: usize) -> Value {
    let data = json!({"x": "x".repeat(size.saturating_sub(100))});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}, "data": data})
}

fn plan(objects: Vec<Value>, known: &[Arc<ManifestWork>]) -> Vec<Step> {
    let mut addon = ManagedClusterAddOn::new("c1", "hello", Default::default());
    addon.metadata.uid = Some("u".into());
    let items = read(&objects.into_iter().map(Manifest::from).collect::<Vec<_>>()).unwrap();
    steps(&WorkTemplate::new(&addon, &[], &items), items, known)
}

/// The works after the steps.
fn done(steps: Vec<Step>) -> Vec<Arc<ManifestWork>> {
    let after = |step| match step {
        Step::Create(work) | Step::Update { new: work, .. } => Some(Arc::new(*work)),
        Step::Keep(work) | Step::Wait(work) => Some(work),
        Step::Delete(_) => None,
    };
    steps.into_iter().filter_map(after).collect()
}

fn contents(works: &[Arc<ManifestWork>]) -> Vec<(String, Vec<String>)> {
    let name = |manifest: &Manifest| manifest.value()["metadata"]["name"].as_str().unwrap().to_owned();
    let names = |work: &ManifestWork| work.spec.workload.manifests.iter().map(name).collect();
    works.iter().map(|work| (work.name_any(), names(work))).collect()
}

fn expected(works: &[(usize, &[&str])]) -> Vec<(String, Vec<String>)> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    works.iter().map(|(index, names)| (format!("addon-hello-deploy-{index}"), owned(names))).collect()
}

#[test]
fn a_small_add_on_is_one_work_with_the_add_ons_label_and_owner_and_big_objects_first() {
    let works = done(plan(vec![object("small", 200), object("big", 900), object("same", 200)], &[]));
    assert_eq!(contents(&works), expected(&[(0, &["big", "small", "same"])]));
    assert_eq!(works[0].namespace().as_deref(), Some("c1"));
    assert_eq!(works[0].labels()["open-cluster-management.io/addon-name"], "hello");
    let owner = serde_json::to_value(works[0].owner_references()).unwrap();
    let controller = json!([{"apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ManagedClusterAddOn",
        "name": "hello", "uid": "u", "controller": true, "blockOwnerDeletion": true}]);
    assert_eq!(owner, controller);
    let spec = serde_json::to_value(&works[0].spec).unwrap();
    assert_eq!(spec.as_object().unwrap().keys().collect::<Vec<_>>(), ["workload"]);
}

#[test]
fn what_is_as_wanted_is_kept_and_no_object_is_no_work() {
    let works = done(plan(vec![object("a", 200)], &[]));
    assert_eq!(plan(vec![object("a", 200)], &works), [Step::Keep(works[0].clone())]);
    assert_eq!(plan(vec![], &works), [Step::Delete(works[0].clone())]);
    assert_eq!(plan(vec![], &[]), []);
}

#[test]
fn a_changed_object_is_changed_in_its_place_and_one_that_is_no_longer_wanted_goes() {
    let works = done(plan(vec![object("a", 900), object("b", 600), object("c", 300)], &[]));
    let works = done(plan(vec![object("c", 400), object("a", 100)], &works));
    assert_eq!(contents(&works), expected(&[(0, &["a", "c"])]));
    assert_eq!(works[0].spec.workload.manifests[1].value(), object("c", 400));
}

#[test]
fn objects_that_are_too_many_for_one_work_are_spread_big_ones_first_to_where_there_is_most_room() {
    let third = BUDGET / 3;
    let objects = vec![object("a", third + 9), object("b", third + 8), object("c", third + 7), object("d", 300)];
    let works = done(plan(objects, &[]));
    assert_eq!(contents(&works), expected(&[(0, &["a", "b"]), (1, &["c", "d"])]));
}

#[test]
fn an_object_that_fills_more_than_the_budget_has_a_work_of_its_own() {
    let works = done(plan(vec![object("a", 200), object("huge", BUDGET + 1000)], &[]));
    assert_eq!(contents(&works), expected(&[(0, &["huge"]), (1, &["a"])]));
}

#[test]
fn objects_stay_in_their_works_new_ones_fill_the_room_and_an_empty_work_goes() {
    let half = BUDGET / 2 + 60;
    let works = done(plan(vec![object("a", half + 2), object("b", half + 1), object("c", half)], &[]));
    assert_eq!(contents(&works), expected(&[(0, &["a"]), (1, &["b"]), (2, &["c"])]));
    let steps = plan(vec![object("b", half + 1), object("c", half), object("d", 300)], &works);
    assert!(steps.contains(&Step::Keep(works[1].clone())), "b stays as it is");
    let works = done(steps);
    assert_eq!(contents(&works), expected(&[(0, &["d"]), (1, &["b"]), (2, &["c"])]), "an empty work is used again");
    let works = done(plan(vec![object("c", half)], &works));
    assert_eq!(contents(&works), expected(&[(2, &["c"])]));
    let works = done(plan(vec![object("c", half), object("e", half)], &works));
    assert_eq!(contents(&works), expected(&[(2, &["c"]), (1, &["e"])]), "number 2 is taken");
}

#[test]
fn a_name_that_is_taken_is_tried_again_however_many_of_the_works_exist() {
    let half = BUDGET / 2 + 60;
    let objects = || ["a", "b", "c", "d"].map(|name| object(name, half)).to_vec();
    let all = done(plan(objects(), &[]));
    for taken in 0..all.len() {
        let mut written = all.clone();
        written.remove(taken);
        let again = done(plan(objects(), &written));
        let names =
            |works: &[Arc<ManifestWork>]| -> BTreeSet<String> { works.iter().map(|work| work.name_any()).collect() };
        assert_eq!(names(&again), names(&all), "number {taken} is taken");
    }
}

#[test]
fn works_of_other_names_are_left_alone() {
    let mut hook = ManifestWork::new("c1", "addon-hello-pre-delete", Default::default());
    let mut other = ManifestWork::new("c1", "addon-hello-deploy-hosting-c1-0", Default::default());
    for work in [&mut hook, &mut other] {
        work.spec.workload.manifests = vec![object("a", 200).into()];
    }
    let works = done(plan(vec![object("a", 200)], &[Arc::new(hook), Arc::new(other)]));
    assert_eq!(contents(&works), expected(&[(0, &["a"])]));
}

#[test]
fn what_a_work_that_is_being_deleted_holds_waits_its_name_is_taken_and_the_rest_goes_on() {
    let half = BUDGET / 2 + 60;
    let works = done(plan(vec![object("a", half + 1), object("b", half)], &[]));
    let mut deleting = ManifestWork::clone(&works[0]);
    deleting.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let known = [Arc::new(deleting), works[1].clone()];
    let desired = |a: bool| {
        let rest = [object("b", half), object("c", half), object("d", half)];
        [object("a", half + 1)].into_iter().filter(|_| a).chain(rest).collect()
    };
    let steps = plan(desired(true), &known);
    assert!(steps.contains(&Step::Wait(known[0].clone())) && steps.contains(&Step::Keep(works[1].clone())));
    let expected_new = expected(&[(2, &["c"]), (3, &["d"])]);
    assert_eq!(contents(&done(steps))[2..], expected_new);
    let steps = plan(desired(false), &known);
    assert!(!steps.iter().any(|step| matches!(step, Step::Wait(_))), "nothing in it is desired");
    assert_eq!(contents(&done(steps))[1..], expected_new);
}

#[test]
fn labels_and_owners_that_somebody_added_stay_and_what_is_ours_is_restored() {
    let works = done(plan(vec![object("a", 200)], &[]));
    let mut edited = ManifestWork::clone(&works[0]);
    edited.labels_mut().insert("team".into(), "a".into());
    edited.metadata.owner_references.as_mut().unwrap()[0].uid = "former".into();
    edited.spec.workload.manifests.push(object("foreign", 200).into());
    let works = done(plan(vec![object("a", 200)], &[Arc::new(edited)]));
    assert_eq!(works[0].labels().len(), 2);
    assert_eq!(works[0].owner_references().len(), 1);
    assert_eq!(works[0].owner_references()[0].uid, "u");
    assert_eq!(contents(&works), expected(&[(0, &["a"])]));
}

#[test]
fn settings_of_single_objects_are_as_the_api_server_completes_them() {
    let config = json!({"resourceIdentifier": {"group": "", "resource": "configmaps", "name": "a", "namespace": "n"},
        "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"force": true}}});
    let addon = ManagedClusterAddOn::new("c1", "hello", Default::default());
    let template = WorkTemplate::new(&addon, &[serde_json::from_value(config).unwrap()], &[]);
    let mut work = template.empty("w".into());
    template.apply_to(&mut work);
    let config = serde_json::to_value(&work.spec.manifest_configs[0]).unwrap();
    assert_eq!(config["feedbackScrapeType"], "Poll");
    assert_eq!(config["updateStrategy"]["serverSideApply"], json!({"force": true, "fieldManager": "work-agent"}));
}

/// A work on which the cluster's agent has reported.
fn reported(work: &Arc<ManifestWork>, status: &'static str) -> Arc<ManifestWork> {
    let mut work = ManifestWork::clone(work);
    let condition = NewCondition { type_: "Applied", status, reason: "R", message: String::new() };
    work.status.get_or_insert_default().conditions = vec![condition.at(Timestamp::UNIX_EPOCH, None)];
    Arc::new(work)
}

const HALF: usize = MAX_MANIFEST_BYTES / 2;

/// Works 0 and 1 after `b` has outgrown work 0, with the new contents.
fn outgrown(a: usize) -> (Vec<Arc<ManifestWork>>, impl Fn() -> Vec<Value>) {
    let works = done(plan(vec![object("a", HALF - 9000), object("b", 200)], &[]));
    let grown = move || vec![object("a", a), object("b", HALF + 9500)];
    let steps = plan(grown(), &[reported(&works[0], "True")]);
    (done(steps), grown)
}

#[test]
fn an_object_that_outgrows_its_work_is_in_the_new_one_before_it_leaves_the_former_one() {
    let (works, grown) = outgrown(HALF - 9000);
    assert_eq!(contents(&works), expected(&[(0, &["a", "b"]), (1, &["b"])]));
    assert_eq!(works[0].spec.workload.manifests[1].value(), object("b", 200), "the former work is as it was");
    assert!(plan(grown(), &works).iter().all(|step| matches!(step, Step::Keep(_))), "the agent has not seen it yet");
    let applied = [works[0].clone(), reported(&works[1], "True")];
    let moved = done(plan(grown(), &applied));
    assert_eq!(contents(&moved), expected(&[(0, &["a"]), (1, &["b"])]));
    assert!(plan(grown(), &moved).iter().all(|step| matches!(step, Step::Keep(_))));
}

#[test]
fn a_former_work_keeps_an_object_that_could_not_be_applied_in_its_new_one_and_gets_its_other_changes() {
    let (works, grown) = outgrown(HALF - 8000);
    assert_eq!(works[0].spec.workload.manifests[0].value(), object("a", HALF - 9000), "it is not written yet");
    let failed = [works[0].clone(), reported(&works[1], "False")];
    let after = done(plan(grown(), &failed));
    assert_eq!(contents(&after), expected(&[(0, &["a", "b"]), (1, &["b"])]));
    assert_eq!(after[0].spec.workload.manifests[0].value(), object("a", HALF - 8000));
    assert_eq!(after[0].spec.workload.manifests[1].value(), object("b", 200));
}

#[test]
fn an_object_that_was_applied_in_its_new_work_leaves_the_former_one_though_others_there_failed() {
    let (works, grown) = outgrown(HALF - 9000);
    let mut failed = ManifestWork::clone(&reported(&works[1], "False"));
    let condition = NewCondition::is_true("Applied", "R", "").at(Timestamp::UNIX_EPOCH, None);
    let meta = json!({"ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
        "name": "b", "namespace": "n"});
    let manifest = json!({"resourceMeta": meta, "statusFeedback": {}, "conditions": [condition]});
    failed.status.as_mut().unwrap().resource_status.manifests = vec![serde_json::from_value(manifest).unwrap()];
    let moved = done(plan(grown(), &[works[0].clone(), Arc::new(failed)]));
    assert_eq!(contents(&moved)[0], expected(&[(0, &["a"])])[0]);
}

#[test]
fn no_work_is_ever_written_that_is_over_the_limit_and_no_object_is_ever_missing() {
    let size = |work: &ManifestWork| -> usize {
        work.spec.workload.manifests.iter().map(|manifest| manifest.value().to_string().len()).sum()
    };
    let mut known: Vec<Arc<ManifestWork>> = Vec::new();
    for round in 0..21_usize {
        // Each object grows and shrinks in a rhythm of its own.
        let objects: Vec<_> = (0..9_usize)
            .map(|index| object(&format!("o{index}"), 1000 + (round / 3 * (index + 3) * 37_003) % 300_000))
            .collect();
        let steps = plan(objects, &known);
        let before = contents(&known);
        known = done(steps).iter().map(|work| reported(work, if round % 3 == 1 { "True" } else { "False" })).collect();
        assert!(known.iter().all(|work| size(work) <= MAX_MANIFEST_BYTES), "round {round}");
        let after = contents(&known);
        for index in 0..9 {
            let name = format!("o{index}");
            let holders = |works: &[(String, Vec<String>)]| -> Vec<String> {
                works.iter().filter(|(_, names)| names.contains(&name)).map(|(work, _)| work.clone()).collect()
            };
            let (old, new) = (holders(&before), holders(&after));
            assert!(!new.is_empty() && (old.is_empty() || old.iter().any(|work| new.contains(work))), "round {round}");
        }
    }
}

#[test]
fn a_null_in_a_manifest_is_not_written_again() {
    let mut object = object("a", 200);
    let works = done(plan(vec![object.clone()], &[]));
    object["data"]["nothing"] = Value::Null;
    assert_eq!(plan(vec![object], &works), [Step::Keep(works[0].clone())]);
}
