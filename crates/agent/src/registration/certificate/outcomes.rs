//! What is known of the certificates that share one condition.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ocm_runtime::{ObjectKey, conditions::NewCondition};

/// What is known of the certificates of an add-on. What went wrong with any of them is said, whatever became of the
/// others. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    refusal: Option<NewCondition>,
    /// By the secret that holds the certificate.
    certificates: BTreeMap<ObjectKey, NewCondition>,
}

impl Outcomes {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what came of a certificate.
    pub(super) fn learn(&self, secret: &ObjectKey, finding: NewCondition) {
        self.lock().certificates.insert(secret.clone(), finding);
    }

    /// Takes in how a certificate was found; `false` when something came of it before.
    pub(super) fn learn_first(&self, secret: &ObjectKey, finding: &NewCondition) -> bool {
        let mut known = self.lock();
        let is_first = !known.certificates.contains_key(secret);
        if is_first {
            known.certificates.insert(secret.clone(), finding.clone());
        }
        is_first
    }

    /// Forgets a certificate that nobody wants any more.
    pub(crate) fn forget(&self, secret: &ObjectKey) {
        self.lock().certificates.remove(secret);
    }

    /// Takes in why some certificate is refused, or that none is any more.
    pub(crate) fn refuse(&self, refusal: Option<NewCondition>) {
        self.lock().refusal = refusal;
    }

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        let known = self.lock();
        known.refusal.is_none() && known.certificates.is_empty()
    }

    /// What went wrong with one of them.
    pub(super) fn failure(&self) -> Option<NewCondition> {
        let known = self.lock();
        known.refusal.iter().chain(known.certificates.values()).find(|finding| finding.status != "True").cloned()
    }

    /// What there is to say of all of them.
    pub(crate) fn verdict(&self) -> Option<NewCondition> {
        self.failure().or_else(|| self.lock().certificates.values().next().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("default", name)
    }

    fn well(message: &str) -> NewCondition {
        NewCondition::is_true("x", "x", message)
    }

    fn failed(message: &str) -> NewCondition {
        NewCondition::is_false("x", "x", message)
    }

    fn said(outcomes: &Outcomes) -> String {
        outcomes.verdict().map(|finding| finding.message).unwrap_or_default()
    }

    #[test]
    fn what_went_wrong_is_said_until_it_is_put_right_or_nobody_wants_it_any_more() {
        let outcomes = Outcomes::default();
        assert!(outcomes.is_empty() && outcomes.verdict().is_none());
        outcomes.learn(&key("a"), well("a is new"));
        outcomes.learn(&key("b"), failed("no b"));
        assert_eq!(said(&outcomes), "no b");
        outcomes.refuse(Some(failed("never c")));
        assert_eq!(said(&outcomes), "never c");
        outcomes.learn(&key("b"), well("b is new"));
        assert_eq!(said(&outcomes), "never c");
        outcomes.refuse(None);
        assert_eq!(said(&outcomes), "a is new");
        outcomes.learn(&key("b"), failed("no b"));
        outcomes.forget(&key("b"));
        assert_eq!(said(&outcomes), "a is new");
    }

    #[test]
    fn how_a_certificate_is_found_counts_only_before_anything_else_came_of_it() {
        let outcomes = Outcomes::default();
        outcomes.learn(&key("a"), failed("no a"));
        assert!(!outcomes.learn_first(&key("a"), &well("a is there")));
        assert_eq!(said(&outcomes), "no a");
        assert!(outcomes.learn_first(&key("b"), &well("b is there")));
    }
}
