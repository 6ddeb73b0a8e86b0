//! What the hub says about the service account of an add-on's agent. Pure.

use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, conditions::addon::TOKEN_INFRASTRUCTURE_READY};
use ocm_runtime::conditions::{find, is_true};

/// The longest uid that is read.
const LONGEST: usize = 128;

/// The service account on the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account<'a> {
    /// The hub has none yet, and its condition says why if that is a failure.
    NotReady,
    /// The hub's condition does not say which one it is.
    Unnamed,
    /// It has this uid.
    Ready(&'a str),
}

/// The service account that condition `TokenInfrastructureReady` names.
pub(crate) fn account(addon: &ManagedClusterAddOn) -> Account<'_> {
    let conditions = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    match find(conditions, TOKEN_INFRASTRUCTURE_READY) {
        Some(condition) if is_true(conditions, TOKEN_INFRASTRUCTURE_READY) => {
            uid_in(&condition.message).map_or(Account::Unnamed, Account::Ready)
        }
        _ => Account::NotReady,
    }
}

/// The uid in a message such as `ServiceAccount c1/hello-agent (UID: 1234) is ready`.
pub(crate) fn uid_in(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("UID: ")?;
    let (uid, _) = rest.split_once(')')?;
    let is_uid = !uid.is_empty() && uid.len() <= LONGEST && uid.bytes().all(|byte| byte.is_ascii_graphic());
    is_uid.then_some(uid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registration::addon::target::tests::addon;

    #[test]
    fn the_uid_is_read_out_of_the_hubs_words() {
        assert_eq!(uid_in("ServiceAccount c1/hello-agent (UID: 12-34) is ready"), Some("12-34"));
        let long = format!("(UID: {})", "a".repeat(129));
        for message in ["", "ready", "(UID: )", "(UID: 1", "UID:1)", "(UID: a b)", &long] {
            assert_eq!(uid_in(message), None, "{message}");
        }
    }

    #[test]
    fn an_account_is_ready_when_the_hub_says_so() {
        let addon = |status: &str, message: &str| {
            let condition = json!({"type": "TokenInfrastructureReady", "status": status, "reason": "R", "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z"});
            addon(&json!({"conditions": [condition]}))
        };
        assert_eq!(account(&addon("True", "(UID: u) is ready")), Account::Ready("u"));
        assert_eq!(account(&addon("True", "ready")), Account::Unnamed);
        assert_eq!(account(&addon("False", "(UID: u) is ready")), Account::NotReady);
        assert_eq!(account(&crate::registration::addon::target::tests::addon(&json!(null))), Account::NotReady);
    }
}
