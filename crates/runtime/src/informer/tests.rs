use k8s_openapi::api::core::v1::ConfigMap;

use std::ops::ControlFlow;

use kube::runtime::watcher::Event;

use super::*;

mod reconnect;
mod servers;
mod unreadable;
mod writes;

fn config_map(name: &str, version: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.into());
    object.metadata.namespace = Some("ns".into());
    object.metadata.resource_version = Some(version.into());
    object
}

/// A cache and a record of what a subscriber sees.
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
    cache.take_now(Event::Init);
    for object in objects {
        cache.take_now(Event::InitApply(Ok(object)));
    }
    cache.take_now(Event::InitDone);
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
fn another_content_at_the_same_version_is_a_change() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "1"), config_map("b", "1"), config_map("same", "1")]);
    taken(&seen);
    let other = |name| ConfigMap { data: Some([("k".into(), "v".into())].into()), ..config_map(name, "1") };
    list(&cache, vec![other("a"), config_map("b", "1"), config_map("same", "1")]);
    assert_eq!(taken(&seen), ["updated a"]);
    cache.take_now(Event::Apply(Ok(other("b"))));
    cache.take_now(Event::Apply(Ok(other("b"))));
    assert_eq!(taken(&seen), ["updated b"]);
}

#[test]
fn the_newest_object_is_the_one_with_the_highest_version_that_still_exists() {
    let (cache, _) = watched();
    let newest = |cache: &Cache<ConfigMap>| cache.newest_object().map(|object| (object.key.name, object.version));
    assert_eq!(newest(&cache), None);
    list(&cache, vec![config_map("a", "10"), config_map("b", "9"), config_map("c", "x")]);
    assert_eq!(newest(&cache), Some(("a".into(), 10)));
    let held = cache.newest_object().unwrap();
    assert!(cache.holds(&held));
    cache.take_now(Event::Delete(Ok(config_map("a", "11"))));
    assert!(!cache.holds(&held));
    assert_eq!(newest(&cache), Some(("b".into(), 9)));
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

#[test]
fn what_nobody_reads_is_not_kept() {
    let (cache, _) = watched();
    let mut object = config_map("a", "1");
    object.metadata.managed_fields = Some(Vec::default());
    list(&cache, vec![object.clone()]);
    let key = ObjectKey::new("ns", "a");
    assert_eq!(cache.get(&key).unwrap().metadata.managed_fields, None);
    object.metadata.resource_version = Some("2".into());
    cache.record_write(object);
    let learned = cache.get(&key).unwrap().metadata.clone();
    assert_eq!((learned.resource_version.as_deref(), learned.managed_fields), (Some("2"), None));
}

#[test]
fn a_view_follows_its_cache_and_is_ahead_of_later_subscribers() {
    let (cache, _) = watched();
    list(&cache, vec![config_map("a", "1"), config_map("left-out", "1")]);
    let view = cache.view(|object| {
        let name = object.metadata.name.clone()?;
        (name != "left-out").then(|| object.metadata.resource_version.clone())
    });
    let (seen, reader) = (Arc::new(Mutex::new(Vec::new())), view.clone());
    let log = seen.clone();
    cache.subscribe(move |change| {
        log.lock().unwrap().push(reader.get(&ObjectKey::of(change.object().as_ref())).flatten());
        ControlFlow::Continue(())
    });
    cache.take_now(Event::Apply(Ok(config_map("a", "3"))));
    cache.take_now(Event::Delete(Ok(config_map("a", "4"))));
    assert_eq!(*seen.lock().unwrap(), [Some("1".to_owned()), None, Some("3".to_owned()), None]);
    assert_eq!(view.get(&ObjectKey::new("ns", "a")), None);
}

#[test]
fn a_view_that_nobody_holds_is_let_go() {
    let (cache, _) = watched();
    let inner = Arc::new(());
    let weak = Arc::downgrade(&inner);
    drop(cache.view(move |_| Some(inner.clone())));
    list(&cache, vec![config_map("a", "1")]);
    assert_eq!(weak.strong_count(), 0);
}
