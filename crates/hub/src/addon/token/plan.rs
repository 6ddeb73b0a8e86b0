//! What to write for the tokens of an add-on's agent.

use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{Role, RoleBinding},
};

use super::{
    objects,
    observe::{Existing, Need, Observed},
    step::{Step, step},
};

/// See the module.
#[derive(Debug, PartialEq)]
pub(crate) enum Plan {
    /// What exists stays.
    Nothing,
    /// All three objects exist as they should.
    SetUp(Box<Steps>),
    /// None of these exists.
    Remove(Existing),
}

/// One step for each object, in this order: nobody can bind a role that does not exist, and no role is for an account that
/// may be somebody else's.
#[derive(Debug, PartialEq)]
pub(crate) struct Steps {
    pub(super) account: Step<ServiceAccount>,
    pub(super) role: Step<Role>,
    pub(super) binding: Step<RoleBinding>,
}

pub(super) fn plan(observed: &Observed) -> Plan {
    let Observed { key, need, existing, .. } = observed;
    match need {
        Need::Tokens => Plan::SetUp(Box::new(Steps {
            account: step(existing.account.as_ref(), objects::account(key)),
            role: step(existing.role.as_ref(), objects::role(key)),
            binding: step(existing.binding.as_ref(), objects::binding(key)),
        })),
        Need::Unchanged => Plan::Nothing,
        Need::Refused(_) | Need::Nothing | Need::Gone => Plan::Remove(existing.clone()),
    }
}
