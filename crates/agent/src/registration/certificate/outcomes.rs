//! The outcomes of credentials that share one condition.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ocm_runtime::{ObjectKey, conditions::NewCondition};

/// The outcomes of an add-on's certificates, or of its token. A failure of one is reported whatever the outcomes of the others.
/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    refusal: Option<NewCondition>,
    /// By the secret of the credential.
    credentials: BTreeMap<ObjectKey, NewCondition>,
}

impl Outcomes {
    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the outcome for a credential.
    pub(crate) fn record(&self, secret: &ObjectKey, condition: NewCondition) {
        self.lock().credentials.insert(secret.clone(), condition);
    }

    /// Whether the last outcome for a credential was that it is valid.
    pub(crate) fn is_valid(&self, secret: &ObjectKey) -> bool {
        self.lock().credentials.get(secret).is_some_and(|condition| condition.status == "True")
    }

    /// Records the initial state of a credential; `false` if it already has an outcome.
    pub(crate) fn record_initial(&self, secret: &ObjectKey, condition: &NewCondition) -> bool {
        let mut known = self.lock();
        let is_first = !known.credentials.contains_key(secret);
        if is_first {
            known.credentials.insert(secret.clone(), condition.clone());
        }
        is_first
    }

    /// Removes a credential that is no longer desired.
    pub(crate) fn forget(&self, secret: &ObjectKey) {
        self.lock().credentials.remove(secret);
    }

    /// Records why a registration gets no credential; `None` if all get one.
    pub(crate) fn refuse(&self, refusal: Option<NewCondition>) {
        self.lock().refusal = refusal;
    }

    /// Whether nothing is recorded.
    pub(crate) fn is_empty(&self) -> bool {
        let known = self.lock();
        known.refusal.is_none() && known.credentials.is_empty()
    }

    /// The first failure.
    pub(crate) fn failure(&self) -> Option<NewCondition> {
        let known = self.lock();
        known.refusal.iter().chain(known.credentials.values()).find(|condition| condition.status != "True").cloned()
    }

    /// The condition for all of them.
    pub(crate) fn condition(&self) -> Option<NewCondition> {
        self.failure().or_else(|| self.lock().credentials.values().next().cloned())
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
        outcomes.condition().map(|condition| condition.message).unwrap_or_default()
    }

    #[test]
    fn what_went_wrong_is_said_until_it_is_put_right_or_nobody_wants_it_any_more() {
        let outcomes = Outcomes::default();
        assert!(outcomes.is_empty() && outcomes.condition().is_none());
        outcomes.record(&key("a"), well("a is new"));
        outcomes.record(&key("b"), failed("no b"));
        assert_eq!(said(&outcomes), "no b");
        outcomes.refuse(Some(failed("never c")));
        assert_eq!(said(&outcomes), "never c");
        outcomes.record(&key("b"), well("b is new"));
        assert_eq!(said(&outcomes), "never c");
        outcomes.refuse(None);
        assert_eq!(said(&outcomes), "a is new");
        outcomes.record(&key("b"), failed("no b"));
        outcomes.forget(&key("b"));
        assert_eq!(said(&outcomes), "a is new");
    }

    #[test]
    fn how_a_certificate_is_found_counts_only_before_anything_else_came_of_it() {
        let outcomes = Outcomes::default();
        outcomes.record(&key("a"), failed("no a"));
        assert!(!outcomes.record_initial(&key("a"), &well("a is there")));
        assert_eq!(said(&outcomes), "no a");
        assert!(outcomes.record_initial(&key("b"), &well("b is there")));
    }
}
