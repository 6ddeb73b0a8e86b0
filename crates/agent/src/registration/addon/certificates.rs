//! The certificates certificate controllers, by add-on.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ocm_runtime::{Context, ObjectKey, conditions::NewCondition};

use super::target::Target;
use crate::registration::certificate::Outcomes;

/// The certificates certificate controllers, by add-on.
#[derive(Debug, Default)]
pub(super) struct CertificateSet(Mutex<HashMap<ObjectKey, AddOn>>);

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

/// A certificate whose controller was started.
#[derive(Clone, Debug)]
pub(super) struct Started {
    pub(super) target: Target,
    /// `false` if its controller was stopped because the registration was removed, and its secret must still be deleted.
    /// It stays `true` when the agent stops.
    pub(super) desired: bool,
}

impl CertificateSet {
    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, AddOn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the entry of an add-on, and removes an empty one.
    fn change<T>(&self, key: &ObjectKey, change: impl FnOnce(&mut AddOn) -> T) -> T {
        let mut all = self.lock();
        let addon = all.entry(key.clone()).or_default();
        let result = change(addon);
        if addon.certificates.is_empty() && addon.outcomes.is_empty() {
            all.remove(key);
        }
        result
    }

    /// The certificates of an add-on.
    pub(super) fn started(&self, key: &ObjectKey) -> Vec<Started> {
        let all = self.lock();
        let certificates = all.get(key).into_iter().flat_map(|addon| &addon.certificates);
        certificates.map(|certificate| certificate.started.clone()).collect()
    }

    /// The condition for all certificates of an add-on.
    pub(super) fn condition(&self, key: &ObjectKey) -> Option<NewCondition> {
        self.lock().get(key)?.outcomes.condition()
    }

    /// Records why a registration of an add-on gets no certificate; `None` if all get one.
    pub(super) fn refuse(&self, key: &ObjectKey, refusal: Option<NewCondition>) {
        self.change(key, |addon| addon.outcomes.refuse(refusal));
    }

    /// Adds a certificate whose controller runs in this context, and returns where it records its outcome.
    pub(super) fn start(&self, key: &ObjectKey, target: Target, context: Context) -> Outcomes {
        self.change(key, |addon| {
            addon.certificates.push(Certificate { started: Started { target, desired: true }, context });
            addon.outcomes.clone()
        })
    }

    /// Marks a certificate as removed, and returns the context to stop.
    pub(super) fn mark_removed(&self, key: &ObjectKey, target: &Target) -> Option<Context> {
        self.change(key, |addon| {
            let certificate = addon.certificates.iter_mut().find(|one| one.started.target == *target)?;
            certificate.started.desired = false;
            Some(certificate.context.clone())
        })
    }

    /// Removes a certificate whose secret has been deleted.
    pub(super) fn forget(&self, key: &ObjectKey, target: &Target) {
        self.change(key, |addon| {
            addon.certificates.retain(|one| one.started.target != *target);
            addon.outcomes.forget(&target.certificate.secret);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registration::{addon::registrations::tests::target, certificate::failed};

    #[test]
    fn nothing_is_kept_of_an_addon_that_has_nothing() {
        let (certificates, key, target) =
            (CertificateSet::default(), ObjectKey::new("cluster1", "hello"), target("a.io/a"));
        certificates.refuse(&key, Some(failed("no".into())));
        certificates.start(&key, target.clone(), Context::new());
        certificates.refuse(&key, None);
        assert!(certificates.mark_removed(&key, &target).is_some());
        assert!(certificates.started(&key).iter().all(|started| !started.desired));
        certificates.forget(&key, &target);
        assert!(certificates.lock().is_empty());
    }
}
