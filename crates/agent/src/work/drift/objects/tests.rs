use serde_json::{Value, json};

use super::*;
use crate::work::{drift::Compared, ownership::Ownership, ownership::tests::owner};

const MANIFEST: [u8; 32] = [1; 32];

/// An object `a` of work `w`, and its watch.
struct World {
    objects: AppliedObjects,
    queue: Queue<String>,
    clock: Clock,
    scope: Scope,
}

fn recorded(name: &str) -> AppliedManifestResourceMeta {
    serde_json::from_value(json!({"version": "v1", "resource": "configmaps", "name": name, "namespace": "ns"})).unwrap()
}

fn id(name: &str) -> ResourceIdentifier {
    identifier::of_recorded(&recorded(name))
}

fn object(version: u64, data: &str) -> DynamicObject {
    let writer = json!({"manager": data, "operation": "Update", "time": "2026-01-01T00:00:00Z",
        "fieldsV1": {"f:data": {"f:a": {}}}});
    let status = json!({"manager": "kcm", "operation": "Update", "subresource": "status",
        "time": "2026-01-01T00:00:01Z", "fieldsV1": {}});
    let metadata = json!({"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": version.to_string(),
        "ownerReferences": [owner("hub-w", "1")], "managedFields": [writer, status]});
    serde_json::from_value(json!({"metadata": metadata, "data": {"a": data}})).unwrap()
}

fn compared() -> Compared {
    let owned = Ownership::Owned(owner("hub-w", "1"));
    Compared { demands: super::super::Demands::of(&ObjectMeta::default(), &owned), body: true }
}

impl World {
    fn new() -> Self {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let objects = AppliedObjects::new(clock.clone(), Damping::default());
        let queue = Queue::default();
        objects.notify(queue.clone());
        let kind = Kind { group: String::new(), resource: "configmaps".into() };
        Self { objects, queue, clock, scope: Scope { kind, version: "v1".into(), namespace: None } }
    }

    /// After the object was written at version 10, and recorded.
    fn applied() -> Self {
        let world = Self::new();
        world.write(10);
        world.record(&["a"]);
        world
    }

    fn write(&self, version: u64) {
        self.objects.insert(&id("a"), Baseline::new(MANIFEST, compared(), &object(version, "ours")));
    }

    fn assess(&self, manifest: [u8; 32], found: &DynamicObject) -> Assessment {
        self.objects.assess(&id("a"), (&object(0, "ours"), manifest), found)
    }

    fn record(&self, names: &[&str]) {
        self.objects.recorded("w", &[], &names.iter().map(|name| recorded(name)).collect::<Vec<_>>());
    }

    /// A complete list that has this object.
    fn list(&self, object: &DynamicObject) -> Epoch {
        let epoch = self.objects.begin();
        self.saw(epoch, object);
        self.objects.listed(epoch, &self.scope);
        epoch
    }

    fn saw(&self, epoch: Epoch, object: &DynamicObject) {
        self.objects.saw(epoch, &id("a"), &object.metadata);
    }

    fn is_covered(&self) -> bool {
        self.objects.covered(&id("a"), MANIFEST).is_some()
    }

    /// The works that were put into the queue, now or in the next moments.
    async fn queued(&self) -> Vec<String> {
        let mut works = Vec::new();
        let soon = std::time::Duration::from_millis(100);
        while let Ok(work) = tokio::time::timeout(soon, self.queue.next()).await {
            self.queue.done(&work);
            works.push(work);
        }
        works
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_as_it_was_left_needs_no_request_while_its_watch_is_live() {
    let world = World::applied();
    assert!(!world.is_covered(), "nothing was seen yet");
    let epoch = world.list(&object(10, "ours"));
    assert!(world.is_covered());
    assert!(world.objects.covered(&id("a"), [2; 32]).is_none(), "another manifest");
    assert_eq!(world.objects.covered(&id("a"), MANIFEST).unwrap().uid.as_deref(), Some("1"));
    world.saw(epoch, &object(11, "ours"));
    assert!(world.is_covered(), "its status has changed");
    world.objects.lost(epoch);
    assert!(!world.is_covered());
    assert_eq!(world.queued().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_change_by_others_puts_the_works_of_the_object_into_the_queue() {
    let world = World::applied();
    let epoch = world.list(&object(10, "ours"));
    world.saw(epoch, &object(11, "theirs"));
    assert!(!world.is_covered());
    assert_eq!(world.queued().await, ["w"]);
    assert_eq!(world.assess(MANIFEST, &object(11, "theirs")), Assessment::Write);
    world.write(12);
    assert!(world.is_covered(), "the object was tracked when it was written");
    world.saw(epoch, &object(11, "theirs"));
    world.saw(epoch, &object(12, "ours"));
    assert!(world.is_covered() && world.queued().await.is_empty(), "what the watch brings late is known");
    world.objects.gone(epoch, &id("a"), &object(13, "ours").metadata);
    assert_eq!(world.queued().await, ["w"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_comes_between_a_write_and_its_response_is_not_missed() {
    let world = World::applied();
    let epoch = world.list(&object(10, "ours"));
    world.saw(epoch, &object(12, "theirs"));
    world.queued().await;
    world.write(11);
    assert!(!world.is_covered());
    assert_eq!(world.queued().await, ["w"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_before_the_object_was_recorded_is_repaired_when_it_is() {
    let world = World::new();
    let epoch = world.list(&object(10, "ours"));
    world.write(10);
    assert!(!world.is_covered(), "the list was before the write");
    world.saw(epoch, &object(11, "theirs"));
    assert!(world.queued().await.is_empty());
    world.record(&["a"]);
    assert_eq!(world.queued().await, ["w"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_list_lacks_is_requested() {
    let world = World::applied();
    let epoch = world.objects.begin();
    world.objects.listed(epoch, &world.scope);
    assert!(!world.is_covered());
    assert_eq!(world.queued().await, ["w"]);
    assert_eq!(world.assess(MANIFEST, &object(10, "ours")), Assessment::Keep);
    assert!(world.is_covered(), "it was created while the list was made");
}

#[tokio::test(start_paused = true)]
async fn a_list_of_another_history_of_the_server_counts_whatever_its_versions() {
    let world = World::applied();
    let former = world.list(&object(10, "ours"));
    world.objects.lost(former);
    world.list(&object(5, "theirs"));
    assert!(!world.is_covered(), "nothing is known but that it is another version");
    assert_eq!(world.assess(MANIFEST, &object(5, "theirs")), Assessment::Write);
    world.write(6);
    assert!(world.is_covered());
}

#[tokio::test(start_paused = true)]
async fn what_no_record_lists_any_more_is_forgotten() {
    let world = World::applied();
    let epoch = world.list(&object(10, "ours"));
    assert_eq!(world.objects.usage().len(), 1);
    world.objects.recorded("other", &[], &[recorded("a")]);
    world.objects.recorded("w", &[recorded("a")], &[]);
    assert!(world.is_covered(), "another work lists it");
    world.objects.recorded("other", &[recorded("a")], &[]);
    assert!(world.objects.usage().is_empty() && !world.objects.contains(&id("a")));
    world.saw(epoch, &object(11, "theirs"));
    assert!(world.queued().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_deleted_with_its_work_is_no_drift() {
    let world = World::applied();
    let epoch = world.list(&object(10, "ours"));
    world.objects.remove(&id("a"));
    world.objects.gone(epoch, &id("a"), &object(11, "ours").metadata);
    assert!(world.queued().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_others_keep_changing_is_left_alone_for_a_while() {
    let world = World::applied();
    let epoch = world.list(&object(10, "ours"));
    let mut version = 10;
    let mut repairs = 0;
    loop {
        world.saw(epoch, &object(version + 1, "theirs"));
        if world.assess(MANIFEST, &object(version + 1, "theirs")) == Assessment::Hold {
            break;
        }
        world.write(version + 2);
        (version, repairs) = (version + 2, repairs + 1);
    }
    assert_eq!(repairs, 5);
    world.queued().await;
    let after = |seconds| Timestamp::from_second(seconds).unwrap();
    world.clock.set(after(10));
    assert_eq!(world.assess(MANIFEST, &object(version + 1, "theirs")), Assessment::Write);
    assert_eq!(world.assess(MANIFEST, &object(version + 1, "theirs")), Assessment::Write, "the write has failed");
    world.write(version + 2);
    assert_eq!(world.assess(MANIFEST, &object(version + 3, "theirs")), Assessment::Hold);
    let new_manifest = world.assess([2; 32], &object(version + 1, "theirs"));
    assert_eq!(new_manifest, Assessment::Write, "an edit of the work does not wait");
}

#[tokio::test(start_paused = true)]
async fn an_object_without_works_or_without_a_manifest_is_not_watched() {
    let world = World::new();
    world.record(&["b"]);
    assert!(world.objects.usage().is_empty(), "it is listed, and was never applied by this agent");
    world.write(10);
    assert!(world.objects.usage().is_empty(), "it was applied, and no record lists it yet");
}

#[test]
fn what_is_kept_of_an_object_is_small() {
    assert!(size_of::<Tracked>() <= 400, "{}", size_of::<Tracked>());
    let labels: Value =
        (0..5).map(|n| (format!("label-{n}"), json!("value"))).collect::<serde_json::Map<_, _>>().into();
    let seen = Seen::of(&serde_json::from_value(json!({"labels": labels})).unwrap());
    assert_eq!(seen.facts, seen.clone().deleted().facts);
}

#[tokio::test(start_paused = true)]
async fn what_is_repaired_is_reported_first_and_when_it_begins_to_be_delayed() {
    let world = World::applied();
    let (sender, mut repairs) = mpsc::channel(100);
    world.objects.report(sender);
    let epoch = world.list(&object(10, "ours"));
    assert_eq!(world.assess(MANIFEST, &object(11, "ours")), Assessment::Keep);
    for version in [12, 14, 16, 18, 20] {
        assert_eq!(world.objects.contest(&id("a")), None);
        world.saw(epoch, &object(version, "theirs"));
        assert_eq!(world.assess(MANIFEST, &object(version, "theirs")), Assessment::Write);
        world.write(version + 1);
    }
    let mut reported = Vec::new();
    while let Ok(repair) = repairs.try_recv() {
        assert_eq!(repair.cause.as_deref(), Some(".data.a (by theirs)"));
        reported.push((repair.is_news, repair.is_contested));
    }
    assert_eq!(reported, [(true, false), (false, false), (false, false), (false, false), (true, true)]);
    assert!(world.objects.contest(&id("a")).unwrap().contains(".data.a (by theirs)"));
    world.clock.set(Timestamp::from_second(3600).unwrap());
    assert_eq!(world.objects.contest(&id("a")), None, "they have stopped");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_only_looked_different_or_whose_manifest_changed_is_no_repair() {
    let world = World::applied();
    let (sender, mut repairs) = mpsc::channel(100);
    world.objects.report(sender);
    assert_eq!(world.assess(MANIFEST, &object(11, "theirs")), Assessment::Write);
    world.write(11);
    assert_eq!(world.assess([2; 32], &object(12, "theirs")), Assessment::Write);
    world.objects.insert(&id("a"), Baseline::new([2; 32], compared(), &object(13, "new")));
    assert!(repairs.try_recv().is_err());
}
