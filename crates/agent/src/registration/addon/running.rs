//! The certificates that are looked after, by add-on.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ocm_runtime::{Context, ObjectKey, conditions::NewCondition};

use super::target::Target;
use crate::registration::certificate::Outcomes;

/// The certificates that are looked after, by add-on.
#[derive(Debug, Default)]
pub(super) struct Running(Mutex<HashMap<ObjectKey, AddOn>>);

#[derive(Debug, Default)]
struct AddOn {
    certificates: Vec<Certificate>,
    outcomes: Outcomes,
}

#[derive(Debug)]
struct Certificate {
    started: Started,
    context: Context,
}

/// A certificate that was started.
#[derive(Clone, Debug)]
pub(super) struct Started {
    pub(super) target: Target,
    /// `false` when it was stopped since nobody wants it any more, and its secret is still to be deleted. When the whole
    /// agent stops, it stays `true`.
    pub(super) wanted: bool,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, AddOn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known of an add-on, and forgets one of which nothing is known.
    fn change<T>(&self, key: &ObjectKey, change: impl FnOnce(&mut AddOn) -> T) -> T {
        let mut all = self.lock();
        let addon = all.entry(key.clone()).or_default();
        let result = change(addon);
        if addon.certificates.is_empty() && addon.outcomes.is_empty() {
            all.remove(key);
        }
        result
    }

    /// Those of an add-on.
    pub(super) fn started(&self, key: &ObjectKey) -> Vec<Started> {
        let all = self.lock();
        let certificates = all.get(key).into_iter().flat_map(|addon| &addon.certificates);
        certificates.map(|certificate| certificate.started.clone()).collect()
    }

    /// What there is to say of the certificates of an add-on.
    pub(super) fn verdict(&self, key: &ObjectKey) -> Option<NewCondition> {
        self.lock().get(key)?.outcomes.verdict()
    }

    /// Takes in why a registration of an add-on gets no certificate, or that every one does.
    pub(super) fn refuse(&self, key: &ObjectKey, refusal: Option<NewCondition>) {
        self.change(key, |addon| addon.outcomes.refuse(refusal));
    }

    /// Takes in a certificate that starts in this context; what comes of it is to be said there.
    pub(super) fn start(&self, key: &ObjectKey, target: Target, context: Context) -> Outcomes {
        self.change(key, |addon| {
            addon.certificates.push(Certificate { started: Started { target, wanted: true }, context });
            addon.outcomes.clone()
        })
    }

    /// Notes that a certificate is no longer wanted; answers with the context to stop.
    pub(super) fn unwant(&self, key: &ObjectKey, target: &Target) -> Option<Context> {
        self.change(key, |addon| {
            let certificate = addon.certificates.iter_mut().find(|one| one.started.target == *target)?;
            certificate.started.wanted = false;
            Some(certificate.context.clone())
        })
    }

    /// Forgets a certificate whose secret is deleted.
    pub(super) fn forget(&self, key: &ObjectKey, target: &Target) {
        self.change(key, |addon| {
            addon.certificates.retain(|one| one.started.target != *target);
            addon.outcomes.forget(&target.wanted.secret);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registration::{addon::registrations::tests::target, certificate::failed};

    #[test]
    fn nothing_is_kept_of_an_addon_that_has_nothing() {
        let (running, key, target) = (Running::default(), ObjectKey::new("cluster1", "hello"), target("a.io/a"));
        running.refuse(&key, Some(failed("no".into())));
        running.start(&key, target.clone(), Context::new());
        running.refuse(&key, None);
        assert!(running.unwant(&key, &target).is_some());
        assert!(running.started(&key).iter().all(|started| !started.wanted));
        running.forget(&key, &target);
        assert!(running.lock().is_empty());
    }
}
