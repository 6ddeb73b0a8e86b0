//! How writes are recorded in a cache, before the watch reports them.

use super::*;

/// A config map that is one of several of its name.
fn one_of(name: &str, uid: &str, version: &str) -> ConfigMap {
    let mut object = config_map(name, version);
    object.metadata.uid = Some(uid.into());
    object
}

/// The version of the object of that name.
fn held(cache: &Cache<ConfigMap>, name: &str) -> Option<String> {
    cache.get(&ObjectKey::new("ns", name))?.metadata.resource_version.clone()
}

#[test]
fn what_a_write_returned_is_seen_once_and_older_events_do_not_undo_it() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "1")]);
    taken(&seen);
    cache.record_write(config_map("a", "7"));
    cache.take_now(Event::Apply(Ok(config_map("a", "5"))));
    cache.take_now(Event::Apply(Ok(config_map("a", "7"))));
    assert_eq!(taken(&seen), ["updated a"]);
    assert_eq!(held(&cache, "a").as_deref(), Some("7"));
}

#[test]
fn what_a_write_returned_does_not_bring_back_an_object_that_is_gone() {
    let (cache, _) = watched();
    list(&cache, vec![config_map("a", "1")]);
    cache.take_now(Event::Delete(Ok(config_map("a", "2"))));
    cache.record_write(config_map("a", "1"));
    assert!(cache.is_empty());
}

#[test]
fn what_a_write_created_is_seen_before_the_watch_brings_it() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "1")]);
    taken(&seen);
    cache.record_write(config_map("b", "2"));
    cache.take_now(Event::Apply(Ok(config_map("b", "2"))));
    assert_eq!(taken(&seen), ["added b"]);
}

#[test]
fn what_a_write_removed_is_gone_before_the_watch_brings_the_deletion() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "1")]);
    taken(&seen);
    cache.record_delete(&config_map("a", "1"));
    cache.take_now(Event::Apply(Ok(config_map("a", "1"))));
    cache.take_now(Event::Delete(Ok(config_map("a", "2"))));
    assert_eq!(taken(&seen), ["deleted a"]);
}

#[test]
fn the_end_of_an_object_is_not_that_of_its_successor() {
    let (cache, seen) = watched();
    list(&cache, vec![one_of("a", "first", "1")]);
    cache.record_delete(&one_of("a", "first", "1"));
    cache.record_write(one_of("a", "second", "3"));
    taken(&seen);
    cache.take_now(Event::Delete(Ok(one_of("a", "first", "2"))));
    cache.take_now(Event::Apply(Ok(one_of("a", "second", "3"))));
    assert!(taken(&seen).is_empty());
    assert_eq!(held(&cache, "a").as_deref(), Some("3"));
}

#[test]
fn a_list_does_not_undo_what_was_written_meanwhile() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("patched", "1"), config_map("removed", "2")]);
    taken(&seen);
    cache.take_now(Event::Init);
    cache.take_now(Event::InitApply(Ok(config_map("patched", "1"))));
    cache.take_now(Event::InitApply(Ok(config_map("removed", "2"))));
    cache.record_write(config_map("patched", "5"));
    cache.record_write(config_map("created", "6"));
    cache.record_delete(&config_map("removed", "2"));
    assert_eq!(taken(&seen), ["updated patched", "added created", "deleted removed"]);
    cache.take_now(Event::InitDone);
    cache.take_now(Event::Apply(Ok(config_map("created", "6"))));
    cache.take_now(Event::Delete(Ok(config_map("removed", "7"))));
    assert!(taken(&seen).is_empty());
    assert_eq!(["patched", "created", "removed"].map(|name| held(&cache, name)), {
        [Some("5".to_owned()), Some("6".to_owned()), None]
    });
}

#[test]
fn an_object_that_was_deleted_after_a_write_does_not_come_back_with_a_list() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "5")]);
    taken(&seen);
    cache.take_now(Event::Init);
    cache.record_write(config_map("a", "10"));
    cache.take_now(Event::InitDone);
    assert_eq!(taken(&seen), ["updated a", "deleted a"]);
    assert_eq!(held(&cache, "a"), None);
}

#[test]
fn a_list_counts_where_it_is_newer_than_what_was_written_before() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "1"), config_map("gone", "2")]);
    cache.record_write(config_map("a", "3"));
    cache.record_write(config_map("gone", "4"));
    taken(&seen);
    list(&cache, vec![config_map("a", "5")]);
    assert_eq!(taken(&seen), ["updated a", "deleted gone"]);
}

#[test]
fn where_versions_are_not_numbers_whatever_comes_later_counts() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "x")]);
    cache.take_now(Event::Apply(Ok(config_map("a", "b"))));
    assert_eq!(taken(&seen), ["added a", "updated a"]);
}
