use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::Event;
use tokio::time::Instant;

use super::*;
use crate::{error::ResultExt as _, informer::Cache};

impl Default for ContinuityCheck {
    fn default() -> Self {
        Self::new(signal::Sender::new(0).subscribe())
    }
}

fn seen(uid: &str, version: u64, text: &str) -> Evidence {
    let json = text.as_bytes().into();
    Evidence { key: ObjectKey::new("ns", "a"), uid: Some(uid.into()), version, json }
}

#[test]
fn the_newest_object_proves_that_the_history_continues_and_a_higher_version_alone_does_not() {
    let held = seen("1", 7, "x");
    let verdict = |version, found| judge(9, Some(&held), &Answer { version, found });
    assert_eq!(verdict(9, Found::Object(held.clone())), Verdict::Continues);
    assert_eq!(verdict(900, Found::Object(held.clone())), Verdict::Continues);
    assert_eq!(verdict(8, Found::Object(held.clone())), Verdict::Differs, "the server has gone back");
    assert_eq!(verdict(900, Found::Object(seen("1", 6, "x"))), Verdict::Differs, "the object has gone back");
    assert_eq!(verdict(900, Found::Object(seen("1", 7, "y"))), Verdict::Differs, "version 7 was another one");
    assert_eq!(verdict(900, Found::Object(seen("1", 8, "y"))), Verdict::IfDelivered);
    assert_eq!(verdict(900, Found::Object(seen("2", 8, "x"))), Verdict::IfDelivered);
    assert_eq!(verdict(900, Found::Absent), Verdict::IfDelivered);
    assert_eq!(verdict(900, Found::Unreadable), Verdict::Continues);
}

/// A kind about which the server gives these answers, the last one again and again: versions, or HTTP codes.
struct Scripted {
    newest: u64,
    held: Option<Evidence>,
    answers: &'static [Result<u64, u16>],
    asked: Arc<AtomicU64>,
    done: Arc<Notify>,
}

impl Scripted {
    fn new(newest: u64, answers: &'static [Result<u64, u16>]) -> Self {
        Self { newest, held: None, answers, asked: Arc::default(), done: Arc::default() }
    }
}

impl Kind for Scripted {
    fn newest(&self) -> u64 {
        self.newest
    }

    fn newest_object(&self) -> Option<Evidence> {
        self.held.clone()
    }

    fn holds(&self, object: &Evidence) -> bool {
        self.held.as_ref() == Some(object)
    }

    fn is_watching(&self) -> bool {
        true
    }

    async fn ask(&self, _: Option<&ObjectKey>) -> Result<Option<Answer>> {
        let time = self.asked.fetch_add(1, Ordering::Relaxed);
        let last = self.answers.len() - 1;
        if time == last as u64 {
            self.done.notify_one();
        }
        match self.answers[last.min(usize::try_from(time).unwrap())] {
            Ok(version) => Ok(Some(Answer { version, found: Found::Absent })),
            Err(code) => {
                let status = kube::core::Status::failure("no", "").with_code(code).boxed();
                Err(kube::Error::Api(status)).while_trying_to("ask", || "a server".into())
            }
        }
    }
}

/// Asks by these kinds for some minutes; how often everything was listed again.
async fn relists(kinds: Vec<Scripted>) -> u64 {
    let (check, context) = (ContinuityCheck::default(), Context::new());
    for kind in kinds {
        check.check_by(&context, kind);
    }
    sleep(PERIOD * 10).await;
    context.stop().await;
    *check.relist.borrow()
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_watch_has_failed_is_asked_soon_and_until_it_answers() {
    let (check, context, start) = (ContinuityCheck::default(), Context::new(), Instant::now());
    let kind = Scripted::new(0, &[Err(500), Err(503), Err(500), Ok(7)]);
    let done = kind.done.clone();
    check.check_by(&context, kind);
    check.check_soon();
    done.notified().await;
    assert!(start.elapsed() <= SOON * 4, "{:?}", start.elapsed());
    context.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_is_left_alone_and_what_goes_back_is_listed_again() {
    assert_eq!(relists(vec![Scripted::new(7, &[Ok(7), Ok(9)])]).await, 0);
    assert_eq!(relists(vec![Scripted::new(7, &[Ok(7), Ok(9), Ok(8)])]).await, 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_without_a_word_from_the_watch_has_everything_listed() {
    let lost = Scripted { held: Some(seen("1", 7, "x")), ..Scripted::new(7, &[Ok(9), Err(403)]) };
    assert_eq!(relists(vec![lost]).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_busy_runtime_is_not_taken_for_a_pause_of_the_process() {
    let (check, context) = (ContinuityCheck::default(), Context::new());
    check.check_by(&context, Scripted::new(1, &[Ok(1)]));
    sleep(SOON / 2).await;
    tokio::time::advance(3 * SOON).await;
    sleep(SOON / 2).await;
    assert_eq!(*check.relist.borrow(), 0);
    context.stop().await;
}

#[tokio::test]
async fn a_pause_of_the_process_makes_a_list_due_once_and_one_before_does_not() {
    let pauses = signal::Sender::new(0);
    let check = ContinuityCheck::new(pauses.subscribe());
    pauses.send_replace(1);
    let mut relists = check.relists();
    assert!(!relists.take());
    pauses.send_replace(2);
    relists.wait().await;
    assert!(relists.take() && !relists.take());
    pauses.send_replace(3);
    check.relist_all();
    assert!(relists.take() && !relists.take(), "one list is enough for both");
}

/// A cache as it is, of which the server is never asked.
struct Held(Cache<ConfigMap>);

impl Kind for Held {
    fn newest(&self) -> u64 {
        self.0.newest()
    }

    fn newest_object(&self) -> Option<Evidence> {
        self.0.newest_object()
    }

    fn holds(&self, object: &Evidence) -> bool {
        self.0.holds(object)
    }

    fn is_watching(&self) -> bool {
        self.0.is_watching()
    }

    async fn ask(&self, _: Option<&ObjectKey>) -> Result<Option<Answer>> {
        Ok(None)
    }
}

fn config_map(name: &str, version: u64) -> ConfigMap {
    let mut object = ConfigMap::default();
    (object.metadata.name, object.metadata.resource_version) = (Some(name.into()), Some(version.to_string()));
    object
}

/// Whether a watch that brings these versions of another object, one every eight seconds, and the end of `a` at version 15,
/// has lost that. The server has answered at version 20.
async fn has_lost_among(versions: &[u64]) -> bool {
    let cache = Cache::default();
    for event in [Event::Init, Event::InitApply(Ok(config_map("a", 7))), Event::InitDone] {
        cache.take_now(event);
    }
    let held = cache.newest_object().unwrap();
    let brings = async {
        for version in versions {
            sleep(Duration::from_secs(8)).await;
            cache.take_now(match version {
                0 => Event::Init,
                15 => Event::Delete(Ok(config_map("a", 15))),
                version => Event::Apply(Ok(config_map("b", *version))),
            });
            if *version == 0 {
                cache.lost_watch();
            }
        }
    };
    let kind = Held(cache.clone());
    tokio::join!(has_lost(&kind, &held, 20), brings).0
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lags_is_not_taken_for_one_that_has_lost_a_change() {
    assert!(!has_lost_among(&[8, 9, 10, 11, 12, 13, 14, 15]).await);
    assert!(!has_lost_among(&[8, 0]).await, "a list follows, which compares everything");
    assert!(has_lost_among(&[8, 9, 21, 22]).await, "it has brought what came later");
    assert!(has_lost_among(&[8, 9]).await, "it brings nothing");
    assert!(has_lost_among(&[]).await, "it brings nothing");
}

#[tokio::test(start_paused = true)]
async fn kinds_that_are_counted_apart_are_not_compared() {
    let kinds = vec![Scripted::new(3, &[Ok(3), Err(403)]), Scripted::new(900, &[Ok(900), Err(404)])];
    assert_eq!(relists(kinds).await, 0);
}

#[tokio::test(start_paused = true)]
async fn where_one_kind_is_refused_another_is_asked_by() {
    let kinds = vec![Scripted::new(3, &[Err(403)]), Scripted::new(3, &[Err(404)]), Scripted::new(3, &[Ok(9), Ok(5)])];
    let asked: Vec<_> = kinds.iter().map(|kind| kind.asked.clone()).collect();
    assert_eq!(relists(kinds).await, 1);
    assert_eq!(asked[0].load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn when_the_one_that_asks_has_ended_another_does() {
    let (check, first, second) = (ContinuityCheck::default(), Context::new(), Context::new());
    check.check_by(&first, Scripted::new(1, &[Ok(1)]));
    let kind = Scripted::new(1, &[Ok(1)]);
    let done = kind.done.clone();
    sleep(PERIOD).await;
    check.check_by(&second, kind);
    first.stop().await;
    done.notified().await;
    second.stop().await;
}
