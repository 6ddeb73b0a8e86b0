//! The running credential controllers, by add-on.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ocm_runtime::{Context, ObjectKey, conditions::NewCondition};

use super::{
    target::{Credential, Refusals, Target},
    token,
};
use crate::registration::certificate::{self, Outcomes};

/// The running credential controllers, by add-on.
#[derive(Debug, Default)]
pub(super) struct CredentialSet(Mutex<HashMap<ObjectKey, AddOn>>);

#[derive(Debug, Default)]
struct AddOn {
    credentials: Vec<Running>,
    certificate_outcomes: Outcomes,
    token_outcomes: Outcomes,
}

impl AddOn {
    /// Where the outcome of a credential is recorded: there is one condition for certificates and one for tokens.
    fn outcomes(&self, target: &Target) -> &Outcomes {
        match target.credential {
            Credential::Certificate(_) => &self.certificate_outcomes,
            Credential::Token(_) => &self.token_outcomes,
        }
    }

    fn is_empty(&self) -> bool {
        self.credentials.is_empty() && self.certificate_outcomes.is_empty() && self.token_outcomes.is_empty()
    }
}

#[derive(Debug)]
struct Running {
    started: Started,
    context: Context,
}

/// A credential whose controller was started.
#[derive(Clone, Debug)]
pub(super) struct Started {
    pub(super) target: Target,
    /// `false` if its controller was stopped because the registration was removed, and its secret must still be deleted.
    /// It stays `true` when the agent stops.
    pub(super) desired: bool,
}

impl CredentialSet {
    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, AddOn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the entry of an add-on, and removes an empty one.
    fn change<T>(&self, key: &ObjectKey, change: impl FnOnce(&mut AddOn) -> T) -> T {
        let mut all = self.lock();
        let addon = all.entry(key.clone()).or_default();
        let result = change(addon);
        if addon.is_empty() {
            all.remove(key);
        }
        result
    }

    /// The credentials of an add-on.
    pub(super) fn started(&self, key: &ObjectKey) -> Vec<Started> {
        let all = self.lock();
        let credentials = all.get(key).into_iter().flat_map(|addon| &addon.credentials);
        credentials.map(|running| running.started.clone()).collect()
    }

    /// The conditions for all credentials of an add-on: one for certificates, one for tokens.
    pub(super) fn conditions(&self, key: &ObjectKey) -> Vec<NewCondition> {
        let all = self.lock();
        let outcomes = all.get(key).into_iter().flat_map(|addon| [&addon.certificate_outcomes, &addon.token_outcomes]);
        outcomes.filter_map(Outcomes::condition).collect()
    }

    /// Records why registrations of an add-on get no credentials.
    pub(super) fn refuse(&self, key: &ObjectKey, refusals: Refusals) {
        self.change(key, |addon| {
            addon.certificate_outcomes.refuse(refusals.certificate.map(certificate::failed));
            addon.token_outcomes.refuse(refusals.token.map(token::report::failed));
        });
    }

    /// Adds a credential whose controller runs in this context, and returns where it records its outcome.
    pub(super) fn start(&self, key: &ObjectKey, target: Target, context: Context) -> Outcomes {
        self.change(key, |addon| {
            let outcomes = addon.outcomes(&target).clone();
            addon.credentials.push(Running { started: Started { target, desired: true }, context });
            outcomes
        })
    }

    /// Marks a credential as removed, and returns the context to stop.
    pub(super) fn mark_removed(&self, key: &ObjectKey, target: &Target) -> Option<Context> {
        self.change(key, |addon| {
            let running = addon.credentials.iter_mut().find(|one| one.started.target == *target)?;
            running.started.desired = false;
            Some(running.context.clone())
        })
    }

    /// Removes a credential whose secret has been deleted.
    pub(super) fn forget(&self, key: &ObjectKey, target: &Target) {
        self.change(key, |addon| {
            addon.credentials.retain(|one| one.started.target != *target);
            addon.outcomes(target).forget(target.secret());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registration::addon::registrations::tests::{target, token_target};

    #[test]
    fn nothing_is_kept_of_an_addon_that_has_nothing() {
        for target in [target("a.io/a"), token_target()] {
            let (credentials, key) = (CredentialSet::default(), ObjectKey::new("cluster1", "hello"));
            credentials.refuse(&key, Refusals { certificate: Some("no".into()), token: Some("no".into()) });
            assert_eq!(credentials.conditions(&key).len(), 2);
            credentials.start(&key, target.clone(), Context::new());
            credentials.refuse(&key, Refusals::default());
            assert!(credentials.mark_removed(&key, &target).is_some());
            assert!(credentials.started(&key).iter().all(|started| !started.desired));
            credentials.forget(&key, &target);
            assert!(credentials.lock().is_empty());
        }
    }
}
