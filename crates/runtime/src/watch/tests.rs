use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

fn config_map(name: &str, version: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.into());
    object.metadata.namespace = Some("ns".into());
    object.metadata.resource_version = Some(version.into());
    object
}

/// A cache and a record of what a subscriber is told.
fn watched() -> (Cache<ConfigMap>, Arc<Mutex<Vec<String>>>) {
    let cache = Cache::default();
    (cache.clone(), record(&cache))
}

fn record(cache: &Cache<ConfigMap>) -> Arc<Mutex<Vec<String>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    cache.subscribe(move |change| {
        let verb = match change {
            Change::Added(_) => "added",
            Change::Updated { .. } => "updated",
            Change::Deleted(_) => "deleted",
        };
        let name = change.object().metadata.name.clone().unwrap();
        log.lock().unwrap().push(format!("{verb} {name}"));
        ControlFlow::Continue(())
    });
    seen
}

fn list(cache: &Cache<ConfigMap>, objects: Vec<ConfigMap>) {
    cache.take(Event::Init, "configmaps");
    for object in objects {
        cache.take(Event::InitApply(Ok(object)), "configmaps");
    }
    cache.take(Event::InitDone, "configmaps");
}

fn taken(seen: &Arc<Mutex<Vec<String>>>) -> Vec<String> {
    std::mem::take(&mut seen.lock().unwrap())
}

#[test]
fn a_late_subscriber_first_sees_what_is_there() {
    let (cache, _) = watched();
    list(&cache, vec![config_map("a", "1"), config_map("b", "2")]);
    let late = record(&cache);
    assert_eq!(taken(&late), ["added a", "added b"]);
    assert!(cache.is_synced());
}

#[test]
fn after_a_gap_the_difference_is_reported_and_nothing_else() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("same", "1"), config_map("changed", "2"), config_map("gone", "3")]);
    taken(&seen);
    list(&cache, vec![config_map("same", "1"), config_map("changed", "5"), config_map("new", "6")]);
    assert_eq!(taken(&seen), ["updated changed", "added new", "deleted gone"]);
}

#[test]
fn what_a_write_returned_is_seen_once_and_older_news_do_not_undo_it() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "1")]);
    taken(&seen);
    cache.learn(config_map("a", "7"));
    cache.take(Event::Apply(Ok(config_map("a", "5"))), "configmaps");
    cache.take(Event::Apply(Ok(config_map("a", "7"))), "configmaps");
    assert_eq!(taken(&seen), ["updated a"]);
    let held = cache.get(&ObjectKey::new("ns", "a")).unwrap();
    assert_eq!(held.metadata.resource_version.as_deref(), Some("7"));
}

#[test]
fn what_a_write_returned_does_not_bring_back_an_object_that_is_gone() {
    let (cache, _) = watched();
    list(&cache, vec![config_map("a", "1")]);
    cache.take(Event::Delete(Ok(config_map("a", "2"))), "configmaps");
    cache.learn(config_map("a", "1"));
    assert!(cache.is_empty());
}

#[test]
fn an_object_that_cannot_be_read_is_left_out_and_the_rest_goes_on() {
    let (cache, seen) = watched();
    cache.take(Event::Init, "configmaps");
    let guard: DeserializeGuard<ConfigMap> =
        serde_json::from_value(serde_json::json!({"metadata": {"name": "bad"}, "data": 1})).unwrap();
    cache.take(Event::InitApply(guard.0.map_err(Box::new)), "configmaps");
    cache.take(Event::InitApply(Ok(config_map("good", "1"))), "configmaps");
    cache.take(Event::InitDone, "configmaps");
    assert_eq!(taken(&seen), ["added good"]);
}

#[test]
fn a_namespace_lists_its_own_objects_only() {
    let (cache, _) = watched();
    let mut other = config_map("x", "9");
    other.metadata.namespace = Some("ns2".into());
    list(&cache, vec![config_map("a", "1"), config_map("b", "2"), other]);
    assert_eq!(cache.in_namespace("ns").len(), 2);
    assert_eq!(cache.in_namespace("n").len(), 0);
}

#[test]
fn what_a_write_created_is_seen_before_the_watch_brings_it() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "1")]);
    taken(&seen);
    cache.learn(config_map("b", "2"));
    cache.take(Event::Apply(Ok(config_map("b", "2"))), "configmaps");
    assert_eq!(taken(&seen), ["added b"]);
}

#[test]
fn what_a_write_removed_is_gone_before_the_watch_tells() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "1")]);
    taken(&seen);
    cache.forget(&config_map("a", "1"));
    cache.take(Event::Apply(Ok(config_map("a", "1"))), "configmaps");
    cache.take(Event::Delete(Ok(config_map("a", "2"))), "configmaps");
    assert_eq!(taken(&seen), ["deleted a"]);
}

#[test]
fn a_subscriber_that_breaks_is_not_called_again() {
    let (cache, _) = watched();
    let calls = Arc::new(Mutex::new(0));
    let count = calls.clone();
    cache.subscribe(move |_| {
        *count.lock().unwrap() += 1;
        ControlFlow::Break(())
    });
    list(&cache, vec![config_map("a", "1"), config_map("b", "2")]);
    assert_eq!(*calls.lock().unwrap(), 1);
}
