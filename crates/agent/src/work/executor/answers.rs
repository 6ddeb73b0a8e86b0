//! What the managed cluster answered about executors, until it may answer otherwise.

use std::{
    collections::HashMap,
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

/// The answers by executor.
#[derive(Debug, Default)]
pub(super) struct Answers {
    known: Mutex<HashMap<ServiceAccount, Known>>,
}

/// What is known of one executor.
#[derive(Debug)]
struct Known {
    answers: HashMap<Access, Answer>,
    /// The works that it is the executor of, and when they were last applied.
    works: HashMap<String, Instant>,
    /// When its rights last changed, as far as is known.
    changed: Instant,
}

#[derive(Debug)]
struct Answer {
    /// The first verb that is denied.
    denied: Option<&'static str>,
    asked: Instant,
    used: Instant,
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
        let new = || Known { answers: HashMap::new(), works: HashMap::new(), changed: now };
        let known = all.entry(account.clone()).or_insert_with(new);
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
        let Some(known) = all.get_mut(account) else { return };
        if known.changed + SETTLES_IN <= asked {
            known.answers.insert(access.clone(), Answer { denied, asked, used: asked });
        }
    }

    /// Forgets the answers about executors whose rights have changed; returns their works.
    pub(super) fn invalidate(&self, concerns: impl Fn(&ServiceAccount) -> bool, now: Instant) -> Vec<String> {
        let mut all = self.lock();
        let concerned = all.iter_mut().filter(|(account, _)| concerns(account));
        let works = concerned.flat_map(|(_, known)| {
            known.answers.clear();
            known.changed = now;
            known.works.keys().cloned().collect::<Vec<_>>()
        });
        works.collect()
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

    fn lock(&self) -> MutexGuard<'_, HashMap<ServiceAccount, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        assert_eq!(answers.invalidate(|account| account.name == "c", now), [""; 0]);
        assert_eq!(answers.invalidate(|account| account.name == "b", now), ["w"]);
        assert_eq!(get(&answers, now), Some(None));
        assert_eq!(answers.invalidate(|account| account.name == "a", now), ["w"]);
        assert_eq!(get(&answers, now), None);
    }

    #[tokio::test]
    async fn what_was_asked_before_or_shortly_after_a_change_of_rights_is_not_kept() {
        let now = Instant::now();
        let answers = answers(now);
        answers.invalidate(|_| true, now);
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
}
