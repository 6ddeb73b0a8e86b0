use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::Event;

use super::*;
use crate::informer::{Cache, ObjectKey};

const ROUNDS: u64 = 2000;

fn config_map(name: &str, version: u64) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.into());
    object.metadata.namespace = Some("ns".into());
    object.metadata.resource_version = Some(version.to_string());
    object
}

fn synced() -> Cache<ConfigMap> {
    let cache = Cache::default();
    cache.take_now(Event::Init);
    cache.take_now(Event::InitDone);
    cache
}

/// Waits for the threads; panics when they wait for each other.
fn joined(threads: Vec<Box<dyn FnOnce() + Send>>) {
    let (done, all) = mpsc::channel();
    let count = threads.len();
    for act in threads {
        let done = done.clone();
        thread::spawn(move || {
            act();
            done.send(()).unwrap();
        });
    }
    for _ in 0..count {
        all.recv_timeout(Duration::from_secs(60)).expect("the threads wait for each other, or one panicked");
    }
}

fn version(object: &ConfigMap) -> u64 {
    object.metadata.resource_version.as_ref().unwrap().parse().unwrap()
}

/// Lets every change of `from` be answered by a read and a write of `to`.
fn answer(from: &Cache<ConfigMap>, to: &Cache<ConfigMap>) {
    let to = to.clone();
    from.subscribe(move |change| {
        let object = change.object();
        let known = to.get(&ObjectKey::of(&**object));
        if object.metadata.name.as_deref() != Some("answer") && known.is_none_or(|known| version(&known) < 10) {
            to.record_write(config_map("answer", version(object)));
        }
        ControlFlow::Continue(())
    });
}

#[test]
fn two_caches_whose_subscribers_use_each_other_do_not_deadlock() {
    let (one, other) = (synced(), synced());
    answer(&one, &other);
    answer(&other, &one);
    answer(&one, &one);
    let writes = |cache: &Cache<ConfigMap>, name: &'static str| -> Box<dyn FnOnce() + Send> {
        let cache = cache.clone();
        Box::new(move || (1..ROUNDS).for_each(|version| cache.record_write(config_map(name, version))))
    };
    joined(vec![writes(&one, "a"), writes(&other, "b"), writes(&one, "c"), writes(&other, "d")]);
    assert!(one.get(&ObjectKey::new("ns", "answer")).is_some() && other.get(&ObjectKey::new("ns", "answer")).is_some());
}

#[test]
fn changes_by_many_threads_are_seen_in_order_each_with_what_was_before() {
    let (cache, last) = (synced(), Arc::new(Mutex::new(BTreeMap::<ObjectKey, u64>::new())));
    let (known, (wrong, wrongs)) = (last.clone(), mpsc::channel());
    cache.subscribe(move |change| {
        let before = match change {
            Change::Added(_) => None,
            Change::Updated { old, .. } => Some(version(old)),
            Change::Deleted(_) => Some(u64::MAX),
        };
        let object = change.object();
        let seen = known.lock().unwrap().insert(ObjectKey::of(&**object), version(object));
        if seen != before || before >= Some(version(object)) {
            wrong.send(format!("after {seen:?} came {change:?}")).unwrap();
        }
        ControlFlow::Continue(())
    });
    let applies = |first: u64| -> Box<dyn FnOnce() + Send> {
        let cache = cache.clone();
        Box::new(move || {
            for version in (first..ROUNDS).step_by(2) {
                cache.take_now(Event::Apply(Ok(config_map("a", version))));
                cache.take_now(Event::Apply(Ok(config_map("b", version))));
            }
        })
    };
    joined(vec![applies(1), applies(2), applies(3)]);
    assert_eq!(wrongs.try_iter().collect::<Vec<_>>(), Vec::<String>::new());
    let last = last.lock().unwrap();
    assert_eq!(last.values().copied().collect::<Vec<_>>(), [ROUNDS - 1; 2]);
}

#[test]
fn who_writes_finds_the_write_in_views_at_once() {
    let cache = synced();
    let view = cache.view(|object| Some(version(object)));
    let writes = |name: &'static str| -> Box<dyn FnOnce() + Send> {
        let (cache, view) = (cache.clone(), view.clone());
        Box::new(move || {
            for version in 1..ROUNDS {
                cache.record_write(config_map(name, version));
                assert_eq!(view.get(&ObjectKey::new("ns", name)), Some(version));
            }
        })
    };
    joined(vec![writes("a"), writes("b"), writes("c")]);
}

#[test]
fn a_subscriber_that_panics_is_called_again_and_keeps_nobody_else_from_changes() {
    let (cache, count) = (synced(), Arc::new(Mutex::new(0)));
    cache.subscribe(|change| match version(change.object()) {
        1 => panic!("this subscriber is to panic"),
        _ => ControlFlow::Continue(()),
    });
    let calls = count.clone();
    cache.subscribe(move |_| {
        *calls.lock().unwrap() += 1;
        ControlFlow::Continue(())
    });
    cache.record_write(config_map("a", 1));
    cache.record_write(config_map("a", 2));
    assert_eq!(*count.lock().unwrap(), 2);
}

#[tokio::test]
async fn other_tasks_run_while_the_changes_of_a_long_list_are_handed_out() {
    let (cache, count) = (synced(), Arc::new(Mutex::new(0)));
    let calls = count.clone();
    cache.subscribe(move |_| {
        *calls.lock().unwrap() += 1;
        ControlFlow::Continue(())
    });
    cache.take(Event::Init, "configmaps").await;
    for number in 0..1000 {
        cache.take(Event::InitApply(Ok(config_map(&format!("a{number}"), 1))), "configmaps").await;
    }
    let other = async { *count.lock().unwrap() };
    let (_, seen) = tokio::join!(cache.take(Event::InitDone, "configmaps"), other);
    assert!((1..1000).contains(&seen), "{seen} of 1000 before another task ran");
    assert_eq!(*count.lock().unwrap(), 1000, "all of them when it returns");
}
