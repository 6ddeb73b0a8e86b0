//! Objects that cannot be read.

use super::*;

fn unreadable(name: &str, uid: &str) -> Read<ConfigMap> {
    let object = serde_json::json!({"metadata": {"namespace": "ns", "name": name, "uid": uid}, "data": 1});
    serde_json::from_value::<RawObject<false>>(object).unwrap().read()
}

fn readable(name: &str, uid: &str) -> ConfigMap {
    let mut object = config_map(name, "1");
    object.metadata.uid = Some(uid.into());
    object
}

fn list_unreadable(cache: &Cache<ConfigMap>, name: &str, uid: &str) {
    cache.take_now(Event::Init);
    cache.take_now(Event::InitApply(unreadable(name, uid)));
    cache.take_now(Event::InitApply(Ok(readable("good", "2"))));
    cache.take_now(Event::InitDone);
}

#[test]
fn an_object_that_could_never_be_read_is_left_out_and_the_rest_goes_on() {
    let (cache, seen) = watched();
    list_unreadable(&cache, "bad", "1");
    cache.take_now(Event::Apply(unreadable("worse", "3")));
    assert_eq!(taken(&seen), ["added good"]);
}

#[test]
fn an_object_that_cannot_be_read_any_more_stays_as_it_was_until_it_is_gone() {
    let (cache, seen) = watched();
    list(&cache, vec![readable("turns", "1"), readable("good", "2")]);
    taken(&seen);
    cache.take_now(Event::Apply(unreadable("turns", "1")));
    list_unreadable(&cache, "turns", "1");
    assert!(taken(&seen).is_empty());
    cache.take_now(Event::Delete(unreadable("turns", "1")));
    assert_eq!(taken(&seen), ["deleted turns"]);
}

#[test]
fn the_predecessor_of_an_object_that_cannot_be_read_is_gone() {
    let (cache, seen) = watched();
    list(&cache, vec![readable("bad", "1"), readable("good", "2")]);
    taken(&seen);
    list_unreadable(&cache, "bad", "3");
    assert_eq!(taken(&seen), ["deleted bad"]);
}

#[test]
fn what_could_never_be_read_is_known_until_it_is_gone_or_can_be_read() {
    let (cache, _) = watched();
    let left_out = || (cache.left_out_in("n"), cache.left_out_in("ns").map(|key| key.name));
    assert_eq!(left_out(), (None, None));
    list_unreadable(&cache, "bad", "1");
    assert_eq!(left_out(), (None, Some("bad".into())));
    cache.take_now(Event::Apply(Ok(readable("bad", "1"))));
    assert_eq!(left_out(), (None, None));
    cache.take_now(Event::Apply(unreadable("bad", "1")));
    assert_eq!(left_out(), (None, None), "it stays as it was");
    cache.take_now(Event::Apply(unreadable("worse", "3")));
    assert_eq!(left_out(), (None, Some("worse".into())));
    cache.take_now(Event::Delete(unreadable("worse", "3")));
    assert_eq!(left_out(), (None, None));
    cache.take_now(Event::Apply(unreadable("worse", "3")));
    list(&cache, vec![readable("good", "2")]);
    assert_eq!(left_out(), (None, None));
}
