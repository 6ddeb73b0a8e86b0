//! Why a certificate request is left alone, and when it is considered again.

use std::{error::Error as StdError, time::Duration};

use ocm_runtime::{Requeue, error::chain};

/// The longest delay before the author's code is called again after it failed.
const RETRY: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Undecided {
    /// It does not follow the rules, or the add-on does not approve it. Mostly that remains so, and what changes it is
    /// mostly an event.
    #[error("{0}")]
    Rejected(String),
    /// The author's code failed.
    #[error("{0}")]
    Failed(String),
}

impl Undecided {
    pub(crate) fn failed(what: &str, error: &(dyn StdError + 'static)) -> Self {
        Self::Failed(format!("{what}: {}", chain(error)))
    }

    /// The hub does not accept the cluster, or no longer does: its agents get no certificates.
    pub(super) fn unaccepted(cluster: &str) -> Self {
        Self::Rejected(format!(
            "the hub does not accept cluster {cluster}, since spec.hubAcceptsClient of its ManagedCluster is false; accept \
             it, for example with `clusteradm accept --clusters {cluster}`"
        ))
    }

    /// When to consider the request again without an event.
    pub(super) fn next(&self) -> Requeue {
        match self {
            Self::Rejected(_) => Requeue::BackOffSlowly,
            Self::Failed(_) => Requeue::BackOffWithin(RETRY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_rejected_is_considered_again_slowly_and_one_whose_check_failed_within_a_minute() {
        assert_eq!(Undecided::unaccepted("c1").next(), Requeue::BackOffSlowly);
        let error = std::io::Error::other("no answer");
        let failed = Undecided::failed("the add-on could not check it", &error);
        assert_eq!(failed.to_string(), "the add-on could not check it: no answer");
        assert_eq!(failed.next(), Requeue::BackOffWithin(RETRY));
    }
}
