//! What the managed cluster answered about executors, until it may answer otherwise.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{review::Access, subject::ServiceAccount};

/// How long what no work uses is kept.
pub(super) const UNUSED_FOR: Duration = Duration::from_mins(10);
/// How long an answer counts. Rights that do not come from RBAC change without an event.
const VALID_FOR: Duration = Duration::from_hours(1);
/// How long after a change of rights answers are not kept: the API server follows such changes by watches of its own, and may
/// still answer as before. Before an executor is known, changes of its rights are not noticed, so the same holds from then on.
const SETTLES_IN: Duration = Duration::from_secs(10);

/// How long after a change of rights the works concerned are applied: the API server needs a moment to know it too.
const APPLIED_AFTER: Duration = Duration::from_secs(1);
/// How often works are applied while rights keep changing, after the first [`BURST`] times. Each time costs reviews for
/// each object.
const APPLIED_EVERY: Duration = Duration::from_mins(1);
/// How many changes in a row are followed at once.
const BURST: u32 = 10;

/// The answers by executor and namespace of the objects (empty for those without).
#[derive(Debug, Default)]
pub(super) struct Answers {
    known: Mutex<HashMap<Place, Known>>,
}

type Place = (ServiceAccount, String);

/// What is known of one executor in one namespace.
#[derive(Debug)]
struct Known {
    answers: HashMap<Access, Answer>,
    /// The works that it is the executor of, and when they were last applied.
    works: HashMap<String, Instant>,
    /// When its rights last changed, as far as is known.
    changed: Instant,
    /// When the works are, or were, applied because its rights changed.
    due: Option<Instant>,
    /// When all such applications so far would have taken place, one each minute.
    spent: Instant,
}

#[derive(Debug)]
struct Answer {
    /// The first verb that is denied.
    denied: Option<&'static str>,
    asked: Instant,
    used: Instant,
}

impl Known {
    fn new(now: Instant) -> Self {
        Self { answers: HashMap::new(), works: HashMap::new(), changed: now, due: None, spent: now }
    }

    /// Forgets the answers; returns how long to wait before the works are applied, unless that is due already.
    fn invalidate(&mut self, now: Instant) -> Option<Duration> {
        self.answers.clear();
        self.changed = now;
        let earliest = now + APPLIED_AFTER;
        // Many changes come together, as those of a list do.
        if self.due.is_some_and(|due| due >= now + APPLIED_AFTER / 2) {
            return None;
        }
        self.spent = self.spent.max(earliest) + APPLIED_EVERY;
        let due = self.spent.checked_sub(APPLIED_EVERY * BURST).map_or(earliest, |paced| earliest.max(paced));
        self.due = Some(due);
        Some(due - now)
    }
}

impl Answers {
    /// The answer for an object of a work; `None` if it is not known.
    pub(super) fn get(
        &self,
        account: &ServiceAccount,
        access: &Access,
        work: &str,
        now: Instant,
    ) -> Option<Option<&'static str>> {
        let mut all = self.lock();
        let known = all.entry(place(account, access)).or_insert_with(|| Known::new(now));
        known.works.insert(work.to_owned(), now);
        let answer = known.answers.get_mut(access).filter(|answer| now < answer.asked + VALID_FOR)?;
        answer.used = now;
        Some(answer.denied)
    }

    /// Keeps an answer to what was asked at `asked`, unless rights have changed since, or shortly before.
    pub(super) fn insert(
        &self,
        account: &ServiceAccount,
        access: &Access,
        denied: Option<&'static str>,
        asked: Instant,
    ) {
        let mut all = self.lock();
        let Some(known) = all.get_mut(&place(account, access)) else { return };
        if known.changed + SETTLES_IN <= asked {
            known.answers.insert(access.clone(), Answer { denied, asked, used: asked });
        }
    }

    /// Forgets the answers about executors and namespaces in which rights have changed; returns the works to apply again, and after
    /// how long.
    pub(super) fn invalidate(
        &self,
        concerns: impl Fn(&ServiceAccount, &str) -> bool,
        now: Instant,
    ) -> BTreeMap<String, Duration> {
        let mut works = BTreeMap::new();
        for ((account, namespace), known) in self.lock().iter_mut() {
            if !concerns(account, namespace) {
                continue;
            }
            let Some(wait) = known.invalidate(now) else { continue };
            for work in known.works.keys() {
                let soonest = works.entry(work.clone()).or_insert(wait);
                *soonest = wait.min(*soonest);
            }
        }
        works
    }

    /// Drops what no work has used for a while; returns whether nothing is left.
    pub(super) fn sweep(&self, now: Instant) -> bool {
        let is_used = |used: Instant| now < used + UNUSED_FOR;
        let mut all = self.lock();
        all.retain(|_, known| {
            known.answers.retain(|_, answer| is_used(answer.used));
            known.works.retain(|_, applied| is_used(*applied));
            !known.works.is_empty()
        });
        all.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Place, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(account: &ServiceAccount, access: &Access) -> Place {
    (account.clone(), access.namespace.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> ServiceAccount {
        ServiceAccount { namespace: "team".into(), name: name.into() }
    }

    fn access(name: &str, deletes: bool) -> Access {
        Access {
            group: String::new(),
            version: "v1".into(),
            resource: "configmaps".into(),
            namespace: "ns".into(),
            name: name.into(),
            deletes,
        }
    }

    /// Answers in which work `w` of account `a` was allowed to apply object `o`.
    fn answers(now: Instant) -> Answers {
        let answers = Answers::default();
        let known_since = now.checked_sub(SETTLES_IN).unwrap();
        for name in ["a", "b"] {
            assert_eq!(answers.get(&account(name), &access("o", true), "w", known_since), None);
        }
        answers.insert(&account("a"), &access("o", true), None, now);
        answers
    }

    fn get(answers: &Answers, now: Instant) -> Option<Option<&'static str>> {
        answers.get(&account("a"), &access("o", true), "w", now)
    }

    #[tokio::test]
    async fn an_answer_counts_for_one_executor_and_object_with_or_without_its_deletion() {
        let now = Instant::now();
        let answers = answers(now);
        assert_eq!(get(&answers, now), Some(None));
        assert_eq!(answers.get(&account("b"), &access("o", true), "w", now), None);
        assert_eq!(answers.get(&account("a"), &access("p", true), "w", now), None);
        assert_eq!(answers.get(&account("a"), &access("o", false), "w", now), None);
        answers.insert(&account("a"), &access("p", true), Some("get"), now);
        assert_eq!(answers.get(&account("a"), &access("p", true), "w", now), Some(Some("get")));
    }

    #[tokio::test]
    async fn a_change_of_rights_concerns_the_works_of_these_executors_and_their_answers_are_forgotten() {
        let now = Instant::now();
        let answers = answers(now);
        let invalidate = |name: &str| answers.invalidate(|account, _| account.name == name, now);
        let works = BTreeMap::from([("w".to_owned(), APPLIED_AFTER)]);
        assert_eq!(invalidate("c"), BTreeMap::new());
        assert_eq!(invalidate("b"), works);
        assert_eq!(get(&answers, now), Some(None));
        assert_eq!(invalidate("a"), works);
        assert_eq!(get(&answers, now), None);
    }

    #[tokio::test]
    async fn changes_of_rights_that_come_together_are_followed_once() {
        let now = Instant::now();
        let answers = answers(now);
        let applied = |after: Duration| !answers.invalidate(|_, _| true, now + after).is_empty();
        let changes: Vec<_> = (0..300).map(|millis| applied(Duration::from_millis(millis))).collect();
        assert_eq!(changes.iter().filter(|is_applied| **is_applied).count(), 1);
        assert!(applied(APPLIED_AFTER));
    }

    #[tokio::test]
    async fn what_was_asked_before_or_shortly_after_a_change_of_rights_is_not_kept() {
        let now = Instant::now();
        let answers = answers(now);
        answers.invalidate(|_, _| true, now);
        for asked in [now, now.checked_sub(Duration::from_secs(1)).unwrap(), now + SETTLES_IN / 2] {
            answers.insert(&account("a"), &access("o", true), None, asked);
            assert_eq!(get(&answers, now + SETTLES_IN), None);
        }
        answers.insert(&account("a"), &access("o", true), None, now + SETTLES_IN);
        assert_eq!(get(&answers, now + SETTLES_IN), Some(None));
    }

    #[tokio::test]
    async fn the_first_answer_about_an_executor_is_not_kept() {
        let (answers, now) = (Answers::default(), Instant::now());
        for (asked, kept) in [(now, None), (now + SETTLES_IN, Some(None))] {
            assert_eq!(get(&answers, asked), None);
            answers.insert(&account("a"), &access("o", true), None, asked);
            assert_eq!(get(&answers, asked), kept);
        }
    }

    #[tokio::test]
    async fn an_answer_counts_for_an_hour_however_often_it_is_used() {
        let now = Instant::now();
        let answers = answers(now);
        let almost = now + VALID_FOR - Duration::from_secs(1);
        assert_eq!(get(&answers, almost), Some(None));
        assert_eq!(get(&answers, now + VALID_FOR), None);
    }

    #[tokio::test]
    async fn what_no_work_uses_is_dropped_after_ten_minutes() {
        let now = Instant::now();
        let answers = answers(now);
        let (early, late) = (now + UNUSED_FOR / 2, now + UNUSED_FOR);
        assert_eq!(get(&answers, early), Some(None));
        assert!(!answers.sweep(late));
        assert_eq!(get(&answers, late), Some(None), "it was used since");
        assert!(answers.sweep(late + UNUSED_FOR));
    }

    #[tokio::test]
    async fn a_change_of_rights_in_a_namespace_concerns_the_answers_and_works_there() {
        let now = Instant::now();
        let answers = answers(now);
        let there = Access { namespace: "shop".into(), ..access("o", true) };
        assert_eq!(answers.get(&account("a"), &there, "x", now), None);
        let shop = |_: &ServiceAccount, namespace: &str| namespace == "shop";
        assert_eq!(answers.invalidate(shop, now).into_keys().collect::<Vec<_>>(), ["x"]);
        assert_eq!(get(&answers, now), Some(None));
        answers.insert(&account("a"), &access("p", true), None, now + SETTLES_IN / 2);
        assert_eq!(
            answers.get(&account("a"), &access("p", true), "w", now),
            Some(None),
            "rights here have not changed"
        );
    }

    /// Each application costs five reviews of each object.
    #[tokio::test]
    async fn works_are_applied_soon_after_each_of_some_changes_of_rights_and_then_once_a_minute_however_often_they_change()
     {
        let start = Instant::now();
        let (answers, change) = (answers(start), Duration::from_millis(300));
        let flaps = (0..2000).map(|index| start + change * index);
        let due = flaps.filter_map(|now| {
            let works = answers.invalidate(|account, _| account.name == "a", now);
            works.get("w").map(|wait| (now + *wait - start).as_secs())
        });
        let due: Vec<_> = due.collect();
        let (burst, paced) = due.split_at(BURST as usize);
        assert!(burst.iter().all(|due| *due < 15), "{burst:?}");
        assert_eq!(paced, [61, 121, 181, 241, 301, 361, 421, 481, 541, 601]);
        let quiet = start + Duration::from_hours(1);
        assert_eq!(
            answers.invalidate(|_, _| true, quiet)["w"],
            APPLIED_AFTER,
            "a change after a while is followed soon"
        );
    }
}
