//! What the administrator of a hub allows.

use std::time::Duration;

use crate::requester::Requester;

/// Whose agents may recover their certificate after it has expired, for how long after that, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryPolicy {
    /// The users with whose credentials agents bootstrap.
    pub users: Vec<String>,
    /// The groups of such users.
    pub groups: Vec<String>,
    /// How long after its expiry a certificate can be recovered.
    pub window: Duration,
    /// How many recoveries a cluster has within the window.
    pub limit: usize,
}

impl Default for RecoveryPolicy {
    /// Nobody may.
    fn default() -> Self {
        Self { users: Vec::new(), groups: Vec::new(), window: Self::WINDOW, limit: Self::LIMIT }
    }
}

impl RecoveryPolicy {
    /// Thirty days.
    pub const WINDOW: Duration = Duration::from_secs(30 * 24 * 3600);
    /// One recovery, and one or two more if an agent is stopped before it has saved its certificate.
    pub const LIMIT: usize = 3;
    /// Records of more recoveries would not fit into the annotation of a namespace, beside its other annotations.
    pub const MAX_LIMIT: usize = 100;

    /// Whether anybody may recover certificates.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.limit > 0 && named(&self.users).chain(named(&self.groups)).next().is_some()
    }

    /// Whether it is for this requester. A request without a requester matches no empty name.
    pub(super) fn names(&self, requester: &Requester) -> bool {
        named(&self.users).any(|user| *user == requester.user)
            || named(&self.groups).any(|group| requester.groups.iter().flatten().any(|of| of == group))
    }
}

fn named(names: &[String]) -> impl Iterator<Item = &String> {
    names.iter().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(users: &[&str], groups: &[&str]) -> RecoveryPolicy {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        RecoveryPolicy { users: owned(users), groups: owned(groups), ..RecoveryPolicy::default() }
    }

    fn requester(user: &str, groups: &[&str]) -> Requester {
        let groups = groups.iter().map(|name| (*name).to_owned()).collect();
        Requester { user: user.into(), groups: Some(groups), ..Requester::default() }
    }

    #[test]
    fn it_is_off_until_it_names_somebody() {
        assert!(!RecoveryPolicy::default().is_on());
        assert!(!policy(&[""], &[""]).is_on());
        assert!(policy(&["u"], &[]).is_on() && policy(&[], &["g"]).is_on());
        assert!(!RecoveryPolicy { limit: 0, ..policy(&["u"], &[]) }.is_on());
    }

    #[test]
    fn it_is_for_the_users_and_groups_that_it_names_and_for_no_others() {
        let policy = policy(&["u", ""], &["g", ""]);
        assert!(policy.names(&requester("u", &[])) && policy.names(&requester("x", &["a", "g"])));
        for other in [requester("", &[""]), requester("g", &["u"]), requester("U", &["gg"]), Requester::default()] {
            assert!(!policy.names(&other), "{other:?}");
        }
    }
}
